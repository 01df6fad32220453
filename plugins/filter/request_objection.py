# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: request_objection
short_description: Why a command can be refused before any host is read
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Looks for words that a command may not use, a service that the host does not have, and a plan file that is none.
  - Looks at the extra variables of the command line, too, for names that are nearly those of a request, and for words
    without a name.
positional: _input, services, host
options:
  _input:
    description:
      - What the command asks, by its bare names.
    type: dict
    required: true
  services:
    description:
      - The services that the host declares.
    type: list
    elements: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse what cannot be meant
  ansible.builtin.assert:
    that: endpoint_request | kvfleet.radiance.request_objection(endpoint_services, inventory_hostname) == ""
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where there is no objection.
  type: str
"""

import typing as t

from ansible import context
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._command_line import unheard
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import request_objection


def _objection(request: dict[str, t.Any], services: list[dict[str, t.Any]], host: str) -> str:
    return unheard(context.CLIARGS.get("extra_vars") or ()) or request_objection(request, services, host)


class FilterModule:
    """The request_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"request_objection": as_filter(_objection)}
