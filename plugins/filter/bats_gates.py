# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: bats_gates
short_description: The gates of an env as tests in shell
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The same gates that P(kvfleet.radiance.file_gates#filter) holds a rendered env to, for whoever edits it afterwards.
positional: _input, plan, service
options:
  _input:
    description:
      - The text of the env.
    type: str
    required: true
  plan:
    description:
      - The plan that made its pair, where one is known.
    type: dict
  service:
    description:
      - The service, whose env may have keys of its own.
    type: dict
"""

EXAMPLES = r"""
- name: Show what an env is held to
  ansible.builtin.debug:
    msg: "{{ text | kvfleet.radiance.bats_gates(plan) | map(attribute='says') }}"
"""

RETURN = r"""
_value:
  description:
    - For each gate its V(name), its V(keys), the V(measure) that is held to its V(bound), V(says) (a sentence),
      V(because) (the lines that it comes from), V(label) (empty, C(personal reserve) or C(accepted)), and V(code)
      (lines of shell that fail where it does not hold).
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._gates import bats_gates


class FilterModule:
    """The bats_gates filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"bats_gates": as_filter(bats_gates)}
