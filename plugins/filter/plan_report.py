# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_report
short_description: A plan of pair_plan as a table that a person reads
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The pair from and to, the ceiling with its three terms and the ledger's lines, the contract with its terms,
    gates, predictions, the slab law, the expected outage, what the probes cost, how to undo, and the options.
positional: _input, about
options:
  _input:
    description:
      - The plan, as P(kvfleet.radiance.pair_plan#module) returns it.
    type: dict
    required: true
  about:
    description:
      - What a plan does not know. V(host), V(service), V(outage_seconds) and V(outage_at) of the last restart,
        V(probes) as the command has them, V(undo), V(notes), V(record) of the service, and V(brief) where the options
        need only be named.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ planned.plan | kvfleet.radiance.plan_report(about) | join('\n') }}"
  vars:
    about:
      host: "{{ inventory_hostname }}"
      service: flashnext
      undo: ansible-playbook kvfleet.radiance.rollback -l dankserver -e service=flashnext -e to=previous
"""

RETURN = r"""
_value:
  description:
    - The lines of the table.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._plan_report import plan_report


class FilterModule:
    """The plan_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"plan_report": as_filter(plan_report)}
