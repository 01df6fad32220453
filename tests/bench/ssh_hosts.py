# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An SSH server in this process that is many hosts, and counts what each of them is asked.

Every user that comes in is a host: a folder of its own is its HOME, where commands run in a real /bin/sh. Only one
key comes in. There is no sftp: files go through commands (``ansible_ssh_transfer_method: piped``).
"""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import shlex
import socket
import subprocess
import threading
import typing as t

import paramiko

PIECE = 65536


class _Host(paramiko.ServerInterface):
    """One connection: who it is for is the user that came in."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.user = ""

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if key != self._hosts.key or not (self._hosts.homes / username).is_dir():
            return paramiko.AUTH_FAILED
        self.user = username
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_env_request(self, channel: paramiko.Channel, name: bytes, value: bytes) -> bool:
        return True

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._hosts.asked[self.user] += 1
        threading.Thread(target=self._run, args=(channel, command), daemon=True).start()
        return True

    def _run(self, channel: paramiko.Channel, command: bytes) -> None:
        home = self._hosts.homes / self.user
        process = subprocess.Popen(
            ["/bin/sh", "-c", os.fsdecode(command)],
            cwd=home,
            env={"HOME": str(home), "USER": self.user, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert process.stdin and process.stdout and process.stderr
        threading.Thread(target=_feed, args=(channel, process.stdin), daemon=True).start()
        errors = threading.Thread(target=_drain, args=(process.stderr, channel.sendall_stderr), daemon=True)
        errors.start()
        _drain(process.stdout, channel.sendall)
        errors.join()
        with contextlib.suppress(OSError):
            channel.send_exit_status(process.wait() & 0xFF)
            channel.close()


def _feed(channel: paramiko.Channel, stdin: t.IO[bytes]) -> None:
    """What the client writes, to its end."""
    with contextlib.suppress(OSError), stdin:
        while piece := channel.recv(PIECE):
            stdin.write(piece)


def _drain(stream: t.IO[bytes], send: t.Callable[[bytes], None]) -> None:
    """What a command writes, to its end, or until the client is gone."""
    with contextlib.suppress(OSError), stream:
        while piece := stream.read(PIECE):
            send(piece)


class Hosts:
    """The server. ``asked`` has the commands of each host since the start."""

    def __init__(self, folder: pathlib.Path, names: t.Sequence[str]) -> None:
        self.folder, self.names, self.homes = folder, names, folder / "homes"
        self.asked: collections.Counter[str] = collections.Counter()
        for name in names:
            (self.homes / name).mkdir(parents=True)
        for part in ("host", "client"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(folder / part)]
            subprocess.run(argv, check=True)
        self.key = paramiko.Ed25519Key(filename=str(folder / "client"))
        self._host_key = paramiko.Ed25519Key(filename=str(folder / "host"))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=len(names))
        self.port = self._listener.getsockname()[1]
        known = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {known}\n")
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(client)
            transport.add_server_key(self._host_key)
            with contextlib.suppress(paramiko.SSHException):
                # With an event it does not wait for the handshake.
                transport.start_server(event=threading.Event(), server=_Host(self))

    def inventory(self, control: pathlib.Path) -> dict[str, t.Any]:
        """How Ansible's own ssh comes to the hosts, with its control sockets in this folder."""
        options = [f"UserKnownHostsFile={self.folder / 'known_hosts'}", "IdentitiesOnly=yes", "BatchMode=yes"]
        return {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": "{{ inventory_hostname }}",
            "ansible_ssh_private_key_file": str(self.folder / "client"),
            "ansible_ssh_common_args": " ".join(f"-o {shlex.quote(option)}" for option in options),
            "ansible_ssh_transfer_method": "piped",
            "ansible_control_path_dir": str(control),
        }

    def close(self) -> None:
        """Nobody comes in any more."""
        self._listener.close()
