"""The places where asyncio itself takes an order from memory addresses, in versions that do not.

Tasks and futures of the workflow loop hash the same on every replay, so asyncio's sets of them (`wait`, `TaskGroup`) are in
order already. What remains:

- `as_completed` starts coroutines in the order of a set of them: here, in the order given;
- `all_tasks` fills its set in the order of a set that holds the tasks of all loops: here, by hash;
- the future of `gather` is not made by the loop, so it hashes by address: here, as the loop's own futures do.

Ordinary loops keep the originals.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable

T = TypeVar("T")

ORIGINALS: Final = {"asyncio.all_tasks": asyncio.all_tasks, "asyncio.as_completed": asyncio.as_completed}
"""asyncio's own, which a name may still be bound to (`from asyncio import as_completed`)."""

_loop_type: type[Any] | None = None


def set_loop_type(loop_type: type[Any]) -> None:
    """Name the class of loops that get the ordered versions."""
    global _loop_type  # noqa: PLW0603 - asyncio is one for the process
    _loop_type = loop_type


def install() -> None:
    """Put the ordered versions into asyncio. More calls do nothing."""
    for module in (asyncio, asyncio.tasks):
        for function in (all_tasks, as_completed):
            setattr(module, function.__name__, function)
    asyncio.tasks._GatheringFuture.__hash__ = _hash_gathering  # type: ignore[attr-defined]


def _is_ordered(loop: asyncio.AbstractEventLoop | None) -> bool:
    return _loop_type is not None and isinstance(loop, _loop_type)


@functools.wraps(asyncio.as_completed)
def as_completed(fs: Iterable[Awaitable[Any]], *, timeout: float | None = None) -> Any:
    if _is_ordered(asyncio._get_running_loop()):
        return Completions(fs, timeout)
    return ORIGINALS["asyncio.as_completed"](fs, timeout=timeout)  # type: ignore[operator]


@functools.wraps(asyncio.all_tasks)
def all_tasks(loop: asyncio.AbstractEventLoop | None = None) -> set[asyncio.Task[Any]]:
    found: set[asyncio.Task[Any]] = ORIGINALS["asyncio.all_tasks"](loop)  # type: ignore[operator]
    if _is_ordered(loop or asyncio._get_running_loop()):
        by_hash = sorted(found, key=hash)
        return set(by_hash)  # in order even where two hashes meet: a set remembers which came first
    return found


def _hash_gathering(self: asyncio.Future[Any]) -> int:
    loop = self.get_loop()
    if not _is_ordered(loop):
        return object.__hash__(self)
    order: int | None = getattr(self, "_holdfast_order", None)
    if order is None:
        order = hash(loop.create_future())
        self._holdfast_order = order  # type: ignore[attr-defined]
    return order


class Completions(Generic[T]):
    """What `as_completed` gives: starts the awaitables in the order given, and yields in the order of completion.

    As a plain iterator it yields coroutines that give the next result; as an async iterator, the finished futures
    themselves. Both work on every version of Python, and the awaitables start at once, as they do since 3.13.
    """

    def __init__(self, awaitables: Iterable[Awaitable[T]], timeout: float | None) -> None:
        if inspect.isawaitable(awaitables):
            raise TypeError(f"expects an iterable of awaitables, not {type(awaitables).__name__}")
        loop = asyncio.get_running_loop()
        self._done: asyncio.Queue[asyncio.Future[T] | None] = asyncio.Queue()
        # Dicts, as sets that keep their order.
        futures = (asyncio.ensure_future(one, loop=loop) for one in dict.fromkeys(awaitables))
        self._todo: dict[asyncio.Future[T], None] = dict.fromkeys(futures)
        self._left = len(self._todo)
        self._timer: asyncio.TimerHandle | None = None
        for future in self._todo:
            future.add_done_callback(self._complete)
        if self._todo and timeout is not None:
            self._timer = loop.call_later(timeout, self._give_up)

    def __iter__(self) -> Completions[T]:
        return self

    def __next__(self) -> Coroutine[Any, Any, T]:
        if not self._left:
            raise StopIteration
        self._left -= 1
        return self._next_result()

    def __aiter__(self) -> Completions[T]:
        return self

    async def __anext__(self) -> asyncio.Future[T]:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return await self._next_future()

    async def _next_result(self) -> T:
        return (await self._next_future()).result()

    async def _next_future(self) -> asyncio.Future[T]:
        future = await self._done.get()
        if future is None:
            raise TimeoutError
        return future

    def _complete(self, future: asyncio.Future[T]) -> None:
        if future not in self._todo:
            return  # the time was over first
        del self._todo[future]
        self._done.put_nowait(future)
        if not self._todo and self._timer is not None:
            self._timer.cancel()

    def _give_up(self) -> None:
        for future in self._todo:
            future.remove_done_callback(self._complete)
            self._done.put_nowait(None)
        self._todo.clear()
