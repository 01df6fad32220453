# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: prediction_words
short_description: A prediction with its verdict in words
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Its id, the interval, the verdict and what was measured.
positional: _input
options:
  _input:
    description:
      - The prediction, with V(verdict) and V(measured) where they are known.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show a prediction
  ansible.builtin.debug:
    msg: "{{ plan.predictions[0] | kvfleet.radiance.prediction_words }}"
"""

RETURN = r"""
_value:
  description:
    - The words.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._env_text import prediction_sentence
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The prediction_words filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"prediction_words": as_filter(prediction_sentence)}
