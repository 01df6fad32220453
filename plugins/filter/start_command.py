# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: start_command
short_description: The command line that starts a service by hand
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A plain process is started detached, with the log and the pid file that
    P(kvfleet.radiance.service_switch#module) would give it; a unit by systemctl.
positional: _input, start
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  start:
    description:
      - Path of its serve script on the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Tell how to start it
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.start_command('/srv/radiance/scripts/serve-flashnext.sh') }}"
"""

RETURN = r"""
_value:
  description:
    - A command line for a shell on the host.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import start_command


class FilterModule:
    """The start_command filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"start_command": as_filter(start_command)}
