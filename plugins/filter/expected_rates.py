# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: expected_rates
short_description: The rates that the arms of a service let expect
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - For how long the probes of the boot that runs will take, and for what of their rates is too fast to be believed.
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
      - Tokens of the prompts that the rate probe sends; V(most_prefill_tps) is of such prompts.
    type: int
"""

EXAMPLES = r"""
- name: Show what is expected
  ansible.builtin.debug:
    msg: "{{ endpoint_service | kvfleet.radiance.expected_rates(record, ledger, 43500) }}"
"""

RETURN = r"""
_value:
  description:
    - V(prefill_tps) and V(decode_tps), and V(most_prefill_tps) and V(most_decode_tps), the fastest that was measured on
      what runs. Each in tokens a second, and none where no arm tells. Decode is that of the depth that runs.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._expected_rates import expected_rates
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The expected_rates filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"expected_rates": as_filter(expected_rates)}
