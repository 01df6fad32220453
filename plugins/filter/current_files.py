# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: current_files
short_description: The files of a service as they are, here and on the target
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Of a file that is missing on one side it is the text of the other side.
positional: _input, run, host, env_path, serve_path
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  run:
    description:
      - What was read of the service, with C(fleet_texts) and C(target_texts).
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  env_path:
    description:
      - Path of the env on the target.
    type: str
    required: true
  serve_path:
    description:
      - Path of the serve script on the target.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the env that the fleet directory has
  ansible.builtin.debug:
    msg: "{{ (service | kvfleet.radiance.current_files(run, host, env_path, serve_path)).fleet.env }}"
"""

RETURN = r"""
_value:
  description:
    - V(fleet) and V(target) with the texts, and V(modes), where none stands for a file that keeps its own.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._managed_text import current_files


class FilterModule:
    """The current_files filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"current_files": as_filter(current_files)}
