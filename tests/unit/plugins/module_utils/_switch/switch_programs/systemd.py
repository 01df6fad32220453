# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of systemd, as far as a switch asks it: systemctl, journalctl and loginctl. Units are started,
watched and restarted, and their output is kept. In ``host/``::

    unit.json        name, scope, exec, and optional: restart (a delay in seconds), timeout_stop, timeout_start (it is
                     of Type=notify, and ended after so many seconds where a file loads says that it does), output
                     (false: not in the journal), forgets (a unit that ended well loses its invocation), outdated (its
                     file has changed since it was read), files (how its file stands, enabled without it)
    etc/systemd/user where a user's units lie: those that are wanted by the unit run before each start of it, and the
                     drop-ins of the unit after each end
    linger           what loginctl tells of the user: yes or no; without it nothing
    state.json       how the unit stands; supervisor is the process that watches it
    asked/           stop, start: what the supervisor is to do
    journal/ID       what the unit's processes wrote in the invocation ID
    after.VERB       a list of {NAME: times}, of which each systemctl VERB takes the first into fails.NAME
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from host import TICK, alive, called, end, fails, load, path, put, remove, some_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

DOWN = {
    "active": "inactive",
    "sub": "dead",
    "result": "success",
    "main": 0,
    "code": 0,
    "status": 0,
    "invocation": "",
    "restarts": 0,
    "job": 0,
    "supervisor": 0,
}


def state() -> dict[str, t.Any]:
    return load("state.json") or dict(DOWN)


def change(**fields: t.Any) -> None:
    put({**state(), **fields}, "state.json")


def watched() -> bool:
    return alive(state()["supervisor"])


def systemctl(words: list[str]) -> None:
    scope = "user" if words[0] == "--user" else "system"
    words = [word for word in words if word not in ("--user", "--no-pager", "--no-ask-password", "--no-block", "--")]
    verb, name, unit = words[0], words[-1], load("unit.json")
    if verb in ("daemon-reload", "enable", "list-jobs") or "--property=UnitPath" in words:
        manage(verb, name, unit)
        return
    known = name == unit["name"] and scope == unit["scope"]
    if verb == "show":
        show(words, name, unit if known else None)
        return
    if not known:
        end(5, f"Failed to {verb} {name}: Unit {name} not loaded.")
    arms = load("after." + verb)
    if arms:
        for program, times in arms.pop(0).items():
            put(times, "fails." + program)
        put(arms, "after." + verb)
    if verb == "start":
        start()
    elif verb == "stop":
        if watched():
            put(1, "asked", "stop")
    elif verb == "kill":
        if state()["main"]:
            os.kill(state()["main"], signal.SIGKILL)
    elif verb == "reset-failed":
        if state()["active"] == "failed":
            put(dict(DOWN) if unit.get("forgets") else {**state(), "active": "inactive", "sub": "dead"}, "state.json")
    else:
        end(1, f"Unknown command verb {verb}.")


def etc(*names: str) -> str:
    return path("etc", "systemd", "user", *names)


def manage(verb: str, name: str, unit: dict[str, t.Any]) -> None:
    """What concerns systemd as a whole, and the units that are not the service's."""
    if fails("units"):
        end(1, "Failed to connect to bus: Connection refused")
    if verb == "show":
        print(path("etc", "systemd", "user.control"), etc())
    elif verb == "enable":
        wants = etc(unit["name"] + ".wants")
        os.makedirs(wants, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(etc(name), os.path.join(wants, name))
    elif verb == "list-jobs":
        if os.path.exists(path("asked", "stop")):
            print("  12 {} stop running".format(unit["name"]))
        print("  13 other.service stop waiting")


def lines(file: str) -> dict[str, str]:
    with open(file, encoding="utf-8") as opened:
        return dict(line.rstrip("\n").partition("=")[::2] for line in opened if "=" in line)


def run_line(line: str, **environment: str) -> None:
    """A command line as systemd reads it, for what is quoted in one."""
    import subprocess

    words, word, quoted = [], "", False
    text = iter(line.lstrip("-+"))
    for letter in text:
        if letter == '"':
            quoted = not quoted
        elif letter == "\\":
            word += next(text)
        elif letter in "$%":
            assert next(text) == letter, "it means something to systemd"
            word += letter
        elif letter == " " and not quoted:
            words, word = [*words, word], ""
        else:
            word += letter
    subprocess.run([*words, word], check=False, env={**os.environ, **environment})


def before_start(unit: dict[str, t.Any]) -> None:
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(etc(unit["name"] + ".wants"))):
            found = lines(etc(name))
            if os.path.exists(found["ConditionPathExists"].replace("%%", "%")):
                run_line(found["ExecStart"])


def after_end(unit: dict[str, t.Any], stopped: bool, status: int) -> None:
    well = status == 0 or status == -signal.SIGTERM
    told = {
        "SERVICE_RESULT": "success" if well else "signal" if status < 0 else "exit-code",
        "EXIT_CODE": "killed" if status < 0 else "exited",
        "EXIT_STATUS": signal.Signals(-status).name[3:] if status < 0 else str(status),
    }
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(etc(unit["name"] + ".d"))):
            run_line(lines(etc(unit["name"] + ".d", name))["ExecStopPost"], **told)


