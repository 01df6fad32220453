#!/usr/bin/python
# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resize_record
short_description: Read and extend the record of a service
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - The record is one JSON object a line, and only ever grows. It says what was planned, what happened, and how each
    prediction fared.
  - Entries that the record does not hold yet are appended in the order given, under a lock and synced to the disk.
    Each is checked before the first is written, and where the disk is full none is. Without O(entries) the record is
    only read.
  - A line that is none of ours (cut, edited, of another release, longer than 1 MiB) is a warning. It stays.
  - Run it on the target for the copy that the switch writes to, and on the controller for the copy in the fleet
    directory.
attributes:
  check_mode:
    description: Returns the entries that the record would hold, and writes nothing.
    support: full
  diff_mode:
    description: Shows the lines that are appended, of a long one the beginning.
    support: full
options:
  path:
    description:
      - The record, a file with one JSON object a line. Its folder is made when an entry is to be written.
    type: path
    required: true
  entries:
    description:
      - Entries to append, each with the fields of its kind. An entry whose V(id) is in the record already is left out.
    type: list
    elements: dict
    default: []
seealso:
  - plugin: kvfleet.radiance.record_entry
    plugin_type: filter
  - module: kvfleet.radiance.service_switch
"""

EXAMPLES = r"""
- name: Read the record on the target
  kvfleet.radiance.resize_record:
    path: /srv/radiance/.kvfleet/flashnext/records.jsonl
  register: record

- name: Collect it in the fleet directory
  kvfleet.radiance.resize_record:
    path: "{{ endpoint_fleet_dir }}/records/flashnext.jsonl"
    entries: "{{ record.entries }}"
  delegate_to: localhost
"""

RETURN = r"""
entries:
  description: Every entry of the record in its order, the new ones included.
  returned: always
  type: list
  elements: dict
  sample:
    - schema: kvfleet.radiance/record/1
      id: 0a1b2c3d4e5f
      at: "2026-10-13T09:30:00Z"
      host: dankserver
      service: flashnext
      kind: rollback
      attempt: null
      to: {weights_mib: 24000, kv_mib: 5120}
      returns_to: 5f4e3d2c1b0a
      says: returning to 24,000 + 5,120 of record 5f4e3d2c1b0a
added:
  description: How many entries were appended, or would be in check mode.
  returned: always
  type: int
  sample: 1
code:
  description: V(record_invalid) for an entry that is no line of a record, V(record_unreachable) for a file that cannot
    be read or written.
  returned: failure
  type: str
  sample: record_invalid
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError


def main() -> None:
    """Read, and append what is missing."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "entries": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    try:
        found = _records.add(path, module.params["entries"], module.check_mode)
    except RadianceError as error:
        module.fail_json(msg=error.text, code=error.code, **error.result)
    for report in found.reports:
        module.warn(f"{path}: {report}")
    result = {"changed": bool(found.new), "added": len(found.new), "entries": found.entries}
    if found.new and module._diff:
        lines = "".join(_records.shown(value) + "\n" for value in found.new)
        result["diff"] = {"before": "", "after": lines, "before_header": path, "after_header": path}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
