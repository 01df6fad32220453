# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: failure
short_description: One word and a sentence for a task that failed
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The word is one of those of the summary.
positional: _input, task, lost
options:
  _input:
    description:
      - The result of the task.
    type: dict
    required: true
  task:
    description:
      - Its name.
    type: str
    default: ''
  lost:
    description:
      - Why the host does not answer any more, empty where it does.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Keep what went wrong
  ansible.builtin.set_fact:
    outcome: "{{ ansible_failed_result | kvfleet.radiance.failure(ansible_failed_task.name) }}"
"""

RETURN = r"""
_value:
  description:
    - V(word) and V(says), and V(code) where the result has one.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import failure


class FilterModule:
    """The failure filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"failure": as_filter(failure)}
