# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: file_names
short_description: The files of a service, by their kind
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Paths relative to the fleet directory, as the service's V(paths) and V(per_host) map them.
positional: _input, host
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show where the env lies
  ansible.builtin.debug:
    msg: "{{ (endpoint_services[0] | kvfleet.radiance.file_names(inventory_hostname)).env }}"
"""

RETURN = r"""
_value:
  description:
    - A path for each of V(env), V(serve), V(bats), V(record), V(runbook), V(agents), V(llms) and V(log).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import file_names
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The file_names filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"file_names": as_filter(file_names)}
