# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: service_outcome
short_description: What the run of one service came to
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A word of the summary, and a sentence.
positional: _input
options:
  _input:
    description:
      - The state of the run, as the role keeps it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Keep the outcome
  ansible.builtin.set_fact:
    endpoint_done: "{{ endpoint_done + [endpoint_run | kvfleet.radiance.service_outcome] }}"
"""

RETURN = r"""
_value:
  description:
    - V(service), V(word) and V(says), V(code) of a failure that has one, and V(undo) where another pair serves now.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import service_outcome


class FilterModule:
    """The service_outcome filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"service_outcome": as_filter(service_outcome)}