def show(words: list[str], name: str, unit: dict[str, t.Any] | None) -> None:
    if fails("systemctl"):
        end(1, "Failed to connect to bus: Connection refused")
    if "--property=ExecStart" in words:
        argv = unit["exec"] if unit else None
        print("{{ path={} ; argv[]={} ; ignore_errors=no ; pid=0 }}".format(argv[0], " ".join(argv)) if argv else "")
        return
    if "--property=EnvironmentFiles" in words:
        print((unit or {}).get("env_files", ""))
        return
    now = state() if unit else DOWN
    told = {
        "Id": name,
        "LoadState": "loaded" if unit else "not-found",
        "ActiveState": now["active"],
        "SubState": now["sub"],
        "Result": now["result"],
        "MainPID": now["main"],
        "ExecMainCode": now["code"],
        "ExecMainStatus": now["status"],
        "InvocationID": now["invocation"],
        "NRestarts": now["restarts"],
        "Type": "notify" if unit and "timeout_start" in unit else "exec",
        "TimeoutStartUSec": "1min 30s" if unit and "timeout_start" in unit else "infinity",
        "Job": now["job"] or "",
        "NeedDaemonReload": "yes" if unit and unit.get("outdated") else "no",
        "UnitFileState": (unit or {}).get("files", "enabled") if unit or os.path.exists(etc(name)) else "",
        "WantedBy": "",
    }
    for key, value in told.items():
        print(f"{key}={value}")


def start() -> None:
    import subprocess

    if watched():
        put(1, "asked", "start")
        return
    remove("asked", "stop")
    remove("asked", "start")
    nowhere = subprocess.DEVNULL
    words = [sys.executable, "-S", "-E", os.path.abspath(__file__)]
    child = subprocess.Popen(words, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True)
    change(job=1, supervisor=child.pid)


def supervise() -> None:
    """Run the unit until it is down for good."""
    unit = load("unit.json")
    while not watched():
        time.sleep(TICK)
    restarts = 0
    while True:
        before_start(unit)
        stopped, status = invoke(unit, restarts)
        change(active="deactivating", sub="stop-post", main=0)
        after_end(unit, stopped, status)
        ending = {"main": 0, "code": 2 if status < 0 else 1, "status": abs(status)}
        well = status == 0 or (stopped and status == -signal.SIGTERM)
        if not stopped and "restart" in unit:
            result = "success" if well else "exit-code"
            change(active="activating", sub="auto-restart", result=result, **ending)
            until = time.monotonic() + unit["restart"]
            while time.monotonic() < until and not os.listdir(path("asked")):
                time.sleep(TICK)
            remove("asked", "start")
            if not os.path.exists(path("asked", "stop")):
                restarts += 1
                continue
            well = True
        if not stopped and os.path.exists(path("asked", "start")):
            remove("asked", "start")
            restarts = 0
            continue
        if not well:
            change(
                active="failed", sub="failed", result="exit-code" if status > 0 else "signal", supervisor=0, **ending
            )
        elif unit.get("forgets"):
            put(dict(DOWN), "state.json")
        else:
            change(active="inactive", sub="dead", result="success", supervisor=0, **ending)
        return


def invoke(unit: dict[str, t.Any], restarts: int) -> tuple[bool, int]:
    """One invocation: whether it was to be stopped, and the main process's status."""
    import subprocess

    invocation = some_id(32)
    output = os.devnull if unit.get("output") is False else path("journal", invocation)
    with open(output, "ab") as file:
        child = subprocess.Popen(
            unit["exec"], stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/", start_new_session=True
        )
    change(
        active="active",
        sub="running",
        result="success",
        main=child.pid,
        code=0,
        status=0,
        invocation=invocation,
        restarts=restarts,
        job=0,
    )
    killed_at = None
    late_at = time.monotonic() + unit["timeout_start"] if "timeout_start" in unit else None
    while child.poll() is None:
        if late_at is not None and time.monotonic() >= late_at and os.path.exists(path("loads")):
            late_at = None
            with open(path("journal", invocation + ".systemd"), "w", encoding="utf-8") as file:
                file.write("{}: start operation timed out. Terminating.\n".format(unit["name"]))
            child.terminate()
        if killed_at is None and os.path.exists(path("asked", "stop")):
            change(active="deactivating", sub="stop-sigterm")
            child.terminate()
            killed_at = time.monotonic() + unit.get("timeout_stop", 60)
        if killed_at is not None and time.monotonic() >= killed_at:
            child.kill()
        time.sleep(TICK)
    return killed_at is not None, child.returncode


def journalctl(words: list[str]) -> None:
    if fails("journalctl"):
        end(1, "No journal files were opened due to insufficient permissions.")
    matches = dict(word.split("=", 1) for word in words if not word.startswith("-"))
    told = matches.get("INVOCATION_ID") or matches.get("USER_INVOCATION_ID")
    if told is not None:
        with contextlib.suppress(FileNotFoundError), open(path("journal", told + ".systemd"), encoding="utf-8") as said:
            sys.stdout.write(said.read())
        return
    # Without this match conmon's own copies are there as well.
    times = 1 if matches.get("_TRANSPORT") == "stdout" else 2
    file = path("journal", matches["_SYSTEMD_INVOCATION_ID"])
    if os.path.exists(file):
        with open(file, encoding="utf-8") as printed:
            text = printed.read()
        # A line that is not whole yet is not there yet.
        for line in text.split("\n")[:-1]:
            sys.stdout.write((line + "\n") * times)


def loginctl(words: list[str]) -> None:
    linger = load("linger")
    if linger is None or words[:1] != ["show-user"]:
        end(1, "Failed to connect to bus")
    print(linger)


def main(name: str) -> None:
    words = sys.argv[1:]
    called(name, words)
    {"systemctl": systemctl, "journalctl": journalctl, "loginctl": loginctl}[name](words)


if __name__ == "__main__":
    supervise()
