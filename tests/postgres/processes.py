"""Servers as child processes that never outlive the tests, and never run as root."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Final

ENVIRONMENT: Final[Mapping[str, str]] = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""Nothing of the caller's: a PGPORT or PGOPTIONS set there must not reach our servers."""

STARTING: Final = 60.0
"""Seconds that a server may take to start or to end: one that recovers from a crash takes long on a slow disk."""

LAST_WILL: Final = """
read -r line && exit
kill -QUIT "$0"
while kill -0 "$0" 2>/dev/null; do sleep 0.1; done
rm -rf "$1"
"""
"""Waits for a line, or for the end of the tests, even by kill -9: then the pipe closes, and server and folder go too."""


@dataclass(frozen=True)
class Account:
    """Who runs the servers: another than ourselves, or None."""

    user: int | None = None
    group: int | None = None
    groups: Sequence[int] | None = None


@cache
def find_account() -> Account:
    """A throw-away account if we are root, as PostgreSQL refuses to run as root; else ourselves."""
    if os.geteuid() != 0:
        return Account()
    for name in ("nobody", "postgres", "daemon"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, ())
    raise RuntimeError("Expected to run a server for the tests, but root has no account to run it. Add a user 'nobody'.")


def run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command to its end under the account of the servers. Raises with its output if it fails."""
    account = find_account()
    done = subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        user=account.user,
        group=account.group,
        extra_groups=account.groups,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Expected {command[0]} to succeed, but it ended with {done.returncode}:\n{done.stdout}")


class Child:
    """A server process that we started: the only one that we signal. It ends with the tests, however they end."""

    def __init__(self, command: Sequence[str | Path], *, folder: Path, log: IO[bytes]) -> None:
        account = find_account()
        # A session of its own: Ctrl-C reaches the tests, which then stop the server in their order.
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=ENVIRONMENT,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._will = subprocess.Popen(
            ["/bin/sh", "-c", LAST_WILL, str(self.pid), str(folder)],
            cwd="/",
            env=ENVIRONMENT,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Of the server's first process."""
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self, how: signal.Signals, *, timeout: float = 60) -> None:
        """Send the signal and wait for the end. If it does not come in time, kill and say so. Twice does no harm."""
        # The will goes first: it must not find another process under the number of ours.
        if self._will.poll() is None:
            self._will.communicate(b"\n")
        if not self.is_running():
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise


@cache
def find_open_place() -> Path:
    """A folder for temporary files that the account of the servers may enter."""
    places = [Path(place).resolve() for place in (tempfile.gettempdir(), "/tmp", "/var/tmp")]
    for place in places:
        if find_account().user is None or all(above.stat().st_mode & 0o001 for above in (place, *place.parents)):
            return place
    raise RuntimeError("Expected to make a folder for a server, but all are closed to it. Point TMPDIR to an open one.")


def make_folder(prefix: str) -> Path:
    """A new folder that belongs to the account of the servers, at a place where it may go."""
    account = find_account()
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=find_open_place()))
    if account.user is not None and account.group is not None:
        os.chown(folder, account.user, account.group)
    return folder


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def pick_port() -> int:
    """A free port of loopback, below those that the system gives to clients.

    Were it among those, a client could be given it while the server is down for a restart.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
