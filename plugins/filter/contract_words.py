# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: contract_words
short_description: The contract of a plan in words
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What the pool must hold, with its terms and where they come from.
positional: _input
options:
  _input:
    description:
      - The plan.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the contract
  ansible.builtin.debug:
    msg: "{{ planned.plan | kvfleet.radiance.contract_words | join('; ') }}"
"""

RETURN = r"""
_value:
  description:
    - Sentences.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._env_text import contract_words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The contract_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"contract_words": as_filter(contract_words)}
