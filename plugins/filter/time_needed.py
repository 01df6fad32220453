# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: time_needed
short_description: How long a switch may take with its probes and its way back
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Twice the last outage on record and the probes; what was never measured counts as its timeout.
positional: _input, about
options:
  _input:
    description:
      - The plan.
    type: dict
    required: true
  about:
    description:
      - V(outage_seconds), V(outage_at), V(probes), V(rate) and V(timeouts) of the service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ plan | kvfleet.radiance.time_needed(about) }}"
"""

RETURN = r"""
_value:
  description:
    - V(seconds) and V(says); null where nothing restarts.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._not_after import time_needed


class FilterModule:
    """The time_needed filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"time_needed": as_filter(time_needed)}
