# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ways_back_images
short_description: The images of what there is to return to
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Each once, as the record has them.
options:
  _input:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show them
  ansible.builtin.debug:
    msg: "{{ record | kvfleet.radiance.ways_back_images }}"
"""

RETURN = r"""
_value:
  description:
    - References.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._ways_back import images


class FilterModule:
    """The ways_back_images filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"ways_back_images": as_filter(images)}
