# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole switches against the rehearsal engine: real processes, real files, a real port."""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import NEW, Service


def test_a_switch_brings_up_the_new_pair_with_one_restart(service: Service) -> None:
    old_pid = service.pid()
    result = service.run(NEW, endpoint=service.endpoint)
    import json

    print(json.dumps({k: v for k, v in result.items() if k not in ("ledger", "before")}, indent=1))
    assert result["outcome"] == "switched"
