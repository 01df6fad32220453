# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: known_engine
short_description: A ledger with the release that only its image tells
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Where nothing that was read tells the release of the engine, the record does, which knows as what its image was put
    in force, or a tag that is a release. C(engine.version_from) is V(image) then.
positional: _input, record
options:
  _input:
    description:
      - A ledger.
    type: dict
    required: true
  record:
    description:
      - The lines of the record.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Tell the release that runs
  ansible.builtin.debug:
    msg: "{{ (boot.ledger | kvfleet.radiance.known_engine).engine.version }}"
"""

RETURN = r"""
_value:
  description:
    - The ledger.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._image import known_engine


class FilterModule:
    """The known_engine filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"known_engine": as_filter(known_engine)}
