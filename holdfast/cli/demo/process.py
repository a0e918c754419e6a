"""The worker process as the storyteller sees it: started, asked, and killed by its process id."""

from __future__ import annotations

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Final, cast

from holdfast.cli.demo.messages import Answer, Ready, Request, RequestAccepted, RequestRefused, decode_answer, encode_line
from holdfast.engine.views import RecoveryReport
from holdfast.errors import HoldfastError

LOG = "worker.log"
GRACE_SECONDS: Final = 5.0
"""How long a worker that is abandoned may take to shut its engine down."""


class Worker:
    """A running worker process. Its own output goes into a log file beside the database."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process = process
        self._stdin, self._stdout = cast("StreamWriter", process.stdin), cast("StreamReader", process.stdout)
        self._log = log
        self.report = RecoveryReport(0, 0, 0, 0, 0, 0)

    @classmethod
    async def start(cls, folder: Path, pace: float) -> Worker:
        """Start one and wait until its engine is open."""
        log = folder / LOG
        with log.open("ab") as stderr:
            command = (sys.executable, "-m", "holdfast.cli.demo.worker", str(folder), str(pace))
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=stderr)
        worker = cls(process, log)
        ready = await worker.listen()
        if isinstance(ready, Ready):
            worker.report = ready.report
        return worker

    @property
    def pid(self) -> int:
        """The operating system's id of the worker process."""
        return self._process.pid

    async def ask(self, request: Request) -> Answer:
        """Send a request and wait for its answer."""
        self.tell(request)
        return await self.listen()

    async def deliver(self, request: Request) -> RequestAccepted:
        """Send something that must be accepted."""
        answer = await self.ask(request)
        if not isinstance(answer, RequestAccepted):
            raise self._complain(f"it answered {answer}")
        return answer

    def tell(self, request: Request) -> None:
        """Send a request and do not wait: nobody knows what becomes of it."""
        self._stdin.write(encode_line(request))

    async def listen(self) -> Answer:
        """The next answer. Raises HoldfastError if there is none, or a refusal."""
        line = await self._stdout.readline()
        if not line:
            raise self._complain("it ended")
        answer = decode_answer(line)
        if isinstance(answer, RequestRefused):
            raise self._complain(answer.reason)
        return answer

    async def kill(self) -> None:
        """SIGKILL: the process has no chance to do anything any more."""
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Close its standard input, upon which it shuts its engine down, and wait for its end."""
        self._stdin.close()
        await self._process.wait()

    async def abandon(self) -> None:
        """Make sure that nothing is left behind, whatever happened: also no socket, which it removes if it is let end."""
        if self._process.returncode is None:
            try:
                await asyncio.wait_for(self.stop(), GRACE_SECONDS)
            except TimeoutError:
                await self.kill()

    def _complain(self, reason: str) -> HoldfastError:
        lines = self._log.read_text(errors="replace").splitlines()
        last = f" The last of its log: {lines[-1]}" if lines else ""
        return HoldfastError(f"Expected worker process {self.pid} to do its part, but {reason.rstrip('.')}.{last}")
