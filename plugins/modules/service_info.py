#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: service_info
short_description: Read what a service has on its host
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Tells in one round trip whether a switch was interrupted or a pair is on probation, the content of the files that
    the service starts from, its record, and the boot that runs. What does not exist is no error.
  - It changes nothing.
attributes:
  check_mode:
    description: Runs as ever.
    support: full
  diff_mode:
    description: Nothing changes, so there is no diff.
    support: none
options:
  service:
    description:
      - Name of the service.
    type: str
    required: true
  state_dir:
    description:
      - Where M(kvfleet.radiance.service_switch) keeps its state.
    type: path
    required: true
  files:
    description:
      - Files whose content is wanted.
    type: list
    elements: path
    default: []
  others:
    description:
      - Names of other services in O(state_dir), to be asked whether a switch of theirs was interrupted.
    type: list
    elements: str
    default: []
  boot:
    description:
      - Options of M(kvfleet.radiance.boot_ledger_info) but C(with_log), C(hide) and its C(api_key), which
        C(api_key_file) stands for.
      - Without them no boot is read.
    type: dict
seealso:
  - module: kvfleet.radiance.boot_ledger_info
  - module: kvfleet.radiance.service_switch
  - module: kvfleet.radiance.resize_record
"""

EXAMPLES = r"""
- name: Read what is there
  kvfleet.radiance.service_info:
    service: flashnext
    state_dir: /srv/radiance/.kvfleet
    files: [/srv/radiance/scripts/flashnext.env]
    boot:
      source: file
      path: /var/log/radiance/flashnext.log
      pid_file: /run/radiance/flashnext.pid
  register: there
"""

RETURN = r"""
interrupted:
  description: Whether a switch of the service was interrupted, or runs now.
  returned: success
  type: bool
  sample: false
others_interrupted:
  description: Those of O(others) of which the same is true.
  returned: success
  type: list
  elements: str
  sample: []
on_probation:
  description: Whether a pair of the service is on probation, or what ended one is still to be told.
  returned: success
  type: bool
  sample: false
texts:
  description: The content of each of O(files) that exists, by its path, with a mask in place of the secrets in it.
  returned: success
  type: dict
  sample: {/srv/radiance/scripts/flashnext.env: "VRAM_KV_MIB=5120\n"}
entries:
  description: Every entry of the record, as M(kvfleet.radiance.resize_record) returns them.
  returned: success
  type: list
  elements: dict
  sample: []
boot:
  description:
    - What M(kvfleet.radiance.boot_ledger_info) returns, with C(code) and C(msg) where it would fail.
    - That is no failure here.
  returned: success, with O(boot)
  type: dict
  sample: {last_boot: null, ledger: {status: complete}}
code:
  description: V(file_unreadable) where this user may not read something of it, or it is no regular file or too large.
  returned: failure
  type: str
  sample: file_unreadable
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import boot_info
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.on_host import look


def main() -> None:
    """Read everything, and return it."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "state_dir": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "others": {"type": "list", "elements": "str", "default": []},
            "boot": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    boot = _boot_options(module)
    asked = module.params
    try:
        found, reports = look(asked["state_dir"], asked["service"], asked["files"], asked["others"])
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code)
    for report in reports:
        module.warn(report)
    if boot is not None:
        found["boot"] = boot_info.boot_info(boot, module.warn, module.no_log_values.add)
    module.exit_json(changed=False, **found)


def _boot_options(module: AnsibleModule) -> dict[str, t.Any] | None:
    """The options of the boot, held to their rules; a failure of the module where they do not fit."""
    if module.params["boot"] is None:
        return None
    without_key = {name: rule for name, rule in boot_info.ARGUMENTS.items() if name != "api_key"}
    checked = ArgumentSpecValidator(without_key, required_if=boot_info.RULES["required_if"]).validate(
        module.params["boot"]
    )
    if checked.error_messages:
        module.fail_json(msg=f"boot: {'; '.join(checked.error_messages)}")
    return {**checked.validated_parameters, "api_key": None}


if __name__ == "__main__":
    main()
