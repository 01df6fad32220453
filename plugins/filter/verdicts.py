# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: verdicts
short_description: What a boot and its probes said of a plan's predictions
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - V(held) and V(killed) are measured. V(open) is not measured yet. V(void) was predicted for another engine version or
    image than the one that was measured.
  - A boot that was refused, died or left nothing kills every prediction of a ledger quantity that it did not print.
positional: _input, ledger, probes
options:
  _input:
    description:
      - The predictions of a plan.
    type: list
    elements: dict
    required: true
  ledger:
    description:
      - The ledger of the boot to judge by, or none while there is no such boot.
    type: dict
  probes:
    description:
      - Results of the probes, V(calibration), V(boundary) and V(rates), as far as they ran.
    type: dict
"""

EXAMPLES = r"""
- name: See how the predictions fared
  ansible.builtin.debug:
    msg: "{{ planned.plan.predictions | kvfleet.radiance.verdicts(boot.ledger, {'rates': rate.rates}) }}"
"""

RETURN = r"""
_value:
  description:
    - One item a prediction in its order, with V(id), V(verdict), V(measured) (a number or none) and V(says).
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import verdicts
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The verdicts filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"verdicts": as_filter(verdicts)}
