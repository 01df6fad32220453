# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: env_keys
short_description: What the env of a service calls its values
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The keys are ours, but for those that C(env_names) of the service gives another name.
positional: _input
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what the slab is called
  ansible.builtin.debug:
    msg: "{{ (service | kvfleet.radiance.env_keys).VRAM_WEIGHTS_MIB }}"
"""

RETURN = r"""
_value:
  description:
    - Our key to the file's own.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import env_keys
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The env_keys filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"env_keys": as_filter(env_keys)}
