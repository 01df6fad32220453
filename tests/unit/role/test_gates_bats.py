# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendered gates, run by the real bats after somebody has edited the env by hand."""

from __future__ import annotations

import copy
import pathlib
import re
import shutil
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _templates

COMMAND = pathlib.Path(__file__).resolve().parents[3] / "roles/endpoint/files/fleet-tests.sh"
SHAPE = {"max_num_seqs": 3, "max_model_len": 200000, "kv_cache_dtype": "fp8", "num_speculative_tokens": 2}
SETTLED = (
    "card 0 settled at 2.01 GiB free against 209.19 MiB (the $(touch never) 96.00 MiB and `id` for the static region)"
)
WIRE = (
    "tp wire: LOSSY (--tp-wire wht6) at 128 KiB a message. Steps of at most 25 rows are exact: single-sequence decode"
)
ENV = """\
# kvfleet.radiance: managed; a test
VRAM_WEIGHTS_MIB=25844
VRAM_KV_MIB=5119
MAX_NUM_SEQS=3
MAX_MODEL_LEN=200000
KV_CACHE_DTYPE=fp8
NUM_SPECULATIVE_TOKENS=2
PORT=8000
"""


def gate(name: str, source: str, holds: bool = True, accepted: str | None = None) -> dict[str, t.Any]:
    return {"name": name, "holds": holds, "says": "", "from": source, "hard": False, "accepted": accepted}


PLAN: dict[str, t.Any] = {
    "from": {"weights_mib": 24000, "kv_mib": 5120, **SHAPE},
    "to": {"weights_mib": 25844, "kv_mib": 5119, **SHAPE},
    "restart": True,
    "ceiling": {
        "mib": 30969.05, "plus_minus_mib": 5.125, "card": 0, "settled_free_mib": 2058.24, "floor_mib": 209.19,
        "pair_sum_mib": 29120, "reserve_mib": 0, "reserve_reason": None, "others_mib": 0, "others": [],
        "lines": [SETTLED],
    },
    "contract": {
        "needed_mib": 5062.06, "pool_mib": 5119, "spare_mib": 56.94, "tokens_mib": 4284.67, "state_mib": 329.39,
        "checkpoint_mib": 448.0, "rate_bytes_per_token": 7488, "state_mib_per_sequence": 109.8, "full_mib": 5062.06,
        "figures_from": "ledger", "backing": "full", "live_sessions": None,
    },
    "gates": [
        gate("dtype_known", "the engine's option"),
        gate("pair_within_ceiling", SETTLED),
        gate("pool_meets_contract", "kv"),
        gate("rows_within_exact_wire", WIRE),
    ],
    "predictions": [{"quantity": "sampler_rows", "low": 9, "high": 9}],
}  # fmt: skip


def changed(**parts: dict[str, t.Any]) -> dict[str, t.Any]:
    """The plan with other values in some of its parts; ``gates`` replaces those of the same name."""
    plan = copy.deepcopy(PLAN)
    for name, values in parts.items():
        if name == "gates":
            plan["gates"] = [values.get(item["name"], item) for item in plan["gates"]]
        else:
            plan[name] = {**plan[name], **values}
    return plan


