# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: env_file
short_description: Read an env file on the controller strictly
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers (@kvfleet)
description:
  - Takes only what a shell, systemd and podman read alike. Anything else is listed with its line, and gives no value.
  - A file that does not exist is no error. It has V(exists=false) and no values.
options:
  _terms:
    description:
      - Paths of env files on the controller.
    type: list
    elements: path
    required: true
  service:
    description:
      - The service. With it the values have our keys, by C(env_names), and of an env that was adopted they are those of
        its block.
    type: dict
  host:
    description:
      - Inventory name of the host, for a service with C(per_host).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the pool that the fleet directory declares
  ansible.builtin.debug:
    msg: "{{ lookup('kvfleet.radiance.env_file', path)['values'].VRAM_KV_MIB }}"
  vars:
    path: "{{ endpoint_fleet_dir }}/scripts/flashnext.env"
"""

RETURN = r"""
_list:
  description:
    - For each path a dictionary with V(path), V(exists), V(values) (name to value), V(errors) (each with V(line) and
      V(text)), V(foreign) (there, and without our marker), V(adopted) (whether only a block of it is ours) and V(text).
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _fleet_dir
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import plain


class LookupModule(LookupBase):  # type: ignore[misc]
    """The env_file lookup."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """One dictionary a path."""
        service, host = plain(kwargs.get("service")), str(kwargs.get("host") or "")
        try:
            return [_fleet_dir.env_file(str(term), service, host) for term in terms]
        except RadianceError as error:
            raise AnsibleLookupError(error.text) from error
