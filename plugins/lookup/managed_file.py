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
    - For each path a dictionary with V(path), V(exists), V(managed), V(foreign) (there, and not ours) and V(text).
  type: list
  elements: dict
"""

import os
import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import MARKER


class LookupModule(LookupBase):  # type: ignore[misc]
    """The managed_file lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """One dictionary a path."""
        found = [_read(str(term)) for term in terms]
        return [{**one, "text": hidden(one["text"])} for one in found] if kwargs.get("hide") else found


def _read(path: str) -> dict[str, t.Any]:
    try:
        text = read_regular(os.path.expanduser(path)).decode("utf-8", "replace")
    except FileNotFoundError:
        return {"path": path, "exists": False, "managed": False, "foreign": False, "text": ""}
    except OSError as error:
        raise AnsibleLookupError(f"{path} cannot be read: {error.strerror}.") from error
    managed = MARKER in text
    return {"path": path, "exists": True, "managed": managed, "foreign": not managed, "text": text}
