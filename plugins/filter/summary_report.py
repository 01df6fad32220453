# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: summary_report
short_description: The summary as lines that a person reads
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A line a host, with its word and a sentence.
positional: _input
options:
  _input:
    description:
      - What P(kvfleet.radiance.summary#filter) returns.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the summary
  ansible.builtin.debug:
    msg: "{{ content | kvfleet.radiance.summary_report | join('\n') }}"
"""

RETURN = r"""
_value:
  description:
    - The lines.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import summary_report


class FilterModule:
    """The summary_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"summary_report": as_filter(summary_report)}
