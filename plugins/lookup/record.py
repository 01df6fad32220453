# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: record
short_description: Read the record of a service on the controller
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - What M(kvfleet.radiance.resize_record) would return of the file in check mode, without a task. A line that is none
    is warned of and passed over.
options:
  _terms:
    description:
      - Records on the controller. One that does not exist has no entries.
    type: list
    elements: path
    required: true
  entries:
    description:
      - Entries that count as if they were at its end, where it does not hold them yet.
    type: list
    elements: dict
    default: []
  host:
    description:
      - Of records that several hosts share, take the lines of this host alone, and those among O(entries), which the
        host may have written under an older name.
    type: str
"""

EXAMPLES = r"""
- name: Show what the fleet directory knows of a service
  ansible.builtin.debug:
    msg: "{{ q('kvfleet.radiance.record', endpoint_fleet_dir ~ '/records/flashnext.jsonl') | map(attribute='kind') }}"
"""

RETURN = r"""
_list:
  description: Every entry of the records in their order, and then the given ones.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _fleet_dir
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import plain


class LookupModule(LookupBase):  # type: ignore[misc]
    """The record lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """The entries of all records, joined with the given ones."""
        host, given = kwargs.get("host"), plain(kwargs.get("entries") or [])
        found: list[dict[str, t.Any]] = []
        try:
            for term in terms:
                found += _fleet_dir.record(str(term), host, given, Display().warning)
        except RadianceError as error:
            raise AnsibleLookupError(error.text) from error
        return _records.missing([], found)
