# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: adoption_survey
short_description: Whether a service that was written by hand can be taken over
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Its files are read and never run. They have to give the command line that runs, and the pair comes from the env.
positional: _input, command, texts, target_dir, host
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  command:
    description:
      - RV(kvfleet.radiance.service_command_info#module:command).
    type: dict
    required: true
  texts:
    description:
      - V(fleet) and V(target), each with the texts of its files, empty where there is none.
    type: dict
    required: true
  target_dir:
    description:
      - The directory on the host that holds the copies.
    type: str
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse what stands in the way
  ansible.builtin.assert:
    that: found.objections | length == 0
    fail_msg: "{{ found.objections | join(' ') }}"
  vars:
    found: "{{ service | kvfleet.radiance.adoption_survey(seen.command, texts, '/srv/radiance', inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description:
    - V(objections), sentences with a way out each; V(service), the item joined with what was found; V(item), its lines
      as YAML where the inventory lacks or contradicts a part of it; V(owned), the keys of the env that would be ours.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._adoption import survey
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The adoption_survey filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"adoption_survey": as_filter(survey)}
