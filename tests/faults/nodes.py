"""Nodes as processes: started, killed, frozen and let go on by the tests, each by its own id."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psutil

from tests.eventually import eventually

ROOT: Final = Path(__file__).parents[2]
HEARTBEAT: Final = 0.3
LEASE: Final = 1.0
CALM_LEASE: Final = 3.0
"""Seconds. For tests in which nobody may be taken for dead: more than a process waits for a processor of a busy machine."""
LIFETIME: Final = 240
"""Seconds after which a node ends by itself."""
PATIENCE: Final = 60.0
"""Real seconds after which something that nodes should do is taken not to happen: several processes share the machine."""


class NodeProcess:
    """One process that is, or was, a node."""

    def __init__(self, config: dict[str, Any], log_path: Path) -> None:
        self.name: Final[str] = config["node"]
        self.log_path: Final = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.node", json.dumps(config)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it said."""
        return self.log_path.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def is_ready(self) -> bool:
        """Whether it is about to open."""
        return self._has_said("ready")

    def is_open(self) -> bool:
        """Whether it works."""
        return self._has_said("open")

    def _has_said(self, word: str) -> bool:
        assert self.exit_code is None, f"node {self.name} ended with {self.exit_code}:\n{self.log}"
        return word in self.log.splitlines()

    def tell(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """At once, without a goodbye. Returns when it is gone."""
        self.tell(signal.SIGKILL)
        self._process.wait(10)

    async def stop(self) -> None:
        """In good order."""
        self.tell(signal.SIGTERM)
        await eventually(lambda: self.exit_code is not None, f"node {self.name} to stop", PATIENCE)
        assert self.exit_code == 0, f"node {self.name} ended with {self.exit_code}:\n{self.log}"

    def find_ports(self) -> set[int]:
        """Its own ends of its connections: by these the server knows them."""
        return {one.laddr.port for one in psutil.Process(self.pid).net_connections("tcp") if one.raddr}


class Fleet:
    """The nodes of one test. Each start of a node is a new process with a log of its own."""

    def __init__(self, folder: Path, url: str, ledger_url: str, ledger: str, socket: str = "") -> None:
        """`socket` is where each node listens for clients, if it does."""
        self._folder = folder
        self._socket = socket
        self._url = url
        self._ledger_url = ledger_url
        self._ledger = ledger
        self.processes: list[NodeProcess] = []

    def start(
        self, node: str, *, clock_offset: float = 0.0, clock_after: float = 0.0, gate: Path | None = None, **options: Any
    ) -> NodeProcess:
        """Start a node's process, and do not wait for it. `gate` is a file for which it waits before it opens."""
        config = {
            "url": self._url,
            "ledger_url": self._ledger_url,
            "ledger": self._ledger,
            "socket": self._socket,
            "node": node,
            "options": {"heartbeat": HEARTBEAT, "lease": LEASE, "shutdown_grace": 2.0} | options,
            "lifetime": LIFETIME,
            "clock_offset": clock_offset,
            "clock_after": clock_after,
            "gate": None if gate is None else str(gate),
        }
        process = NodeProcess(config, self._folder / f"{len(self.processes):02d}-{node}.log")
        self.processes.append(process)
        return process

    async def open(self, *names: str, **options: Any) -> list[NodeProcess]:
        """Start nodes, and wait until they work."""
        started = [self.start(name, **options) for name in names]
        for process in started:
            await eventually(process.is_open, f"node {process.name} to open", PATIENCE)
        return started

    @property
    def alive(self) -> list[NodeProcess]:
        return [process for process in self.processes if process.exit_code is None]

    @property
    def logs(self) -> str:
        """What all of them said."""
        return "".join(process.log for process in self.processes)

    def describe(self, lines: int = 25) -> str:
        """The ends of the logs, for who looks into a failure."""
        parts = []
        for process in self.processes:
            tail = "\n".join(process.log.splitlines()[-lines:])
            state = "runs" if process.exit_code is None else f"ended with {process.exit_code}"
            parts.append(f"--- node {process.name}, process {process.pid} {state} ---\n{tail}")
        return "\n".join(parts)

    def close(self) -> None:
        """Kill those that are left."""
        for process in self.processes:
            process.kill()


class Supervisor(AbstractAsyncContextManager["Supervisor"]):
    """Starts each node again that ended, under its old name and with the same options."""

    def __init__(self, fleet: Fleet, nodes: list[NodeProcess], **options: Any) -> None:
        self._fleet = fleet
        self._nodes = nodes
        self._options = options
        self._task: asyncio.Task[None] | None = None
        self.ended: list[NodeProcess] = []
        """Those that ended, in order."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._supervise())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def exit_codes(self) -> list[int | None]:
        """With what they ended, in order."""
        return [node.exit_code for node in self.ended]

    async def _supervise(self) -> None:
        while True:
            for index, node in enumerate(self._nodes):
                if node.exit_code is not None:
                    self.ended.append(node)
                    self._nodes[index] = self._fleet.start(node.name, **self._options)
            await asyncio.sleep(0.02)
