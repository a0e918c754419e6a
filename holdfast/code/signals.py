"""The signal queues of one program: FIFO per name, buffered before they are asked for."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from holdfast.code.loop import WorkflowFuture
from holdfast.core import payloads
from holdfast.core.commands import RejectSignal, UntakenSignal
from holdfast.core.decoders import is_known
from holdfast.errors import DecodingError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.code.loop import WorkflowLoop
    from holdfast.core.instants import Micros

T = TypeVar("T")

_NOTHING: Any = object()


class Race(NamedTuple):
    """A wait for the first of several things, of which a signal is one."""

    winner: asyncio.Future[Any]
    """Once this is done, nothing may be taken for the others."""
    settle: Callable[[asyncio.Future[Any]], None]
    """Ends the race with the signal as the winner."""


class SignalFuture(WorkflowFuture[Any]):
    """A wait for the next signal of a name. Once it has ended, it is not among those who wait any more."""

    def __init__(self, queues: SignalQueues, loop: WorkflowLoop, name: str, hint: Any, race: Race | None) -> None:
        super().__init__(loop)
        self._queues = queues
        self.name = name
        self.label = f"a wait for signal '{name}'"
        self.hint = hint
        self.race = race
        self.ticket = 0
        """Its place among those who wait; 0 if it does not have to."""

    def cancel(self, msg: Any | None = None) -> bool:
        """End the wait: the next signal is not for it."""
        if not super().cancel(msg):
            return False
        self._queues.forget(self)
        return True

    def expire(self) -> None:
        """End the wait with TimeoutError: no signal came in time."""
        if not self.done():
            self._queues.forget(self)
            self.set_exception(TimeoutError(f"no signal '{self.name}' came in time"))


class DrainedSignals(list[T]):
    """What `drain_signals` took: a list, at once. It may be awaited too, which gives the same as a plain list."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, list[T]]:
        yield from ()  # a generator that ends at once
        return list(self)


class SignalQueues:
    """What arrived and was not taken, and who waits."""

    def __init__(self, issuer: CommandIssuer) -> None:
        self._issuer = issuer
        self._buffers: dict[str, deque[tuple[int, UntakenSignal]]] = {}
        """What was not taken yet, by name, with the number of its arrival."""
        self._arrivals = 0
        self._waiters: dict[str, OrderedDict[int, SignalFuture]] = {}
        """Who waits for the signals of each name, by ticket, in the order in which they began to."""
        self._tickets = 0
        self._last_headers: dict[str, dict[str, str]] = {}
        """The headers of the signal that was taken last, by name; only where it had some."""

    def receive(self, signal: UntakenSignal) -> None:
        """A signal arrived: the first who waits gets it, else it is buffered."""
        name = signal.name
        waiters = self._waiters.get(name)
        while waiters:
            future = next(iter(waiters.values()))
            if future.done() or (future.race is not None and future.race.winner.done()):
                self.forget(future)
                continue
            decoded = self._decode(signal, future.hint)
            if decoded is not _NOTHING:
                self.forget(future)
                future.set_result(decoded)
                if future.race is not None:
                    future.race.settle(future)  # at once: the next signal may come before any callback runs
            return
        self._arrivals += 1
        self._buffers.setdefault(name, deque()).append((self._arrivals, signal))

    def wait(self, name: str, hint: Any, timeout: Micros | None, race: Race | None = None) -> SignalFuture:
        """The next signal, at once if one is buffered. `race`: what it is one side of."""
        self._issuer.read_only.check("wait for a signal")
        self._check_hint(name, hint)
        future = SignalFuture(self, self._issuer.loop, name, hint, race)
        value = self.take(name, hint)
        if value is not _NOTHING:
            future.set_result(value)
            return future
        self._tickets = future.ticket = self._tickets + 1
        self._waiters.setdefault(name, OrderedDict())[future.ticket] = future
        if timeout is not None:
            handle = self._issuer.loop.call_at((self._issuer.loop.now + timeout) / 1_000_000, future.expire)
            future.add_done_callback(lambda _: handle.cancel())
            future.is_awaited = False  # not by the code
        return future

    def forget(self, future: SignalFuture) -> None:
        """A wait has ended: nothing is kept of it."""
        waiters = self._waiters.get(future.name)
        if waiters is not None:
            waiters.pop(future.ticket, None)
            if not waiters:
                del self._waiters[future.name]

    def take(self, name: str, hint: Any) -> Any:
        """The next buffered signal that fits, or `_NOTHING`; those that do not fit go to the dead letters."""
        buffer = self._buffers.get(name)
        while buffer:
            decoded = self._decode(buffer.popleft()[1], hint)
            if decoded is not _NOTHING:
                return decoded
        return _NOTHING

    def drain(self, name: str, hint: Any) -> DrainedSignals[Any]:
        """Take every buffered signal of a name whose value fits the hint."""
        self._issuer.read_only.check("take signals")
        self._check_hint(name, hint)
        taken: DrainedSignals[Any] = DrainedSignals()
        while (value := self.take(name, hint)) is not _NOTHING:
            taken.append(value)
        return taken

    def count(self, name: str) -> int:
        """How many signals are buffered under a name."""
        return len(self._buffers.get(name, ()))

    def is_missing(self, value: Any) -> bool:
        """Whether `take` answered that no signal was buffered."""
        return value is _NOTHING

    def headers_of(self, name: str) -> dict[str, str]:
        """The headers of the signal of a name that was taken last; none before the first."""
        return dict(self._last_headers.get(name, {}))

    def untaken(self) -> tuple[UntakenSignal, ...]:
        """Everything buffered, in the order of arrival: what a continued run takes along."""
        untaken = {number: signal for buffer in self._buffers.values() for number, signal in buffer}
        return tuple(untaken[number] for number in sorted(untaken))

    def waiting(self) -> tuple[str, ...]:
        """The names of the signals that workflow code waits for."""
        return tuple(
            name for name, waiters in self._waiters.items() if any(not future.done() for future in waiters.values())
        )

    def open_futures(self) -> list[SignalFuture]:
        """The waits that are not over, by name and in the order in which they began."""
        return [future for waiters in self._waiters.values() for future in waiters.values() if not future.done()]

    def list_ignored(self) -> list[str]:
        """The waits that the code began, never awaited and leaves behind, in words; the code has ended."""
        return [one.label for one in self.open_futures() if not one.is_awaited and one.race is None]

    def release(self) -> None:
        """Let go of the program, which is closed."""
        del self._issuer
        self._buffers.clear()
        self._waiters.clear()

    def _check_hint(self, name: str, hint: Any) -> None:
        if not is_known(hint):
            self._issuer.values.check_hint(hint, "signal", name)

    def _decode(self, signal: UntakenSignal, hint: Any) -> Any:
        name, value, headers = signal
        try:
            decoded = payloads.decode(value, hint, f"the value of signal '{name}'")
        except DecodingError as error:
            self._issuer.values.note_undecodable(error, is_replaying=self._issuer.is_replaying)
            self._issuer.issue(RejectSignal(name=name, value=value, reason=error.message, headers=headers))
            return _NOTHING
        if headers or self._last_headers:
            self._last_headers[name] = headers
        return decoded
