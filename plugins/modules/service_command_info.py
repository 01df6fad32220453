#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_command_info
short_description: The command line that a service runs with
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Tells the command line of the process that a unit or a pid file names, as the kernel has it, and the program that
    starts it. Secrets are masked on the host. Changes nothing.
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
options:
  service:
    description:
      - Name of the service.
    type: str
    required: true
  manager:
    description:
      - What starts the service. Where it is left out it is V(process) with O(pid_file), else the unit of the system, or
        where that does not run, of the user.
    type: str
    choices: [process, systemd, systemd_user]
  unit:
    description:
      - The unit, by default that of the service's name.
    type: str
  pid_file:
    description:
      - The pid file of a plain process.
    type: path
  path:
    description:
      - The log that such a process writes to.
    type: path
seealso:
  - module: kvfleet.radiance.boot_ledger_info
"""

EXAMPLES = r"""
- name: See what the unit runs
  kvfleet.radiance.service_command_info:
    service: flashnext
    manager: systemd
  become: true
  register: seen
"""

RETURN = r"""
command:
  description: What runs.
  returned: success
  type: dict
  contains:
    manager:
      description: V(process), V(systemd) or V(systemd_user).
      type: str
      sample: systemd
    unit:
      description: The unit by systemd's own name, null for a plain process.
      type: str
      sample: flashnext.service
    scope:
      description: Whose systemd has it, V(system) or V(user); null for a plain process.
      type: str
      sample: system
    program:
      description: The words that the unit starts, none for a plain process.
      type: list
      elements: str
      sample: [/srv/radiance/scripts/serve-flashnext.sh]
    argv:
      description: The words of the process, secrets masked.
      type: list
      elements: str
      sample: [radiance, --model, /models/flashnext.rad, --port, "8000"]
code:
  description: Why it failed, one of V(unit_absent), V(unit_inactive), V(unit_outdated), V(process_absent) and the codes
    of M(kvfleet.radiance.boot_ledger_info) for what cannot be asked.
  returned: failure
  type: str
  sample: unit_inactive
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.command_seen import running_command


def main() -> None:
    """Tell it."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "manager": {"type": "str", "choices": ["process", "systemd", "systemd_user"]},
            "unit": {"type": "str"},
            "pid_file": {"type": "path"},
            "path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        command = running_command(
            options["service"], options["manager"], options["unit"], options["pid_file"], options["path"]
        )
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code, **error.result)
    module.exit_json(changed=False, command=command)


if __name__ == "__main__":
    main()
