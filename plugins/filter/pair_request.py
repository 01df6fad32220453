# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pair_request
short_description: The options of pair_plan for a service and a command
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A value that the command states goes before one that the inventory declares; what neither has stays as it
    runs.
positional: _input, request, stated, applied, back, image, running, made
options:
  _input:
    description:
      - The service, an item of O(ignore:endpoint_services).
    type: dict
    required: true
  request:
    description:
      - What the command asks, by its bare names.
    type: dict
    required: true
  record:
    description:
      - The record of the service, whose arms join the declared ones.
    type: list
    elements: dict
    default: []
  stated:
    description:
      - Whether the pair in force was stated by a command, so that a declared fill leaves it alone.
    type: bool
    default: false
  applied:
    description:
      - An env whose pair and shape stand in where the command asks for none.
    type: dict
  back:
    description:
      - What P(kvfleet.radiance.way_back#filter) returned; it is the whole request then.
    type: dict
  image:
    description:
      - What P(kvfleet.radiance.image_choice#filter) returned, where an image is asked for.
    type: dict
  running:
    description:
      - The pair in force. One that a command stated is stated again for another image.
    type: dict
  made:
    description:
      - The line of the record that planned the pair in force. The same command does not fill it again for less than
        V(min_gain_mib).
    type: dict
"""

EXAMPLES = r"""
- name: Show what would be asked of pair_plan
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.pair_request({'max_num_seqs': 4}) }}"
"""

RETURN = r"""
_value:
  description:
    - Options of P(kvfleet.radiance.pair_plan#module), all but the ledger, and V(image) where another one is asked for.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import pair_request


class FilterModule:
    """The pair_request filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"pair_request": as_filter(pair_request)}
