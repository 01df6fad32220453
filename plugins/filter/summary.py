# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: summary
short_description: What a run came to, host by host
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A host that is missing among the outcomes was not reached.
positional: _input, outcomes, check
options:
  _input:
    description:
      - The hosts of the run.
    type: list
    elements: str
    required: true
  outcomes:
    description:
      - Host to V(word), V(says) and V(services).
    type: dict
    required: true
  check:
    description:
      - Whether it was a run in check mode.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Sum up
  ansible.builtin.set_fact:
    content: "{{ ansible_play_hosts_all | kvfleet.radiance.summary(outcomes) }}"
"""

RETURN = r"""
_value:
  description:
    - V(schema), V(check), V(good), V(hosts), and the names of those that are V(done), V(failed), V(not_started) and
      V(undone).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import summary


class FilterModule:
    """The summary filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"summary": as_filter(summary)}
