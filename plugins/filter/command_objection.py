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
positional: _input, values, options, ledger
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
  options:
    description:
      - The options of M(kvfleet.radiance.pair_plan), with V(image) where another one is asked for.
    type: dict
    required: true
  ledger:
    description:
      - The ledger of the boot that runs, whose release counts where no other image is asked for. Nothing is refused
        where the release is not known.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Refuse it
  ansible.builtin.fail:
    msg: "{{ objection }}"
  vars:
    objection: "{{ endpoint_services[0] | kvfleet.radiance.command_objection(values, {}, boot.ledger) }}"
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
