"""What a client does with an engine, be it one of its own or another process's, by way of a socket.

A SQLite database has one process. Whoever else wants something of it asks that process: `serve` listens there, and a
`RemoteEngine` asks. When the process ends, what was asked of it may or may not have happened: `OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from holdfast import Engine, Workflow
from holdfast.errors import HoldfastError, OutcomeUnknown, StoreUnavailable

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one question or answer."""


class Caller(Protocol):
    """The part of an engine that clients use."""

    async def start(
        self, workflow: Workflow[..., Any], *args: Any, workflow_id: str, idempotency_key: str | None = None
    ) -> Any: ...

    async def signal_workflow(
        self, target: str, signal_name: str, signal_value: Any = None, *, request_id: str | None = None
    ) -> Any: ...

    async def query_status(self, target: str) -> Any: ...

    async def terminate(self, target: str, reason: str = "") -> bool: ...


class Question(msgspec.Struct):
    """A call of one method of the engine."""

    id: int
    method: str
    args: list[Any]
    options: dict[str, Any]


class Answer(msgspec.Struct):
    """What came of it: a value, or the name of an exception and its message."""

    id: int
    value: Any = None
    error: str = ""
    message: str = ""


class Status(msgspec.Struct):
    """The part of an `ExecutionInfo` that is sent."""

    status: str
    last_error: str | None


# --- in the process that has the database ---


async def serve(engine: Engine, path: str) -> asyncio.Server:
    """Listen on a socket, and do with the engine what is asked for."""
    Path(path).unlink(missing_ok=True)  # of the process before this one
    tasks: set[asyncio.Task[None]] = set()

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        question = msgspec.json.decode(line, type=Question)
        try:
            found = Answer(question.id, await _ask(engine, question))
        except HoldfastError as error:
            found = Answer(question.id, None, type(error).__name__, str(error))
        writer.write(msgspec.json.encode(found) + b"\n")

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            task = asyncio.create_task(answer(line, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return await asyncio.start_unix_server(listen, path, limit=LONGEST_LINE)


async def _ask(engine: Engine, question: Question) -> Any:
    match question.method:
        case "start":
            return (await engine.start(*question.args, **question.options)).execution_id
        case "result":
            return await engine.handle(*question.args).result()
        case "query_status":
            info = await engine.query_status(*question.args)
            return Status(info.status, None if info.last_error is None else str(info.last_error))
        case "signal_workflow":
            await engine.signal_workflow(*question.args, **question.options)
            return None
        case "terminate":
            return await engine.terminate(*question.args)
    raise AssertionError(f"Expected a method that clients use, but got {question.method!r}.")


# --- in the client ---


class RemoteHandle:
    """An execution in the database of another process."""

    def __init__(self, engine: RemoteEngine, execution_id: str, hint: Any) -> None:
        self._engine = engine
        self._hint = hint
        self.execution_id = execution_id

    async def result(self) -> Any:
        return msgspec.convert(await self._engine.ask("result", self.execution_id), self._hint)


class RemoteEngine:
    """A `Caller` that asks another process. Connects whenever it has to."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ids = itertools.count()
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def start(
        self, workflow: Workflow[..., Any], *args: Any, workflow_id: str, idempotency_key: str | None = None
    ) -> RemoteHandle:
        execution_id = await self.ask(
            "start", workflow.name, *args, workflow_id=workflow_id, idempotency_key=idempotency_key
        )
        return RemoteHandle(self, execution_id, workflow.signature.result_hint)

    async def signal_workflow(
        self, target: str, signal_name: str, signal_value: Any = None, *, request_id: str | None = None
    ) -> None:
        await self.ask("signal_workflow", target, signal_name, signal_value, request_id=request_id)

    async def query_status(self, target: str) -> Status:
        return msgspec.convert(await self.ask("query_status", target), Status)

    async def terminate(self, target: str, reason: str = "") -> bool:
        return bool(await self.ask("terminate", target, reason))

    async def ask(self, method: str, *args: Any, **options: Any) -> Any:
        """Raises StoreUnavailable if nobody listens, OutcomeUnknown if the process ends before it answers."""
        writer = await self._connect()
        question = Question(next(self._ids), method, list(args), options)
        future = self._asked[question.id] = asyncio.get_running_loop().create_future()
        writer.write(msgspec.json.encode(question) + b"\n")
        answer = await future
        if answer.error in ("OutcomeUnknown", "StoreUnavailable"):
            raise {"OutcomeUnknown": OutcomeUnknown, "StoreUnavailable": StoreUnavailable}[answer.error](answer.message)
        if answer.error:
            raise RuntimeError(f"{answer.error}: {answer.message}")
        return answer.value

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _connect(self) -> asyncio.StreamWriter:
        async with self._lock:
            if self._writer is None:
                try:
                    reader, self._writer = await asyncio.open_unix_connection(self._path, limit=LONGEST_LINE)
                except OSError as error:
                    raise StoreUnavailable(
                        f"Expected a process to listen at {self._path}, but none does: {error}."
                    ) from error
                self._reading = asyncio.create_task(self._read(reader, self._writer))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = msgspec.json.decode(line, type=Answer)
                future = self._asked.pop(answer.id)
                if not future.done():
                    future.set_result(answer)
        except OSError:
            pass  # the process has ended
        finally:
            writer.close()
            self._writer = None
            asked, self._asked = self._asked, {}
            for future in asked.values():
                if not future.done():
                    future.set_exception(OutcomeUnknown("Expected an answer, but the process that was asked has ended."))
