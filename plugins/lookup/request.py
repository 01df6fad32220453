# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: request
short_description: What a command asks of the services of a host
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Takes the variables that have the bare names of a request, such as V(max_num_seqs) and V(fill). A name that no
    variable has is left out, and every value stays the text or the number that it was.
  - It takes no terms.
options:
  defaults:
    description:
      - What a name is where no variable has it. One that is null is left out.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show what -e max_num_seqs=2 -e fill=true asks
  ansible.builtin.debug:
    msg: "{{ lookup('kvfleet.radiance.request') }}"

- name: The same, and what is returned to where the command does not say it
  ansible.builtin.debug:
    msg: "{{ lookup('kvfleet.radiance.request', defaults={'to': 'previous'}) }}"
"""

RETURN = r"""
_list:
  description:
    - One dictionary, of name to value.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import REQUEST


class LookupModule(LookupBase):  # type: ignore[misc]
    """The request lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """The one request."""
        if terms:
            raise AnsibleLookupError(
                f"kvfleet.radiance.request takes no terms, and has {', '.join(map(str, terms))}: what is asked are "
                "variables, and what else a name shall be is in `defaults`."
            )
        defaults = kwargs.get("defaults") or {}
        said = {name: self._templar.template(variables[name]) for name in REQUEST if name in variables}
        return [{**{name: value for name, value in defaults.items() if value is not None}, **said}]
