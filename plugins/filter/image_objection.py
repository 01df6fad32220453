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
  - A change of the image is not part of a resize.
positional: _input, request, env, findings
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
  env:
    description:
      - Path of the env of the service, for the way out.
    type: str
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
    service: "{{ endpoint_services[0] }}"
    objection: "{{ service | kvfleet.radiance.image_objection({'image': image}, 'scripts/flashnext.env') }}"
  when: objection is truthy
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where no image is asked or applied.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import image_objection


class FilterModule:
    """The image_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"image_objection": as_filter(image_objection)}
