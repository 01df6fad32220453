# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: history
short_description: What the record of a service says of the pair in force
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Finds the plan that made the pair, its predictions with their last verdicts, and the attempts since that
    were rolled back.
positional: _input, pair, making
options:
  _input:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
  pair:
    description:
      - The pair and shape in force.
    type: dict
    required: true
  making:
    description:
      - The planned line of a plan that is about to run.
    type: dict
"""

EXAMPLES = r"""
- name: Tell which plan made the pair
  ansible.builtin.debug:
    msg: "{{ (record | kvfleet.radiance.history(ledger_pair)).made }}"
"""

RETURN = r"""
_value:
  description:
    - V(made), V(predictions), V(failed), V(stated), V(outage_seconds) and V(outage_at).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history import history


class FilterModule:
    """The history filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"history": as_filter(history)}
