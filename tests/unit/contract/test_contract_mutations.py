# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutations, which take too long for every run, are still of the code that is there."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("mutations", ROOT / "tests/mutations.py")
assert SPEC is not None and SPEC.loader is not None
mutations = sys.modules["mutations"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutations)


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.old.strip()[:40])
def test_a_mutation_is_of_one_place(mutation: mutations.Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    for tests in mutation.tests.split():
        assert (ROOT / tests).exists()
