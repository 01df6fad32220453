# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: image_choice
short_description: What a name of an image means on the host
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A tag is held to the digest that it means now, so that the image which was judged is the one that starts.
  - The release that an image holds is what the command says of it, else its label, the record, or a tag that is a
    release.
positional: _input, asked, inspected, ledger, engine_version, record
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  asked:
    description:
      - The reference that is asked for.
    type: str
    required: true
  inspected:
    description:
      - The result of the runtime's C(image inspect), with V(rc), V(stdout) and V(stderr).
    type: dict
    required: true
  ledger:
    description:
      - The ledger of the boot that runs.
    type: dict
    required: true
  engine_version:
    description:
      - The release that the command says it holds.
    type: str
  record:
    description:
      - The lines of the record.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Ask the runtime
  ansible.builtin.command:
    argv: [podman, image, inspect, "radiance:1.2.4"]
  register: inspected
  changed_when: false

- name: Tell what it is
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.image_choice('radiance:1.2.4', inspected, boot.ledger) }}"
"""

RETURN = r"""
_value:
  description:
    - V(asked), V(image) (the reference for the env), V(digest), V(version) and V(version_from), V(same) (it is what
      runs), V(before) (what runs) and V(objection) (why it is refused, empty where it is not).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._image import image_choice


class FilterModule:
    """The image_choice filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"image_choice": as_filter(image_choice)}
