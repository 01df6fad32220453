# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkouts to rehearse in."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from rehearsals import Checkout


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout that the tests of one file use one after the other, in the order of the file."""
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    yield checkout
    checkout.stop()


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout in which nothing was rehearsed yet."""
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    yield checkout
    checkout.stop()
