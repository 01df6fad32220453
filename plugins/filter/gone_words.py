# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gone_words
short_description: What to tell where no engine of a service was found
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - For a ledger that could not be read, or that is complete and has no flags.
positional: _input, start, read, others, handover
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  start:
    description:
      - Path of its serve script on the host.
    type: str
    required: true
  read:
    description:
      - Result of M(kvfleet.radiance.boot_ledger_info) where that failed; where it is left out, a complete boot was
        read.
    type: dict
  others:
    description:
      - The services that are declared on its cards, of P(kvfleet.radiance.card_others#filter).
    type: list
    elements: dict
    default: []
  handover:
    description:
      - Whether the cards were to be handed over to it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: End
  ansible.builtin.fail:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.gone_words('/srv/radiance/scripts/serve-flashnext.sh') }}"
  when: ledger.flags is falsy
"""

RETURN = r"""
_value:
  description:
    - What the reading says, or a sentence of our own, and the command that starts the service.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import gone_words


class FilterModule:
    """The gone_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"gone_words": as_filter(gone_words)}
