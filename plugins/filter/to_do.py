# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: to_do
short_description: Whether the switch of a service has anything to do
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A restart, drift that is decided, or files on the target that would be other bytes.
positional: _input, request, env_path, serve_path
options:
  _input:
    description:
      - The state of the run, as the role keeps it.
    type: dict
    required: true
  request:
    description:
      - What the command asks.
    type: dict
    required: true
  env_path:
    description:
      - The env on the target.
    type: path
    required: true
  serve_path:
    description:
      - The serve script on the target.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Look
  ansible.builtin.debug:
    msg: "{{ endpoint_run | kvfleet.radiance.to_do(endpoint_request, env_path, serve_path) }}"
"""

RETURN = r"""
_value:
  description:
    - Whether it has.
  type: bool
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._run import to_do


class FilterModule:
    """The to_do filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"to_do": as_filter(to_do)}
