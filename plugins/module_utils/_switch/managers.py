# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what describes a manager, in a journal or in the options of the module, to the manager.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.process_manager import ProcessManager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.systemd_manager import SystemdManager


def manager_of(described: t.Mapping[str, t.Any]) -> Manager:
    """The manager whose ``described`` this is."""
    fields = {name: value for name, value in described.items() if name != "kind"}
    return ProcessManager(**fields) if described["kind"] == "process" else SystemdManager(**fields)
