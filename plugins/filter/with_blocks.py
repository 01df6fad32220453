# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: with_blocks
short_description: Files of somebody's own with a block of ours begun in each
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Every line stays where it is, but for the assignments that are owned, which go into the block of the env.
positional: _input, texts, owned, host
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  texts:
    description:
      - V(fleet) and V(target), each with the texts of its files, empty where there is none.
    type: dict
    required: true
  owned:
    description:
      - The keys of the env that are ours, as the file calls them.
    type: list
    elements: str
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Begin the blocks
  ansible.builtin.set_fact:
    begun: "{{ service | kvfleet.radiance.with_blocks(texts, found.owned, inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description:
    - The texts, as they came.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._taken_over import with_blocks


class FilterModule:
    """The with_blocks filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"with_blocks": as_filter(with_blocks)}
