"""Calls for a SQLite file: through the process that owns it, or on the file itself while nobody does.

Theory of operation
-------------------
Who owns the file, and where that process takes calls, is written beside it. A call goes there. While nobody owns the file,
reads are done on it read-only, and what changes something makes this process the owner for as long as such calls last.

Owners come and go meanwhile. A call of which nothing was sent, or which the owner refused because it was ending, is made
again, for `PATIENCE` seconds without an owner that has it. One that was sent and not answered is made again only if that is
safe: it changes nothing, or it carries a request id or an idempotency key. Any other raises OutcomeUnknown.

What a turn of an execution answers, only an engine that owns the file can answer. While nobody owns it, updates raise
NobodyAnswers; but one that an owner had got waits for the next, as other calls do. A step of a human task is put into the
inbox of its execution. Then the file is given back, so that an engine can come, and the call is made again there under its
request id, or one that was made up for it: so it joins the step. If an engine came and went unnoticed, the answer is found
in the file.

Calls are sent in the order in which they are made: whoever comes while others wait for the connection waits behind them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from holdfast.client.direct import DirectVerbs
from holdfast.client.file_queries import FileQueries
from holdfast.client.left_steps import StepLeft
from holdfast.client.links import Link, LinkLost, connect
from holdfast.client.reaches import Ask
from holdfast.client.socket_verbs import SocketVerbs
from holdfast.core.instants import SECOND, Duration, to_micros
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnBlocked
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.use_cases.result_waits import check_on_blocked, tell_blocked
from holdfast.engine.verbs import Verbs
from holdfast.engine.views import ExecutionInfo, describe_wait
from holdfast.errors import (
    AnswerTimedOut,
    ConnectionRefused,
    EngineClosed,
    NobodyAnswers,
    OutcomeUnknown,
    ResultTimedOut,
    StoreOwned,
)
from holdfast.store.sqlite.opening import require_file
from holdfast.store.sqlite.ownership import Owner, read_owner
from holdfast.store.sqlite.taking_turns import refuse_if_wanted

T = TypeVar("T")

PATIENCE: Final = 20.0
"""Seconds for which a call is tried while an owner begins or ends. An engine that ends may take ten for its activities."""
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25
_WAIT_PAUSE: Final = 0.5
"""Seconds between two looks for an owner, or for the end of an execution, while nobody owns the file."""


class AnswerPatience:
    """How long a caller waits for an answer, through all owners that may give it. Begins with the first try."""

    def __init__(self, timeout: Duration | None) -> None:
        self._timeout = timeout
        self.seconds = 0.0 if timeout is None else to_micros(timeout, "the timeout") / SECOND
        """The whole time; of no account without a timeout."""
        self._ends_at: float | None = None

    def take(self) -> Duration | None:
        """The timeout for the next try: first the whole, then what is left."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self.seconds
            return self._timeout
        return None if self._timeout is None else max(0.0, self._ends_at - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the timeout."""
        return self._timeout is not None and self._ends_at is not None and time.monotonic() >= self._ends_at

    def shorten(self, pause: float) -> float:
        """A pause in seconds that ends with the timeout at the latest."""
        if self._timeout is None or self._ends_at is None:
            return pause
        return min(pause, max(0.0, self._ends_at - time.monotonic()))


class OwnedFile:
    """Takes calls to whoever owns a database file."""

    def __init__(self, path: Path, codec: PayloadCodec | None = None) -> None:
        self.path = path
        self._codec = codec
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._finders = 0
        """How many calls wait for a connection."""
        self._borrowing = asyncio.Lock()
        self._borrowed: DirectVerbs | None = None
        self._borrowers = 0
        self._calls = 0
        """How many calls are under way; waits for results are none."""
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._is_closed = False

    async def open(self) -> None:
        """See that there is a database. Raises DatabaseNotFound."""
        require_file(self.path)

    async def close(self) -> None:
        """End the connection, after the calls that are under way, as long as they may take. Waits raise EngineClosed."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._at_rest.wait()
        except TimeoutError:
            pass  # an owner that does not answer
        async with self._connecting:
            self._is_closed = True
            if self._link is not None:
                await self._link.close()

    async def read(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """Ask the owner, or read the file."""
        with self._under_way():
            return await self.watch(call)

    async def watch(self, call: Callable[[Verbs], Awaitable[T]]) -> T:
        """As `read`, for a call that may take long: closing does not wait for it."""

        async def read_file() -> T:
            queries: Any = FileQueries(self.path, self._codec)
            return await call(queries)

        return await self._call(call, read_file, is_safe=True)

    async def write(self, call: Callable[[Verbs], Awaitable[T]], *, is_safe: bool) -> T:
        """Let the owner do it, or become the owner for it. `is_safe`: doing it twice does no harm."""

        async def borrow() -> T:
            async with self._borrow() as verbs:
                return await call(verbs)

        with self._under_way():
            return await self._call(call, borrow, is_safe=is_safe)

    async def ask(self, call: Ask[T], *, key: str | None, timeout: Duration | None = None) -> T:
        """Let the owner do what a turn of an execution answers; a step of a human task waits for an owner."""
        patience = AnswerPatience(timeout)

        async def ask_owner(verbs: Verbs) -> T:
            try:
                return await call(verbs, key, patience.take())
            except EngineClosed:
                raise LinkLost(was_sent=True) from None  # the engine ended; a turn may have taken it before

        async def leave() -> T:
            async with self._borrow() as verbs:
                return await call(verbs, key, patience.take())

        try:
            with self._under_way():
                return await self._call(ask_owner, leave, is_safe=key is not None, patience=patience)
        except StepLeft as step:
            left = step
        return await self._join(call, left, patience)

    async def wait(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait for the end of an execution, whoever owns the file meanwhile, and while nobody does."""
        check_on_blocked("wait" if on_blocked is None else on_blocked)
        limit = None if timeout is None else to_micros(timeout, "the timeout of a result") / SECOND
        left, ends_at = limit, time.monotonic() + (limit or 0)
        is_told = False
        """Whether it was logged that the execution is blocked."""
        while True:
            link = await self._find_link()
            if link is not None:
                try:
                    verbs = SocketVerbs(link)
                    return await verbs.wait_for_result(target, hint, org=org, timeout=left, on_blocked=on_blocked)
                except (LinkLost, EngineClosed):
                    pass
            else:
                queries = FileQueries(self.path, self._codec)
                ending = await queries.find_ending(target, org=org)
                if ending is not None:
                    return ending.to_value(hint)
                info = await queries.find_last_run(target, org=org)
                if info.status is Status.BLOCKED and info.last_error is not None and not is_told:
                    error = tell_blocked(info, info.last_error, raises=on_blocked == "raise")
                    if error is not None:
                        raise error
                    is_told = True
                if limit is not None and left == 0.0:
                    raise self._make_timeout(info, limit)
            await asyncio.sleep(_WAIT_PAUSE if left is None else min(_WAIT_PAUSE, left))
            left = None if limit is None else max(0.0, ends_at - time.monotonic())

    # --- inside ---

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self._calls += 1
        self._at_rest.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._at_rest.set()

    async def _call(
        self,
        call: Callable[[Verbs], Awaitable[T]],
        without_owner: Callable[[], Awaitable[T]],
        *,
        is_safe: bool,
        patience: AnswerPatience | None = None,
    ) -> T:
        give_up, pause, was_sent = time.monotonic() + PATIENCE, _SHORTEST_PAUSE, False
        while True:
            link = self._link
            if self._finders or link is None or not link.is_open:
                link = await self._find_link()
            began = time.monotonic()
            try:
                if link is None:
                    return await without_owner()
                return await call(SocketVerbs(link))
            except LinkLost as lost:
                if lost.was_sent and not is_safe:
                    raise OutcomeUnknown(
                        f"Expected an answer of the process that owns '{self.path}', but it ended first. Look whether it "
                        "happened, then try again; a call with request_id=… is repeated by itself."
                    ) from None
                error: Exception = self._describe_silence(read_owner(self.path))
                was_sent = was_sent or lost.was_sent
                give_up += time.monotonic() - began  # an owner had it meanwhile
            except (StoreOwned, EngineClosed) as refusal:
                error = refusal if isinstance(refusal, StoreOwned) else self._describe_silence(read_owner(self.path))
            except NobodyAnswers as silence:
                if not was_sent:
                    raise
                error = silence if patience is None else self._make_unknown()
            if patience is not None and was_sent and patience.is_over:
                raise self._make_late(patience)
            if time.monotonic() > give_up:
                raise error
            await asyncio.sleep(pause if patience is None else patience.shorten(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _join(self, call: Ask[T], step: StepLeft, patience: AnswerPatience) -> T:
        """Wait for the answer to a step that is in an inbox, whoever owns the file meanwhile, and while nobody does."""
        while True:
            link = await self._find_link()
            try:
                if link is not None:
                    return await call(SocketVerbs(link), step.request_id, patience.take())
                if await FileQueries(self.path, self._codec).is_answered(step.reply_key):
                    with self._under_way():
                        async with self._borrow() as verbs:
                            return await call(verbs, step.request_id, patience.take())
            except (LinkLost, EngineClosed, StoreOwned, StepLeft):
                pass  # an owner ended, or another begins
            except AnswerTimedOut:
                raise self._make_late(patience, step) from None
            if patience.is_over:
                raise self._make_late(patience, step)
            await asyncio.sleep(patience.shorten(_WAIT_PAUSE))

    async def _find_link(self) -> Link | None:
        """A connection to the owner; None if nobody can be reached. Raises ConnectionRefused; EngineClosed after `close`."""
        self._finders += 1
        try:
            async with self._connecting:
                if self._is_closed:
                    raise EngineClosed("Expected an answer, but the client was closed meanwhile. Ask another.")
                if self._link is not None and self._link.is_open:
                    return self._link
                owner = read_owner(self.path)
                if owner is None or owner.endpoint is None:
                    return None
                try:
                    self._link = await connect(owner.endpoint)
                except (OSError, TimeoutError):
                    return None  # it ended without tidying up, or is about to
                return self._link
        finally:
            self._finders -= 1

    @asynccontextmanager
    async def _borrow(self) -> AsyncIterator[Verbs]:
        """Own the file while calls last: the first to come opens it, the last to go lets it go. Raises StoreOwned."""
        async with self._borrowing:
            if self._borrowed is None:
                verbs = DirectVerbs(f"sqlite:///{self.path}", codec=self._codec)
                await verbs.open()
                self._borrowed = verbs
            else:
                refuse_if_wanted(self.path)
            borrowed = self._borrowed
            self._borrowers += 1
        try:
            yield borrowed
        finally:
            self._borrowers -= 1
            if not self._borrowers:
                await asyncio.shield(self._give_back())

    async def _give_back(self) -> None:
        async with self._borrowing:
            if not self._borrowers and self._borrowed is not None:
                borrowed, self._borrowed = self._borrowed, None
                await borrowed.shutdown()

    def _make_timeout(self, info: ExecutionInfo, limit: float) -> ResultTimedOut:
        return ResultTimedOut(
            f"Expected execution '{info.workflow_id}' ({info.execution_id}) to end within {limit:g} s, but "
            f"{describe_wait(info)}, and nobody owns '{self.path}'. Start an engine, or wait for longer.",
            workflow_id=info.workflow_id,
            execution_id=info.execution_id,
        )

    def _make_late(self, patience: AnswerPatience, step: StepLeft | None = None) -> AnswerTimedOut:
        joining_id = "the same request_id" if step is None else f"request_id='{step.request_id}'"
        return AnswerTimedOut(
            f"Expected an answer within {patience.seconds:g} seconds, but no process that owned '{self.path}' gave it. It "
            f"may still be handled: see that the application runs, and call again with {joining_id}, which joins it."
        )

    def _make_unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"Expected an answer of the process that owned '{self.path}', but it ended first, and no other began within "
            f"{PATIENCE:g} seconds. Start the application, and call again with the same request_id, which joins the call."
        )

    def _describe_silence(self, owner: Owner | None) -> Exception:
        who = "the process that owns it" if owner is None else f"process {owner.pid} on host '{owner.host}', which owns it,"
        return ConnectionRefused(
            f"Expected to reach '{self.path}', but {who} does not answer. It may be of an older Holdfast, or on another "
            "machine: stop it, or ask there."
        )
