# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: valid
short_description: Hold a value to one of this collection's schemas
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - True when the value has the shape that the schema describes. Otherwise the task fails with each place that differs.
requirements:
  - jsonschema
options:
  _input:
    description:
      - The value.
    type: raw
    required: true
  schema:
    description:
      - Name of the schema.
    type: str
    choices: [ledger, plan, plan-file, record, service]
    required: true
"""

EXAMPLES = r"""
- name: Check what the inventory declares
  ansible.builtin.assert:
    that: item is kvfleet.radiance.valid('service')
  loop: "{{ endpoint_services }}"
"""

RETURN = r"""
_value:
  description:
    - V(true), or a failure that names the places.
  type: bool
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import plain
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._schemas import problems


def valid(value: t.Any, schema: str) -> bool:
    """Whether the value has the schema's shape; the places that differ are an error."""
    try:
        found = problems(plain(value), schema)
    except RadianceError as error:
        raise AnsibleFilterError(error.text) from error
    if found:
        raise AnsibleFilterError(f"This is no {schema}: {'; '.join(found)}.")
    return True


class TestModule:
    """The valid test."""

    def tests(self) -> dict[str, t.Callable[..., bool]]:
        """Name to function."""
        return {"valid": valid}
