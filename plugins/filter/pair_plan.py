# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pair_plan
short_description: Plan a pair from a ledger and a request, on the controller
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The plan of the module M(kvfleet.radiance.pair_plan), and its refusals, without a task on the host - it is
    arithmetic on what is known already.
positional: _input, request
options:
  _input:
    description:
      - A complete ledger.
    type: dict
    required: true
  request:
    description:
      - The options of the module but O(kvfleet.radiance.pair_plan#module:ledger), as
        P(kvfleet.radiance.pair_request#filter) gives them. The reference V(image) that it may have beside them is not
        planned by.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: What would a fill of the present shape be
  ansible.builtin.debug:
    msg: "{{ (boot.ledger | kvfleet.radiance.pair_plan({'pair': 'fill'})).plan.to }}"
"""

RETURN = r"""
_value:
  description:
    - V(plan), or V(code) and V(msg) of a refusal, with the plan where a gate blocks it.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


def _pair_plan(ledger: dict[str, t.Any], request: dict[str, t.Any]) -> dict[str, t.Any]:
    options = {name: value for name, value in request.items() if name != "image"}
    try:
        return {"plan": make_plan(ledger, options)}
    except RadianceError as error:
        return {"msg": error.text, "code": error.code, **error.result}


class FilterModule:
    """The pair_plan filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"pair_plan": as_filter(_pair_plan)}