LIVE = {
    "sessions": 2, "tokens": 90000, "factor": 1.8, "factor_from": "the guide", "held_tokens": 324000,
    "needed_mib": 5100.2,
}  # fmt: skip
SMALL = ENV.replace("=5119", "=4000").replace("SEQS=3", "SEQS=12")
PROVED = "card 1 settled at 214.00 MiB free against 209.19 MiB"
SWITCHED = {
    "ledger": {
        "settled": [
            {"card": 0, "free": {"mib": 215.3}, "floor": {"mib": 209.19}, "line": "card 0 settled at 215.30 MiB free"},
            {"card": 1, "free": {"mib": 214.0}, "floor": {"mib": 209.19}, "line": PROVED},
        ]
    }
}
CASES: dict[str, tuple[str, dict[str, t.Any] | None]] = {
    "plain": (ENV, PLAN),
    "reserve": (
        ENV.replace("=25844", "=25600"),
        changed(
            to={"weights_mib": 25600},
            ceiling={"reserve_mib": 200, "reserve_reason": 'a "monitor"\n$(touch never) \\'},
            contract={"live_sessions": LIVE},
        ),
    ),
    "accepted": (
        SMALL,
        changed(
            to={"kv_mib": 4000, "max_num_seqs": 12},
            gates={
                "pool_meets_contract": gate("pool_meets_contract", "kv", False, "short chats"),
                "rows_within_exact_wire": gate("rows_within_exact_wire", WIRE, False, "the wire is good enough"),
            },
        )
        | {"predictions": [{"quantity": "sampler_rows", "low": 36, "high": 36}]},
    ),
    "proved": (ENV, PLAN),
    "unknown": (ENV, None),
    "split-by-itself": (
        ENV.replace("VRAM_WEIGHTS_MIB=25844\nVRAM_KV_MIB=5119\n", ""),
        changed(to={"weights_mib": None, "kv_mib": None}),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A fleet directory with the gates of six services, rendered by the role's template, and its test command."""
    top = tmp_path_factory.mktemp("a fleet")
    for name in ("scripts", "tests"):
        (top / name).mkdir()
    shutil.copy(COMMAND, top / "tests/run.sh")
    (top / "tests/run.sh").chmod(0o755)
    for name, (env, plan) in CASES.items():
        (top / "scripts" / f"{name}.env").write_text(env)
        made = {"attempt": "0a1b2c3d4e5f", "at": "2026-11-01T00:00:00Z", "id": "9f8e7d6c5b4a", "plan": plan}
        bats = top / "tests" / f"{name}.bats"
        history = {"made": made if plan else None, "switched": SWITCHED if name == "proved" else None}
        bats.write_text(_templates.gates_file({"name": name}, "alpha", env, history))
        bats.chmod(0o755)
    return top


WHOLE = "the pair and the shape are whole numbers in plain digits"
CEILING = "the pair is at most 30,969 MiB, the ceiling"
PROVED_CEILING = "the pair is at most 30,967 MiB, the ceiling of the boot that proved it"
SHAPE = "the shape is at most 3 x 200,000 tokens, fp8, speculation depth 2, which the pool was planned for"
POOL = "the pool has at least 5,063 MiB, the contract"
ROWS = "a full decode step has at most 25 rows, which are exact on this wire"
WEIGHTS, KV = "WEIGHTS_MIB=25844", "KV_MIB=5119"

# What somebody writes into the env by hand, and the gates that fail then.
# fmt: off
EDITS: list[tuple[str, list[tuple[str, str]], list[str]]] = [
    # The bounds themselves: the ceiling, the contract, 24 rows.
    ("plain", [(WEIGHTS, "WEIGHTS_MIB=25850"), ("SEQS=3", "SEQS=2"), ("LEN=200000", "LEN=199999")], []),
    ("plain", [("SEQS=3", "SEQS=4")], [SHAPE]),
    ("plain", [("LEN=200000", "LEN=200001")], [SHAPE]),
    ("plain", [("DTYPE=fp8", "DTYPE=bf16")], [SHAPE]),
    ("proved", [(WEIGHTS, "WEIGHTS_MIB=25848")], []),
    ("proved", [(WEIGHTS, "WEIGHTS_MIB=25849")], [PROVED_CEILING]),
    ("plain", [(WEIGHTS, "WEIGHTS_MIB=25851")], [CEILING]),
    ("plain", [(KV, "KV_MIB=5063")], []),
    ("plain", [(KV, "KV_MIB=5062")], [POOL]),
    ("plain", [("SEQS=3", "SEQS=9")], [SHAPE, ROWS]),
    ("plain", [("TOKENS=2", "TOKENS=8"), ("DTYPE=fp8", "DTYPE=int4")], ["the KV dtype is bf16 or fp8", SHAPE, ROWS]),
    ("plain", [("LEN=200000", "LEN=0200000")], [WHOLE]),
    ("plain", [("LEN=200000", "LEN=200000\r")], [WHOLE, SHAPE]),
    ("plain", [("LEN=200000", "LEN=200_000")], [WHOLE, SHAPE]),
    ("plain", [("MAX_MODEL_LEN=200000\n", "")], [WHOLE, SHAPE]),
    ("plain", [(KV, "KV_MIB=6,144")], [WHOLE, POOL]),
    ("plain", [(KV, "KV_MIB=")], [WHOLE, POOL]),
    # Its own choice, to the engine; and what 64 bits make 24,000 of.
    ("plain", [(WEIGHTS, "WEIGHTS_MIB=0")], [WHOLE]),
    ("plain", [(WEIGHTS, "WEIGHTS_MIB=18446744073709575616")], [WHOLE]),
    ("reserve", [("=25600", "=25670"), (KV, "KV_MIB=5100")], [
        "the pair is at most 30,769 MiB, the ceiling of 30,969 less a personal reserve of 200 (personal reserve)",
        "the pool has at least 5,101 MiB, which 2 live sessions need",
    ]),
    ("accepted", [("=4000", "=3999"), ("SEQS=12", "SEQS=13")], [
        "the shape is at most 12 x 200,000 tokens, fp8, speculation depth 2, which the pool was planned for",
        f"{POOL}, or the 4,000 MiB that were accepted (accepted)",
        f"{ROWS}, or the 36 rows that were accepted (accepted)",
    ]),
]
# fmt: on


def test_an_edit_by_hand_beyond_a_bound_fails_the_gate_that_has_it(folder: pathlib.Path) -> None:
    # One run of the fleet's own command over all of it: a bats a test would take its time.
    rendered = {name: (folder / f"tests/{name}.bats").read_text() for name in CASES}
    (folder / "tests/edited").mkdir()
    for number, (name, edits, _fail) in enumerate(EDITS):
        text = CASES[name][0]
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (folder / f"scripts/edit{number}.env").write_text(text)
        test = rendered[name].replace(f"/../scripts/{name}.env", f"/../../scripts/edit{number}.env")
        (folder / f"tests/edited/edit{number}.bats").write_text(test.replace(f'"{name}: ', f'"edit{number}: '))
    command = [str(folder / "tests/run.sh")]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=180, cwd="/")
    shutil.rmtree(folder / "tests/edited")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    titles = re.findall(r"(?m)^(not ok|ok) \d+ (\S+): (.*)$", ran.stdout)
    expected = {name: [] for name in CASES} | {f"edit{number}": edit[2] for number, edit in enumerate(EDITS)}
    found = {
        name: [said for how, one, said in titles if one == name and how != "ok"]
        for name in {title[1] for title in titles}
    }
    assert found == expected
    assert not (folder / "never").exists()


def test_what_stands_in_the_rendered_gates(folder: pathlib.Path) -> None:
    texts = {name: (folder / f"tests/{name}.bats").read_text() for name in CASES}
    # The line that a bound comes from, above it.
    assert f"# Ledger: {SETTLED}\n@test" in texts["plain"]
    assert f"# Ledger: {WIRE}\n@test" in texts["plain"]
    assert "(7,488 B a token, 109.80 MiB a sequence; figures from ledger)\n@test" in texts["plain"]
    assert "# By plan 0a1b2c3d4e5f of 2026-11-01T00:00:00Z, record 9f8e7d6c5b4a.\n" in texts["plain"]
    # A reserve and what was accepted, with their reasons.
    assert 'a personal reserve: a "monitor" $(touch never) \\\n' in texts["reserve"]
    assert "# Accepted: short chats\n" in texts["accepted"]
    # The boot that proved the pair, where it settled closer than the one before.
    assert f"# Proved: {PROVED}\n@test" in texts["proved"]
    assert "# Accepted: the wire is good enough\n" in texts["accepted"]
    # Without a pair or a plan there is less to hold.
    counts = {name: text.count("@test") for name, text in texts.items()}
    assert counts == {"plain": 6, "reserve": 7, "accepted": 6, "proved": 6, "unknown": 2, "split-by-itself": 3}
    # Below its two first lines each test stands alone, as in somebody's own file.
    assert all(text.split("\n")[1].startswith("# kvfleet.radiance: managed; ") for text in texts.values())
    assert "setup" not in "".join(texts.values())
    files = [str(path) for path in sorted((folder / "tests").glob("*.*"))]
    assert len(files) == 7
    subprocess.run(["shellcheck", "--norc", *files], check=True)


def test_without_bats_the_command_of_the_fleet_says_what_to_install(tmp_path: pathlib.Path) -> None:
    for name in ("sh", "dirname"):
        (tmp_path / name).symlink_to(t.cast("str", shutil.which(name)))
    command, path = ["/bin/sh", str(COMMAND)], {"PATH": str(tmp_path)}
    ran = subprocess.run(command, env=path, check=False, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 127
    assert "apt install bats" in ran.stderr
