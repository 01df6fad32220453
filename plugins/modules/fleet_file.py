#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_file
short_description: Write a file of the fleet directory without showing its secrets
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Writes one text file in one step, so that a crash leaves the old one or the new one. A link stays a link, and the
    file that it leads to is written.
  - No secret of the file is handed over or shown. O(content) comes with a mask in place of each, and
    gets back those that the file there has.
attributes:
  check_mode:
    description: Returns what would change and writes nothing.
    support: full
  diff_mode:
    description: Shows what changes with a mask in place of secrets and control characters as C(\x1b).
    support: full
options:
  path:
    description:
      - The file. Its folder has to be there.
    type: path
    required: true
  content:
    description:
      - The text that it shall have. A line that is the one of the file there but for its mask gets the secret that
        stands there.
    type: str
    required: true
  mode:
    description:
      - Octal mode in quotes, like V("0644"), of a file that is new. One that is there keeps its own.
    type: raw
    default: "0644"
seealso:
  - plugin: kvfleet.radiance.managed_file
    plugin_type: lookup
  - module: kvfleet.radiance.service_switch
"""

EXAMPLES = r"""
- name: Write the env
  kvfleet.radiance.fleet_file:
    path: "{{ endpoint_fleet_dir }}/scripts/flashnext.env"
    content: "{{ endpoint_run.texts.env }}"
  delegate_to: localhost
"""

RETURN = r"""
code:
  description: V(secret_missing) where the file there has no secret for a mask, V(file_unusable) for a file that cannot
    be read or written, V(disk_full).
  returned: failure
  type: str
  sample: secret_missing
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils import _fleet_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files


def main() -> None:
    """Compare, and write where it differs."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "required": True},
            "mode": {"type": "raw", "default": "0644"},
        },
        supports_check_mode=True,
    )
    # What is left in the parameters is returned with the result.
    content = module.params.pop("content")
    try:
        changes = _fleet_file.keep(module.params["path"], content, module.params["mode"], module.check_mode)
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code, **error.result)
    result = {"diff": files.diffs(changes)} if module._diff else {}
    module.exit_json(changed=bool(changes), **result)


if __name__ == "__main__":
    main()
