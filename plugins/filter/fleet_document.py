# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_document
short_description: A document of the fleet directory with its part of a service brought up to date
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The runbook of a service, the table of services in C(AGENTS.md), the list in C(llms.txt), or the log of outcomes.
    Only what stands between the markers is touched; a damaged marker is told and nothing is changed.
positional: _input, kind, about
options:
  _input:
    description:
      - The file as it is, empty where there is none.
    type: str
    required: true
  kind:
    description:
      - Which document it is.
    type: str
    choices:
      - runbook
      - agents
      - llms
      - log
    required: true
  about:
    description:
      - V(service), V(host), V(files), V(record), V(to) (the pair and shape in force), V(making) (the planned line of a
        plan that would run, or null) and V(undo) (a command).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what the log would be
  ansible.builtin.debug:
    msg: "{{ (lookup('ansible.builtin.file', 'docs/log.md') | kvfleet.radiance.fleet_document('log', about)).text }}"
"""

RETURN = r"""
_value:
  description:
    - V(text), the file as it should be, and V(objection), empty or why it is left as it is.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._documents import fleet_document
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The fleet_document filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"fleet_document": as_filter(fleet_document)}
