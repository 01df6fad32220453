# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: confirm_plan
short_description: A plan, if it is the one that was reviewed
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Refuses when another boot runs than the one that the reviewed plan was made from, and when its request gives
    another plan now.
positional: _input, reviewed
options:
  _input:
    description:
      - The plan that the request gives now.
    type: dict
    required: true
  reviewed:
    description:
      - The item of the plan file.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Go on only with the reviewed plan
  ansible.builtin.set_fact:
    plan: "{{ planned.plan | kvfleet.radiance.confirm_plan(reviewed) }}"
"""

RETURN = r"""
_value:
  description:
    - The plan.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import confirm_plan


class FilterModule:
    """The confirm_plan filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"confirm_plan": as_filter(confirm_plan)}
