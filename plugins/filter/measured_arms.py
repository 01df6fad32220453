# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: measured_arms
short_description: The arm of the record for what the rate probe measured
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Only rates whose verdict is V(passed) become an arm, with the conditions that the boot tells of itself.
positional: _input, ledger, service, host, attempt
options:
  _input:
    description:
      - V(rates), as the rate probe returned it, among what the probes say.
    type: dict
    required: true
  ledger:
    description:
      - The ledger of the boot that was probed.
    type: dict
    required: true
  service:
    description:
      - An item of C(endpoint_services).
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  attempt:
    description:
      - Id of the attempt that the probe belongs to, if any.
    type: str
"""

EXAMPLES = r"""
- name: Make the line
  ansible.builtin.set_fact:
    lines: "{{ (probes | kvfleet.radiance.measured_arms(ledger, service, inventory_hostname)).entries }}"
"""

RETURN = r"""
_value:
  description:
    - V(entries), the lines of the record, and V(says), why there is none although rates were measured.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import measured_arms
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The measured_arms filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"measured_arms": as_filter(measured_arms)}
