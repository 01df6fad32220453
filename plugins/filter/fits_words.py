# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fits_words
short_description: What a plan says of its time
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - As it would be if the switch began at this moment.
positional: _input, until
options:
  _input:
    description:
      - What P(kvfleet.radiance.time_needed#filter) returned; null needs no time.
    type: dict
    required: true
  until:
    description:
      - What P(kvfleet.radiance.deadline#filter) returned; null bounds nothing.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ needed | kvfleet.radiance.fits_words(endpoint_not_after) }}"
"""

RETURN = r"""
_value:
  description:
    - A list of one sentence, empty where nothing bounds it.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._not_after import fits_words


class FilterModule:
    """The fits_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"fits_words": as_filter(fits_words)}
