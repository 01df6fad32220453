# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: command_objection
short_description: Which flags of the final command line a release no longer takes
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The engine does not start with an option that it does not know, so this is told before anything stops.
positional: _input, values, version
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  values:
    description:
      - The values of the env that is to be installed.
    type: dict
    required: true
  version:
    description:
      - The release of the engine that will run; nothing is refused where it is not known.
    type: str
"""

EXAMPLES = r"""
- name: Refuse it
  ansible.builtin.fail:
    msg: "{{ objection }}"
  vars:
    objection: "{{ endpoint_services[0] | kvfleet.radiance.command_objection(values, '1.2.4') }}"
  when: objection is truthy
"""

RETURN = r"""
_value:
  description:
    - A sentence that names the flags and the way out, empty where it takes all.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._image import command_objection


class FilterModule:
    """The command_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"command_objection": as_filter(command_objection)}
