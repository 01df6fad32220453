# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: gone_words
short_description: What to tell where no engine runs that a complete boot could belong to
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - For a ledger that is complete and has no flags.
positional: _input, start
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
    - A sentence, and the command that starts the service.
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
