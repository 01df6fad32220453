# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: probe_report
short_description: What the probes say, as lines
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A line for each probe that ran.
positional: _input
options:
  _input:
    description:
      - V(calibration), V(boundary) and V(rates), as far as they ran.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what the probes say
  ansible.builtin.debug:
    msg: "{{ probes | kvfleet.radiance.probe_report | join('\n') }}"
"""

RETURN = r"""
_value:
  description:
    - The lines.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._verdict_report import probe_words


class FilterModule:
    """The probe_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"probe_report": as_filter(probe_words)}
