# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fastest_arm
short_description: The fastest arm that a rate probe can be held against
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Of the stack and the cache dtype that run, and of prompts of the size that is asked.
positional: _input, record, ledger, prompt_tokens
options:
  _input:
    description:
      - An item of C(endpoint_services).
    type: dict
    required: true
  record:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
  ledger:
    description:
      - The ledger of the boot that runs, as far as it is known.
    type: dict
    required: true
  prompt_tokens:
    description:
      - Tokens of the prompts that the probe sends.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Show the bound of what a probe believes
  ansible.builtin.debug:
    msg: "{{ endpoint_service | kvfleet.radiance.fastest_arm(record, ledger, 43500) }}"
"""

RETURN = r"""
_value:
  description:
    - Prefill, tokens a second. None where no arm can be compared.
  type: float
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import fastest_arm
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The fastest_arm filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"fastest_arm": as_filter(fastest_arm)}
