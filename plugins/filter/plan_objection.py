# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_objection
short_description: Why a plan is not the one that was reviewed
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Another boot may run than the one that the reviewed plan was made from, or its request may give another plan
    now.
positional: _input, reviewed
options:
  _input:
    description:
      - The plan that the request gives now.
    type: dict
    required: true
  reviewed:
    description:
      - The item of the plan file, or none.
    type: dict
"""

EXAMPLES = r"""
- name: Go on only with the reviewed plan
  ansible.builtin.assert:
    that: planned.plan | kvfleet.radiance.plan_objection(reviewed) == ""
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where it is the same plan.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._plan_file import plan_objection


class FilterModule:
    """The plan_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"plan_objection": as_filter(plan_objection)}
