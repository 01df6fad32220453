# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: file_gates
short_description: What is wrong with a rendered env
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - It must read strictly, hold exactly the planned pair and shape, and keep to the ceiling and the contract.
positional: _input, to, plan, service
options:
  _input:
    description:
      - The rendered text.
    type: str
    required: true
  to:
    description:
      - The pair and shape that it must hold.
    type: dict
    required: true
  plan:
    description:
      - The plan with its ceiling and contract.
    type: dict
  service:
    description:
      - The service, whose env may have keys of its own.
    type: dict
"""

EXAMPLES = r"""
- name: Hold the rendered env to its gates
  ansible.builtin.assert:
    that: (text | kvfleet.radiance.file_gates(plan.to, plan)) | length == 0
"""

RETURN = r"""
_value:
  description:
    - Sentences, none where all gates hold.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._gates import file_gates


class FilterModule:
    """The file_gates filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"file_gates": as_filter(file_gates)}
