# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pair_words
short_description: A pair and shape in words
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - With thousands commas and units.
positional: _input
options:
  _input:
    description:
      - The pair and shape.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show where a plan leads
  ansible.builtin.debug:
    msg: "{{ planned.plan.to | kvfleet.radiance.pair_words }}"
"""

RETURN = r"""
_value:
  description:
    - The words.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._words import pair_words


class FilterModule:
    """The pair_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"pair_words": as_filter(pair_words)}
