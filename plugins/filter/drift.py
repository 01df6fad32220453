# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drift
short_description: Where fleet directory, target and running process differ
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Compares by values, never by bytes, and says in which direction each difference lies.
positional: _input, target, flags, record, service, source, script
options:
  _input:
    description:
      - Values of the env in the fleet directory, or none where there is no such file.
    type: dict
  target:
    description:
      - Values of the env on the target, or none.
    type: dict
  flags:
    description:
      - Flags of the running process, as the ledger has them, or none.
    type: dict
  record:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
  service:
    description:
      - The service; with it the notes tell what the inventory declares otherwise.
    type: dict
  source:
    description:
      - V(source) of the ledger, which knows the image of the running container.
    type: dict
  script:
    description:
      - What an adopted service starts by, the texts V(env) and V(serve) with V(env_path) and V(serve_path), else none.
    type: dict
"""

EXAMPLES = r"""
- name: Stop at a difference
  ansible.builtin.assert:
    that: (fleet_env | kvfleet.radiance.drift(target_env, ledger.flags, record)).findings | length == 0
"""

RETURN = r"""
_value:
  description:
    - V(findings), each with V(name), V(fleet), V(target), V(running), V(direction) and V(says); V(explained)
      whether the record accounts for all of them; V(says) how; V(running) the env that the process amounts to;
      V(notes) sentences; V(lost) a sentence for each flag or image that a restart would drop or change.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._drift import drift
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The drift filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"drift": as_filter(drift)}
