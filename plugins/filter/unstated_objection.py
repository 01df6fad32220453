# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: unstated_objection
short_description: Why a request cannot be written into an env that was adopted
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - An adopted env may leave a value to the engine or to its script. A plan that changes it needs a key.
positional: _input, host, plan, options, current
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  plan:
    description:
      - The plan.
    type: dict
    required: true
  options:
    description:
      - The options that it was made with.
    type: dict
    required: true
  current:
    description:
      - The text of the env.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse it
  ansible.builtin.fail:
    msg: "{{ objection }}"
  vars:
    objection: "{{ service | kvfleet.radiance.unstated_objection(inventory_hostname, plan, options, text) }}"
  when: objection is truthy
"""

RETURN = r"""
_value:
  description:
    - A sentence with the lines to add, empty where nothing is missing.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._managed_text import unstated_objection


class FilterModule:
    """The unstated_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"unstated_objection": as_filter(unstated_objection)}
