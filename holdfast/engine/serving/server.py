"""Takes calls of other processes for the engine that owns a database file.

Theory of operation
-------------------
Each connection has one task that reads frames in order, and one task per call that is under way. Calls begin in the order in
which they came, so signals of one client keep their order. What one client does bounds only itself:

- At most `MOST_CALLS` calls of a connection are under way; until one ends, no further frame is read, and the sender's writes
  wait. Waits for results do not count: they cost a future each, and `MOST_WAITS` of them are taken.
- A call has at most as many bytes as the engine's largest payload and some room. A frame that is none, or too long, gets an
  error and ends its connection, and no other.
- Answers are written one part at a time; a client that reads none of them for `STALLED` seconds is cut off.

Programs that tidy up temporary folders may remove the socket while the engine lives. It is looked for every `LOOK_INTERVAL`
seconds; if it is gone, there is another at a new place, which is announced. Connections that are there stay.

When a client goes away its waits end. Other calls go on: they were accepted, and may be half done.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.core import codec
from holdfast.core.instants import to_micros
from holdfast.engine.deployment_views import DefinitionList
from holdfast.engine.handles import WorkflowHandle
from holdfast.engine.incident_views import IncidentList
from holdfast.engine.serving.frames import (
    LONGEST_HELLO,
    LONGEST_PART,
    PROTOCOL,
    Frame,
    FrameKind,
    MalformedFrame,
    make_frame,
    read_frame,
)
from holdfast.engine.serving.messages import (
    Call,
    DefinitionPage,
    Hello,
    IncidentPage,
    Page,
    StalePage,
    Started,
    TaskPage,
    Welcome,
    encode_error,
    is_signed,
    sign,
)
from holdfast.engine.serving.places import BACKLOG, HAS_UNIX_SOCKETS, kept_from_children, may_call, open_place, read_peer
from holdfast.engine.stale_views import StaleList
from holdfast.engine.task_views import TaskList
from holdfast.engine.use_cases.searching import ExecutionList
from holdfast.engine.verbs import Verbs
from holdfast.errors import ConnectionRefused, HoldfastError, InvalidArguments, ProcessNotStartable, UnknownWorkflow
from holdfast.log_events import LogEvent, tag
from holdfast.version import __version__

if TYPE_CHECKING:
    import socket

    from holdfast.engine.serving.places import ListeningPlace
    from holdfast.store.endpoints import OwnedStore

log = logging.getLogger("holdfast.serving")

MOST_CONNECTIONS: Final = 1_000
MOST_CALLS: Final = 256
MOST_WAITS: Final = 20_000
GREETING_TIME: Final = 10.0
"""Seconds within which a client has to have said who it is."""
STALLED: Final = 60.0
"""Seconds after which a client that reads no answer is cut off."""
LOOK_INTERVAL: Final = 2.0
"""Seconds between two looks whether the socket is still there."""
LONGEST_LOOK_INTERVAL: Final = 60.0
"""The same, while there is no place for another."""
STEPS_OF_AN_ACCEPT: Final = 5
"""How often the loop comes round, at most, until a connection that it has accepted is served."""
WAIT_VERBS: Final = frozenset({"update", "update_with_start", "wait_for_change", "wait_for_ending", "wait_for_result"})
"""Verbs that wait for something to happen: they end when their client goes away. An update that was accepted goes on."""

Verb = Callable[..., Awaitable[Any]]


def list_verbs(verbs: Verbs) -> dict[str, Verb]:
    """The verbs of the protocol by name, bound to whoever takes them. Those for handles alone are among them."""
    names = [name for name, _ in inspect.getmembers(Verbs, inspect.iscoroutinefunction)]
    return {name: getattr(verbs, name) for name in names}


class ClientServer:
    """Serves the verbs to clients on this machine, at a place that is announced beside the database."""

    def __init__(
        self,
        verbs: Mapping[str, Verb],
        longest_payload: int,
        *,
        prefers_unix: bool = HAS_UNIX_SOCKETS,
        stalled: float = STALLED,
        look_interval: float = LOOK_INTERVAL,
    ) -> None:
        self._verbs = verbs
        self._longest = longest_payload + 1024 * 1024
        self._prefers_unix = prefers_unix
        self._stalled = stalled
        self._look_interval = look_interval
        self._looking: asyncio.Task[None] | None = None
        self._place: ListeningPlace | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._is_closed = False

    async def open(self, store: OwnedStore) -> None:
        """Begin to take calls. If there is no place for it, the log says so, and the engine goes on without clients."""
        if await self._listen(store):
            self._looking = asyncio.get_running_loop().create_task(self._keep_place(store), name="holdfast-serving")

    async def _listen(self, store: OwnedStore) -> bool:
        try:
            self._place = open_place(prefers_unix=self._prefers_unix)
            serve = partial(self._serve, self._place.token)
            self._server = await asyncio.start_server(serve, sock=self._place.listener, limit=LONGEST_PART, backlog=BACKLOG)
            store.announce(self._place.endpoint)
        except (OSError, NotImplementedError, HoldfastError) as error:
            log.warning(
                "other processes cannot reach '%s' through this one, which owns it: %s",
                store.path,
                error,
                extra=tag(LogEvent.CLIENTS_NOT_SERVED),
            )
            await self._leave_place()
            return False
        return True

    async def _keep_place(self, store: OwnedStore) -> None:
        """See to it that clients find this process, though others tidy up temporary folders: one look at two files."""
        pause = self._look_interval
        while True:
            await asyncio.sleep(pause)
            store.keep_announced()
            if self._place is not None and self._place.is_there:
                continue
            await self._leave_place()
            is_back = await self._listen(store)
            pause = self._look_interval if is_back else min(2 * pause, LONGEST_LOOK_INTERVAL)
            if is_back:
                log.warning(
                    "the socket by which other processes reach '%s' was removed: there is another one now",
                    store.path,
                    extra=tag(LogEvent.SOCKET_REPLACED),
                )

    async def stop(self) -> None:
        """Take no more connections. Those that are there get answers until `close`."""
        if self._looking is not None:
            self._looking.cancel()
        await self._leave_place()

    async def _leave_place(self) -> None:
        if self._place is not None:
            self._place.hide()
        for _ in range(STEPS_OF_AN_ACCEPT):
            await asyncio.sleep(0)  # asyncio forgets, unclosed, a connection that it accepts while its server is closed
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._place is not None:
            self._place.close()
            self._place = None

    def leave(self) -> None:
        """Listen no longer, although the loop is gone: whoever is connected finds nobody there."""
        if self._place is not None:
            self._place.close()
            self._place = None

    async def close(self) -> None:
        """End all connections, after the answers that are due."""
        self._is_closed = True
        await self.stop()
        for connection in list(self._connections):
            await connection.close()

    async def _serve(self, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:
            writer.transport.abort()
            return
        connection = _Connection(reader, writer, self._verbs, self._longest, self._stalled)
        self._connections.add(connection)
        try:
            sock: socket.socket = writer.get_extra_info("socket")
            if len(self._connections) > MOST_CONNECTIONS:
                connection.refuse("this process has as many connections as it takes")
            elif not may_call(read_peer(sock)):
                connection.refuse("it belongs to another user")
            else:
                with kept_from_children(sock):
                    if await connection.greet(token):
                        await connection.run()
        finally:
            self._connections.discard(connection)
            await connection.end()


class _Connection:
    """One client's connection: reads its calls, runs them, and writes their answers."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        verbs: Mapping[str, Verb],
        longest: int,
        stalled: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._verbs = verbs
        self._longest = longest
        self._stalled = stalled
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._waits: set[int] = set()
        self._room = asyncio.Semaphore(MOST_CALLS)
        self._writing = asyncio.Lock()

    # --- greeting ---

    def refuse(self, reason: str) -> None:
        """Tell the client why it is cut off."""
        error = ConnectionRefused(f"Expected to speak to the process that owns the database, but {reason}.")
        self._writer.write(make_frame(FrameKind.ERROR, 0, encode_error(error)))
        log.warning("a client was cut off: %s", reason, extra=tag(LogEvent.CLIENT_CUT_OFF))

    async def greet(self, token: str) -> bool:
        """Find out whether the client speaks this protocol and, where there is a token, knows it."""
        nonce = secrets.token_hex(16) if token else ""
        try:
            async with asyncio.timeout(GREETING_TIME):
                hello = await self._read_hello()
                if hello is None:
                    return False
                proof = sign(token, "server", hello.nonce) if token else ""
                welcome = Welcome(PROTOCOL, __version__, self._longest, nonce, proof)
                self._writer.write(make_frame(FrameKind.WELCOME, 0, msgspec.json.encode(welcome)))
                if not token:
                    return True
                hello = await self._read_hello()
        except TimeoutError:
            self.refuse("the client did not say who it is")
            return False
        if hello is not None and not is_signed(hello.proof, token, "client", nonce):
            self.refuse("the client does not know the token")
            return False
        return hello is not None

    async def _read_hello(self) -> Hello | None:
        try:
            frame = await read_frame(self._reader, LONGEST_HELLO)
            if frame is None:
                return None
            if frame.kind is not FrameKind.HELLO:
                raise MalformedFrame(f"the first frame is of kind {frame.kind.name}")
            hello = msgspec.json.decode(frame.body, type=Hello)
        except (MalformedFrame, msgspec.MsgspecError) as error:
            self.refuse(f"what the client sent is no greeting: {error}")
            return None
        if hello.protocol != PROTOCOL:
            self.refuse(f"it speaks version {PROTOCOL} of the protocol (Holdfast {__version__}), not {hello.protocol}")
            return None
        return hello

    # --- calls ---

    async def run(self) -> None:
        """Take calls until the client goes away, or sends something that is no frame."""
        try:
            while (frame := await read_frame(self._reader, self._longest)) is not None:
                await self._take(frame)
                if self._writer.transport.is_closing():
                    return  # it was cut off: what it sent and nobody has read yet is not begun
        except (MalformedFrame, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.refuse(f"what the client sent cannot be read: {error}")

    async def _take(self, frame: Frame) -> None:
        if frame.kind is FrameKind.CANCEL:
            if frame.number in self._waits:
                self._calls[frame.number].cancel()
            return
        if frame.kind is not FrameKind.CALL or frame.number in self._calls or not frame.number:
            raise MalformedFrame(f"a frame of kind {frame.kind.name} with number {frame.number} was not expected")
        call = msgspec.json.decode(frame.body, type=Call)
        is_wait = call.verb in WAIT_VERBS
        if is_wait and len(self._waits) >= MOST_WAITS:
            error = InvalidArguments(f"Expected at most {MOST_WAITS} waits of one client, but there are more. Use another.")
            await self._write([make_frame(FrameKind.ERROR, frame.number, encode_error(error))])
            return
        if is_wait:
            self._waits.add(frame.number)
        else:
            await self._room.acquire()
        # Each begins before the next frame is read: what a client sends in order is accepted in order.
        task = asyncio.get_running_loop().create_task(self._answer(frame.number, call))
        self._calls[frame.number] = task
        task.add_done_callback(lambda _: self._on_answered(frame.number, is_wait=is_wait))

    def _on_answered(self, number: int, *, is_wait: bool) -> None:
        del self._calls[number]
        if is_wait:
            self._waits.discard(number)
        else:
            self._room.release()

    async def _answer(self, number: int, call: Call) -> None:
        try:
            frames = _make_answer(number, codec.encode(await self._call(call)))
        except HoldfastError as error:
            frames = [make_frame(FrameKind.ERROR, number, encode_error(error))]
        except Exception as error:
            log.exception("a call of a client failed: %s", call.verb, extra=tag(LogEvent.CLIENT_CALL_FAILED))
            wrapped = HoldfastError(f"Expected to {call.verb}, but {type(error).__name__}: {error}. See the engine's log.")
            frames = [make_frame(FrameKind.ERROR, number, encode_error(wrapped))]
        await self._write(frames)

    async def _call(self, call: Call) -> Any:
        verb = self._verbs.get(call.verb)
        if verb is None:
            raise InvalidArguments(
                f"Expected a verb, but '{call.verb}' is none. Use the same version of Holdfast on both sides."
            )
        payloads: Any = call.payloads
        if call.is_bound and call.positional:
            positional = [*call.positional[:-1], BoundWorkflow(call.positional[-1], payloads or (), {})]
        else:
            positional = [*call.positional, *(payloads or ())]
        lengths = {name: _read_length(name, value) for name, value in call.seconds.items()}
        named = {**call.named, **call.times, **lengths}
        if call.retry is not None:
            named["retry"] = call.retry
        if call.reference is not None:
            named["business_reference"] = call.reference
        try:
            inspect.signature(verb).bind(*positional, **named)
        except TypeError as error:
            raise InvalidArguments(f"Expected arguments of '{call.verb}', but {error}.") from None
        try:
            result = await verb(*positional, **named)
        except UnknownWorkflow as error:
            raise tell_caller(error) from None
        if isinstance(result, WorkflowHandle):
            return Started(result.workflow_id, result.execution_id or "", result.created)
        if isinstance(result, ExecutionList):
            return Page(list(result), result.cursor)
        if isinstance(result, TaskList):
            return TaskPage(list(result), result.cursor)
        if isinstance(result, DefinitionList):
            return DefinitionPage(list(result), result.cursor)
        if isinstance(result, StaleList):
            return StalePage(list(result), result.cursor)
        if isinstance(result, IncidentList):
            return IncidentPage(list(result), result.cursor)
        return result

    async def _write(self, frames: list[bytes]) -> None:
        """Write an answer, part by part, each as soon as the client has taken what was written before."""
        try:
            for frame in frames:
                async with self._writing, asyncio.timeout(self._stalled):
                    if self._writer.transport.is_closing():
                        return  # it is gone, or was cut off: asyncio would log each frame that is written to it
                    self._writer.write(frame)
                    await self._writer.drain()
        except TimeoutError:
            log.warning("a client was cut off: it reads no answers", extra=tag(LogEvent.CLIENT_CUT_OFF))
            self._writer.transport.abort()
        except OSError:
            return  # it is gone

    # --- ending ---

    async def close(self) -> None:
        """Let calls that are under way be answered, and end the connection."""
        for number in self._waits:
            self._calls[number].cancel()
        if self._calls:
            await asyncio.wait(list(self._calls.values()), timeout=1.0)
        self._writer.close()

    async def end(self) -> None:
        """The client is gone, or is to go: nobody waits any more. One that only sends no more gets the answers due soon."""
        for number in list(self._waits):
            self._calls[number].cancel()
        if self._calls and not self._writer.transport.is_closing():
            await asyncio.wait(list(self._calls.values()), timeout=1.0)
        try:
            async with asyncio.timeout(1.0):
                await self._writer.drain()
        except (TimeoutError, OSError):
            pass
        self._writer.close()


def tell_caller(error: UnknownWorkflow) -> UnknownWorkflow:
    """The same error for somebody who calls the engine from another process, and cannot register anything with it."""
    if isinstance(error, ProcessNotStartable):
        return error  # whoever calls can deploy or enable it
    version = "" if error.version is None else f"version '{error.version}' of "
    return UnknownWorkflow(
        f"Expected the process that owns the database to have {version}workflow '{error.workflow}', but it has not (it has: "
        f"{', '.join(error.known) or 'none'}). Check the name, or start that process with code that has it.",
        workflow=error.workflow,
        version=error.version,
        known=error.known,
    )


def _read_length(name: str, seconds: float) -> timedelta:
    """A length of time as it travels. Those that are negative or too long are refused by the verb, with the same error."""
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        to_micros(seconds, f"{name}=…")
        raise


def _make_answer(number: int, body: bytes) -> list[bytes]:
    parts = [body[at : at + LONGEST_PART] for at in range(0, len(body), LONGEST_PART)]
    *first, last = parts
    return [*(make_frame(FrameKind.PART, number, part) for part in first), make_frame(FrameKind.ANSWER, number, last)]
