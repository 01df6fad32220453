# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: env_file
short_description: Read the text of an env file strictly
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Takes only what a shell, systemd and podman read alike, and names the line of anything else.
positional: _input, service, host
options:
  _input:
    description:
      - The text.
    type: str
    required: true
  service:
    description:
      - The service. With it the values have our keys, by C(env_names), and of an env that was adopted they are those of
        its block.
    type: dict
  host:
    description:
      - Inventory name of the host, for a service with C(per_host).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read an env that was fetched from a host
  ansible.builtin.set_fact:
    target_env: "{{ (slurped.content | b64decode | kvfleet.radiance.env_file).values }}"
"""

RETURN = r"""
_value:
  description:
    - V(values), V(errors) with V(line) and V(text), V(managed), and V(adopted), whether only a block of it is ours.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._managed_text import env_file


class FilterModule:
    """The env_file filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"env_file": as_filter(env_file)}
