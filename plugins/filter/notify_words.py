# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: notify_words
short_description: A warning where the command that is told of a run did not take it
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What the run came to is not changed by it.
positional: _input, argv
options:
  _input:
    description:
      - The result of the command.
    type: dict
    required: true
  argv:
    description:
      - The command.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Warn
  ansible.builtin.debug:
    msg: "{{ notified | kvfleet.radiance.notify_words(endpoint_notify) }}"
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where it took it.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import notify_words


class FilterModule:
    """The notify_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"notify_words": as_filter(notify_words)}
