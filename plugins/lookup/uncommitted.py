# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: uncommitted
short_description: Which tracked files of a git checkout on the controller differ from their commit
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - A folder that is not the root of a checkout has none, and neither has one that git does not want to read.
options:
  _terms:
    description:
      - Folders on the controller.
    type: list
    elements: path
    required: true
"""

EXAMPLES = r"""
- name: Point out what is not committed
  ansible.builtin.debug:
    msg: "{{ q('kvfleet.radiance.uncommitted', endpoint_fleet_dir) | join(', ') }}"
"""

RETURN = r"""
_list:
  description: The paths, each with the two letters of C(git status --porcelain) before it.
  type: list
  elements: str
"""

import pathlib
import subprocess
import typing as t

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):  # type: ignore[misc]
    """The uncommitted lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[str]:
        """The changes of all folders."""
        return [line for term in terms for line in _changes(pathlib.Path(str(term)).expanduser())]


def _changes(folder: pathlib.Path) -> list[str]:
    if not (folder / ".git").exists():
        return []
    argv = ["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines()
