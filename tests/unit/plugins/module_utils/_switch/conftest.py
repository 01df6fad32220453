# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import journal_text, systemd_manager, unit_seen
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import NEW, Service
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import UnitService


@pytest.fixture(name="service")
def service_fixture(tmp_path: pathlib.Path) -> t.Iterator[Service]:
    """A service on the old pair, serving."""
    service = Service(tmp_path)
    try:
        service.start_old()
        yield service
    finally:
        service.kill_all()


@pytest.fixture(name="boots", scope="module")
def boots_fixture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the rehearsal engine prints for the old pair and for the new one."""
    service = Service(tmp_path_factory.mktemp("recorded"))
    try:
        service.start_old()
        old = service.log.read_text()
        result = service.run(NEW)
        return {"24000": old, "25844": pathlib.Path(result["receipt"]).read_text()}
    finally:
        service.kill_all()


@pytest.fixture(name="unit")
def unit_fixture(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[UnitService]:
    """A unit that is down, on the old pair; ``start_old`` brings it up."""
    service = UnitService(tmp_path)
    # The stand-ins answer at once, and nothing of theirs takes long.
    monkeypatch.setattr(systemd_manager, "_POLL", 0.1)
    monkeypatch.setattr(unit_seen, "_POLL", 0.1)
    monkeypatch.setattr(journal_text, "_POLL", 0.1)
    monkeypatch.setattr(journal_text, "_LOG_DELAY", 2.0)
    monkeypatch.setenv("PATH", f"{service.programs}{os.pathsep}{os.environ['PATH']}")
    try:
        yield service
    finally:
        service.kill_all()
