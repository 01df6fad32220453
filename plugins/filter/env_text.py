# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: env_text
short_description: The whole env file of a service
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The header comes from the record of the plan that made the pair, so that the same record gives the same
    bytes.
positional: _input, service, host, history, current
options:
  _input:
    description:
      - The values.
    type: dict
    required: true
  service:
    description:
      - The service.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  history:
    description:
      - What P(kvfleet.radiance.history#filter) returns.
    type: dict
    required: true
  current:
    description:
      - The text that is there. Of one that was adopted every line outside of its block stays.
    type: str
"""

EXAMPLES = r"""
- name: Show the env
  ansible.builtin.debug:
    msg: "{{ values | kvfleet.radiance.env_text(service, inventory_hostname, history) }}"
  vars:
    history: "{{ record | kvfleet.radiance.history(plan.to) }}"
"""

RETURN = r"""
_value:
  description:
    - The text of the file.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._env_text import env_text
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The env_text filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"env_text": as_filter(env_text)}
