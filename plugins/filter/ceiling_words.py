# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ceiling_words
short_description: The ceiling of a plan in words
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The sum with its three terms, and the reserves where there are any.
positional: _input
options:
  _input:
    description:
      - The plan.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the ceiling
  ansible.builtin.debug:
    msg: "{{ planned.plan | kvfleet.radiance.ceiling_words | join('; ') }}"
"""

RETURN = r"""
_value:
  description:
    - Sentences.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._env_text import ceiling_words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The ceiling_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"ceiling_words": as_filter(ceiling_words)}
