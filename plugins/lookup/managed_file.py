# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: managed_file
short_description: Tell whether files on the controller are there, and whether they are ours
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - A file that exists without our marker belongs to somebody else and is never overwritten.
options:
  _terms:
    description:
      - Paths on the controller.
    type: list
    elements: path
    required: true
  hide:
    description:
      - Whether V(text) has a mask in place of the secrets in it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Stop at a file that is not ours
  ansible.builtin.assert:
    that: not (lookup('kvfleet.radiance.managed_file', path)).foreign
"""

RETURN = r"""
_list:
  description:
    - For each path a dictionary with V(path), V(foreign) (there, and not ours) and V(text).
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _fleet_dir


class LookupModule(LookupBase):  # type: ignore[misc]
    """The managed_file lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """One dictionary a path."""
        try:
            return [_fleet_dir.managed_file(str(term), bool(kwargs.get("hide"))) for term in terms]
        except RadianceError as error:
            raise AnsibleLookupError(error.text) from error
