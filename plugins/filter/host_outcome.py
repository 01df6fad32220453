# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_outcome
short_description: What the run of a host came to
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The worst word among its services, with its sentence.
positional: _input, done, failed
options:
  _input:
    description:
      - The state of the run that failed, empty where none did.
    type: dict
    required: true
  done:
    description:
      - Outcomes of the services so far.
    type: list
    elements: dict
    default: []
  failed:
    description:
      - Why a task failed, where one did.
    type: dict
"""

EXAMPLES = r"""
- name: Keep the outcome
  ansible.builtin.set_fact:
    endpoint_outcome: "{{ {} | kvfleet.radiance.host_outcome(endpoint_done) }}"
"""

RETURN = r"""
_value:
  description:
    - V(word), V(says) and V(services).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import host_outcome


class FilterModule:
    """The host_outcome filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"host_outcome": as_filter(host_outcome)}
