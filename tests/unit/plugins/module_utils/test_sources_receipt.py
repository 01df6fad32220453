# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts stand in for a log that has lost the boot which runs, and for no other boot."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
HEALTHY = FIXTURES / "logs" / "healthy-1.0.13.log"
TOLD = FIXTURES / "containers" / "podman-4.3.1-running.json"
STOPPED = FIXTURES / "containers" / "podman-4.3.1-stopped.json"
TRAFFIC = "W server: scheduler refused request 7: too long\nI prefix cache: reset, 3 entries dropped\n"
FLAGS = ["--model", "/m.rad", "--vram-weights-mib", "24000", "--vram-kv-mib", "5120", "--api-key", "hush-hush-1234"]

PutProgram = t.Callable[[str, str], pathlib.Path]


class Engine:
    """A process that has printed a boot into a log, with a pid file, and lives."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.log, self.pid_file, self.receipts = folder / "log", folder / "pid", folder / "receipts"
        self.receipts.mkdir()
        self._children: list[subprocess.Popen[bytes]] = []
        self.start(HEALTHY.read_text())

    def start(self, text: str, *flags: str) -> None:
        """End what runs and start another one, which prints this text."""
        self.end()
        with self.log.open("a") as log:
            argv = [sys.executable, "-c", "import time; time.sleep(60)", *(flags or FLAGS)]
            self._children.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            log.write(text)
        self.pid_file.write_text(str(self._children[-1].pid))

    def end(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()

    def read(self, receipts: bool = True, boot: int = -1) -> Reading:
        return read_boot(
            "file",
            path=str(self.log),
            pid_file=str(self.pid_file),
            boot=boot,
            receipts=str(self.receipts) if receipts else None,
        )


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> t.Iterator[Engine]:
    found = Engine(tmp_path)
    try:
        yield found
    finally:
        found.end()


def rotate(log: pathlib.Path) -> None:
    log.rename(f"{log}.1")
    log.write_text(TRAFFIC)


def remove(log: pathlib.Path) -> None:
    log.unlink()


def empty(log: pathlib.Path) -> None:
    os.truncate(log, 0)


def cut_head(log: pathlib.Path) -> None:
    log.write_text(HEALTHY.read_text()[2000:] + TRAFFIC)


def cut_middle(log: pathlib.Path) -> None:
    text = HEALTHY.read_text()
    log.write_text(text[:1500] + text[2500:] + TRAFFIC)


def refused_by_a_client(log: pathlib.Path) -> None:
    with log.open("a") as file:
        file.write("E unknown option '--x'\n")


LOSSES = [rotate, remove, empty, cut_head, cut_middle, refused_by_a_client]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_lost_boot_of_a_process_is_read_from_its_receipt(
    engine: Engine, lose: t.Callable[[pathlib.Path], None]
) -> None:
    whole = engine.read()
    assert (whole.ledger["status"], whole.ledger["source"]["kind"], whole.notes) == ("complete", "file", [])
    path = receipt.save(str(engine.receipts), whole)
    lose(engine.log)
    assert engine.read(receipts=False).ledger["status"] != "complete"
    found = engine.read()
    assert found.ledger["source"] == {**whole.ledger["source"], "kind": "receipt"}
    assert {**found.ledger, "source": None} == {**whole.ledger, "source": None}
    assert found.ledger["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert len(found.notes) == 1
    assert path in found.notes[0]


def test_a_receipt_is_for_its_user_alone_and_holds_no_secret(engine: Engine) -> None:
    path = receipt.save(str(engine.receipts), engine.read())
    files = sorted(engine.receipts.iterdir())
    assert [file.suffix for file in files] == [".json", ".log"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert "hush" not in files[0].read_text() + files[1].read_text()
    assert pathlib.Path(path).read_text() == HEALTHY.read_text()


def test_a_log_that_has_the_boot_is_read_itself(engine: Engine) -> None:
    receipt.save(str(engine.receipts), engine.read())
    with engine.log.open("a") as file:
        file.write(TRAFFIC)
    assert engine.read().ledger["source"]["kind"] == "file"


def test_what_a_client_sent_is_no_boot_of_a_process_that_has_a_receipt(engine: Engine) -> None:
    forged = TRAFFIC + HEALTHY.read_text().replace("0 settled at 2.01 GiB", "0 settled at 9.01 GiB")
    whole = engine.read()
    receipt.save(str(engine.receipts), whole)
    with engine.log.open("a") as file:
        file.write(forged)
    assert engine.read(receipts=False).ledger["settled"][0]["free"]["text"] == "9.01 GiB"
    found = engine.read()
    assert (found.ledger["settled"], found.ledger["source"]["kind"]) == (whole.ledger["settled"], "receipt")
    assert "what it tells last is not what the process has printed" in found.notes[0]
    # A process that starts engines has boots that its receipts do not know.
    engine.start(HEALTHY.read_text(), *FLAGS[2:])
    receipt.save(str(engine.receipts), engine.read())
    with engine.log.open("a") as file:
        file.write(forged)
    assert engine.read().ledger["settled"][0]["free"]["text"] == "9.01 GiB"


def test_the_last_twenty_are_kept_and_those_that_are_needed(engine: Engine) -> None:
    reading = engine.read()
    others = [f"{number:012x}" for number in range(30)]
    for number, name in enumerate(others):
        for suffix in ("log", "json"):
            file = engine.receipts / f"{name}.{suffix}"
            file.write_text("x")
            os.utime(file, (1000 + number, 1000 + number))
    (engine.receipts / "notes.log").write_text("an operator's own")
    path = pathlib.Path(receipt.save(str(engine.receipts), reading, [others[3]]))
    left = {file.stem for file in engine.receipts.iterdir()}
    assert left == {"notes", path.stem, others[3], *others[11:]}
    assert (len(left), len(list(engine.receipts.iterdir()))) == (22, 43)


def test_another_process_is_another_boot(engine: Engine) -> None:
    receipt.save(str(engine.receipts), engine.read())
    engine.start("")
    rotate(engine.log)
    found = engine.read()
    assert (found.ledger["status"], found.notes) == ("absent", [])


def test_no_process_has_no_receipt(engine: Engine) -> None:
    receipt.save(str(engine.receipts), engine.read())
    rotate(engine.log)
    engine.end()
    assert (engine.read().ledger["status"], engine.read().notes) == ("absent", [])


def test_an_older_boot_has_no_receipt(engine: Engine) -> None:
    receipt.save(str(engine.receipts), engine.read())
    rotate(engine.log)
    assert engine.read(boot=0).ledger["status"] == "absent"


def test_a_boot_that_still_loads_has_none_and_gets_none(engine: Engine) -> None:
    engine.start("".join(HEALTHY.read_text().splitlines(keepends=True)[:20]))
    loading = engine.read()
    assert (loading.ledger["reason"]["code"], loading.notes) == ("not_ready", [])
    receipt.save(str(engine.receipts), loading)
    assert [file.suffix for file in engine.receipts.iterdir()] == [".log"]


def rewrite(path: pathlib.Path, **changes: t.Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda log, _kept: log.write_text(log.read_text().replace("2.01 GiB", "9.01 GiB")), "was changed after"),
        (lambda log, _kept: os.truncate(log, 900), "is not whole"),
        (lambda log, _kept: log.unlink(), "No such file"),
        (lambda log, _kept: (log.unlink(), log.symlink_to(HEALTHY)), "cannot be read"),
        (lambda _log, kept: rewrite(kept, flags={"vram-kv-mib": "9999"}), "was changed after"),
        (lambda _log, kept: rewrite(kept, schema="kvfleet.radiance/receipt/2"), "of another shape"),
        (lambda _log, kept: rewrite(kept, fingerprint="0123456789ab"), "of another receipt"),
        (lambda _log, kept: os.truncate(kept, 100), "is not whole"),
        (lambda _log, kept: kept.write_text("[]"), "of another shape"),
        (lambda _log, kept: kept.write_text("[" * 100_000), "is not whole"),
        (lambda _log, kept: kept.unlink(), "without its .json"),  # killed between the two
    ],
)
def test_a_damaged_receipt_is_named_and_not_used(
    engine: Engine, damage: t.Callable[[pathlib.Path, pathlib.Path], None], said: str
) -> None:
    log = pathlib.Path(receipt.save(str(engine.receipts), engine.read()))
    damage(log, log.with_suffix(".json"))
    rotate(engine.log)
    found = engine.read()
    assert found.ledger["status"] == "absent"
    assert len(found.notes) == 1
    assert said in found.notes[0]
    assert log.name in found.notes[0]


def test_a_receipt_of_another_command_line_is_not_used(engine: Engine) -> None:
    whole = engine.read()
    receipt.save(str(engine.receipts), whole)
    # The same process has become another program: its flags are what tells it.
    found = receipt.find(str(engine.receipts), whole._replace(ledger={**whole.ledger, "flags": {"vram-kv-mib": "1"}}))
    assert found.reading is None
    assert "another command line" in found.notes[0]


def podman(put_program: PutProgram, told: pathlib.Path, log: str) -> None:
    put_program("podman", f"case $1 in container) cat {told} ;; --log-level=error) {log} ;; esac")


@pytest.mark.parametrize("log", ["echo 'Error: cannot read logs' >&2; exit 125", ":", f"tail -n 30 {HEALTHY}"])
def test_a_lost_boot_of_a_container(put_program: PutProgram, tmp_path: pathlib.Path, log: str) -> None:
    podman(put_program, TOLD, f"cat {HEALTHY}")
    whole = read_boot("podman", name="flashnext")
    receipt.save(str(tmp_path), whole)
    podman(put_program, TOLD, log)
    assert read_boot("podman", name="flashnext").ledger["status"] != "complete"
    found = read_boot("podman", name="flashnext", receipts=str(tmp_path)).ledger
    assert found["source"] == {**whole.ledger["source"], "kind": "receipt"}
    assert {**found, "source": None} == {**whole.ledger, "source": None}
    for key, value in (("Id", "b" * 64), ("State", {"StartedAt": "2026-11-29T19:31:09.271146746Z"})):
        told = json.loads(TOLD.read_text())
        told[0][key] = {**told[0][key], **value} if isinstance(value, dict) else value
        other = tmp_path / "other.told"
        other.write_text(json.dumps(told))
        podman(put_program, other, log)
        assert read_boot("podman", name="flashnext", receipts=str(tmp_path)).ledger["status"] != "complete"


def test_a_container_that_ended_has_no_receipt(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    told = json.loads(STOPPED.read_text())
    told[0]["State"].update(Running=True, Pid=os.getpid())
    (tmp_path / "running.told").write_text(json.dumps(told))
    podman(put_program, tmp_path / "running.told", f"cat {HEALTHY}")
    receipt.save(str(tmp_path), read_boot("podman", name="kept"))
    podman(put_program, STOPPED, ":")
    found = read_boot("podman", name="kept", receipts=str(tmp_path))
    assert found.ledger["reason"]["code"] == "container_absent"


def test_a_lost_boot_of_a_unit(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    def unit(invocation: str, journal: str) -> None:
        shown = f"Id=x.service LoadState=loaded ActiveState=active SubState=running InvocationID={invocation}"
        put_program("systemctl", f"printf '%s\\n' {shown}")
        put_program("journalctl", journal)

    unit("9ab33127a628458496da25cd04d0713b", f"cat {HEALTHY}")
    whole = read_boot("journald", name="x")
    receipt.save(str(tmp_path), whole)
    for journal in (":", "echo no; exit 1", f"tail -n 30 {HEALTHY}"):
        unit("9ab33127a628458496da25cd04d0713b", journal)
        found = read_boot("journald", name="x", receipts=str(tmp_path)).ledger
        assert (found["source"]["kind"], found["fingerprint"]) == ("receipt", whole.ledger["fingerprint"])
        unit("7a35230bbe324740a9229ac215670c00", journal)
        assert read_boot("journald", name="x", receipts=str(tmp_path)).ledger["status"] != "complete"


def test_a_folder_that_is_not_there_or_cannot_be_read(engine: Engine) -> None:
    engine.receipts.rmdir()
    rotate(engine.log)
    assert (engine.read().ledger["status"], engine.read().notes) == ("absent", [])
    engine.receipts.write_text("")
    assert "cannot be read (Not a directory)" in engine.read().notes[0]
