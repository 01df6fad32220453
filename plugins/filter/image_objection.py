# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: image_objection
short_description: Why a request for another image is refused
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A service without a container has no image, and an image is never applied along with the rest of the fleet
    directory.
  - What the host itself has to tell is P(kvfleet.radiance.image_choice#filter).
positional: _input, request, findings
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  request:
    description:
      - What the command asks; V(image) and V(drift) of it count.
    type: dict
    required: true
  findings:
    description:
      - V(findings) of P(kvfleet.radiance.drift#filter).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Refuse it
  ansible.builtin.fail:
    msg: "{{ objection }}"
  vars:
    objection: "{{ endpoint_services[0] | kvfleet.radiance.image_objection({'image': image}) }}"
  when: objection is truthy
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where nothing is in the way of it.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._image import image_objection


class FilterModule:
    """The image_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"image_objection": as_filter(image_objection)}
