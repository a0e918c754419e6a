"""Activities that run in worker processes: arguments and results travel as JSON, exceptions as failures.

A thread waits for the answer of each process. Other than a thread, a process can be ended: so it is, as soon as nobody waits
for its function any more. It ends itself when the engine's process has ended, however that did.

That a process has ended is told by the system, not by its pipes: processes that its function has forked hold those open.
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
import threading
import weakref
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from holdfast.activities.definitions import Activity
from holdfast.core.failures import Failure, describe_exception, find_retry_after, list_kinds
from holdfast.core.instants import Micros
from holdfast.core.payloads import Payload
from holdfast.core.signatures import Signature
from holdfast.engine.activities.threads import ActivityThreads
from holdfast.errors import InvalidArguments, PayloadError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class FunctionPath(NamedTuple):
    """Where a worker process finds the function of an activity."""

    module: str
    qualname: str
    activity: str


class ProcessReturned(msgspec.Struct, frozen=True, tag=True):
    """The answer of a worker process whose function returned."""

    result: Payload


class ProcessRaised(msgspec.Struct, frozen=True, tag=True):
    """The answer of a worker process whose function raised an exception, or whose result cannot be encoded."""

    failure: Failure
    kinds: tuple[str, ...] = ()
    retry_after_us: Micros | None = None


class RaisedElsewhere(Exception):
    """The function raised in its process or thread. Failures travel where the exception itself cannot, or must not."""

    def __init__(self, failure: Failure, kinds: tuple[str, ...] = (), retry_after_us: Micros | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.kinds = kinds
        self.retry_after_us = retry_after_us


class WorkerGone(Exception):
    """A worker process had ended, or was just ending, when it was asked: it has called nothing."""


REAPING_SECONDS: Final = 5.0
"""How long a thread waits for a process that has ended to be gone."""
_ANSWER: Final[msgspec.json.Decoder[ProcessReturned | ProcessRaised]] = msgspec.json.Decoder(ProcessReturned | ProcessRaised)


class WorkerProcess:
    """A process that calls one function after the other, as it is asked."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), name="holdfast-activity")
        self._process.start()
        theirs.close()
        end = _open_end(self._process.pid)
        self._end: int = self._process.sentinel if end is None else end
        """What is ready when the process has ended."""
        if end is not None:
            weakref.finalize(self, os.close, end)
        _alive.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether the process can be asked: something else may have ended it while it was idle."""
        return self._process.is_alive()

    def ask(self, path: FunctionPath, arguments: bytes, limit: int) -> bytes:
        """Let the process call a function, and wait for its answer.

        Raises BrokenProcessPool if the process dies; WorkerGone if it did before it began.
        """
        has_begun = False
        try:
            self._connection.send((path, arguments, limit))
            self._receive()
            has_begun = True
            return self._receive()
        except (EOFError, OSError):
            pass
        wait([self._end], REAPING_SECONDS)
        self._process.is_alive()  # asks the system, and so removes the last of it
        if not has_begun:
            raise WorkerGone
        raise BrokenProcessPool(f"Expected activity '{path.activity}' to end in its process, but the process ended first.")

    def _receive(self) -> bytes:
        wait([self._connection, self._end])
        if not self._connection.poll():
            raise EOFError
        return self._connection.recv_bytes()

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        _alive.discard(self)
        self._process.kill()


def _open_end(pid: int | None) -> int | None:
    """A descriptor that is ready when a process has ended; None where the system has none of those."""
    if sys.platform != "linux" or pid is None:
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # not allowed in this container, or the process has ended already
        return None


_alive: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


@atexit.register
def _kill_all() -> None:
    """Python waits for its processes before it ends: those of an engine that was not shut down may never end."""
    for worker in list(_alive):
        worker.kill()


class ProcessPool:
    """Worker processes, started when they are needed, as many as are needed at once; up to `most` are kept for later."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: list[WorkerProcess] = []
        self._threads = ActivityThreads(most)
        self._is_closed = False

    async def call(self, activity: Activity[..., Any], arguments: Payload, limit: int) -> Payload:
        """Run an activity's function. Raises RaisedElsewhere, or BrokenProcessPool if its process died.

        If this is cancelled, the process is ended.
        """
        function = activity.function
        path = FunctionPath(function.__module__, function.__qualname__, activity.name)
        worker, answer = await self._ask(path, bytes(arguments.data), limit)
        if self._is_closed or len(self._idle) >= self._most:
            worker.kill()
        else:
            self._idle.append(worker)
        outcome = _ANSWER.decode(answer)
        if isinstance(outcome, ProcessRaised):
            raise RaisedElsewhere(outcome.failure, outcome.kinds, outcome.retry_after_us)
        return outcome.result

    async def _ask(self, path: FunctionPath, arguments: bytes, limit: int) -> tuple[WorkerProcess, bytes]:
        """The answer of a process, with that process: an idle one, unless those are gone, else a new one."""
        while True:
            idle = self._take_idle()
            worker = idle or await self._threads.call(WorkerProcess)
            try:
                return worker, await self._threads.call(partial(worker.ask, path, arguments, limit))
            except WorkerGone:
                worker.kill()
                if idle is None:
                    raise BrokenProcessPool(
                        f"Expected a process to run activity '{path.activity}', but a new one ended at once."
                    ) from None
            except BaseException:
                worker.kill()
                raise

    def _take_idle(self) -> WorkerProcess | None:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            worker.kill()
        return None

    def close(self) -> None:
        """End the idle processes; the others end when their calls do, or are cancelled."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().kill()
        self._threads.close()


# --- in the worker process ---


def serve(connection: Connection) -> None:
    """Call functions as the engine asks, until that has ended. Ctrl-C is for the engine, which then ends its processes."""
    signal.signal(signal.SIGINT, _ignore)
    threading.Thread(target=_end_with_engine, name="holdfast-parent", daemon=True).start()
    while True:
        try:
            path, arguments, limit = connection.recv()
            connection.send_bytes(b"begun")
            connection.send_bytes(run_in_worker(path, arguments, limit))
        except (EOFError, OSError):
            return


def _end_with_engine() -> None:
    """End this process when that of the engine is gone, whatever the function does: nobody hears of it any more."""
    engine = parent_process()
    if engine is not None:
        engine.join()
        os._exit(1)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing. Unlike SIG_IGN, this does not reach the processes that a function starts."""


def run_in_worker(path: FunctionPath, arguments: bytes, limit: int) -> bytes:
    """Find the function, call it, and answer ProcessReturned or ProcessRaised as JSON."""
    outcome: ProcessReturned | ProcessRaised
    try:
        outcome = ProcessReturned(_call(path, arguments, limit))
    except (InvalidArguments, PayloadError) as error:
        outcome = ProcessRaised(msgspec.structs.replace(describe_exception(error), non_retryable=True))
    except BaseException as error:  # noqa: BLE001 - whatever user code raises is recorded, SystemExit too
        outcome = ProcessRaised(describe_exception(error), list_kinds(error), find_retry_after(error))
    return msgspec.json.encode(outcome)


def _call(path: FunctionPath, arguments: bytes, limit: int) -> Payload:
    found: Any = importlib.import_module(path.module)
    for part in path.qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, Activity):  # the module keeps the plain function and decorates it under another name
        signature, function = Signature(found, f"activity '{path.activity}'", skip=0, takes_extra=True), found
    else:
        signature, function = found.signature, found.function
    result = signature.call(function, signature.decode_arguments(Payload(msgspec.Raw(arguments))))
    return signature.encode_result(result, limit)
