# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import Service


@pytest.fixture(name="service")
def service_fixture(tmp_path: pathlib.Path) -> t.Iterator[Service]:
    """A service on the old pair, serving."""
    service = Service(tmp_path)
    try:
        service.start_old()
        yield service
    finally:
        service.kill_all()
