"""Where the tasks of a program wait, and for what: found by walking their stacks, for people who ask.

A task rests at one future. Those of commands and signals are known by their types. Any other future is *local* if the user's
own code awaits it, or a lock, event or queue of asyncio that the user's code awaits: only other code of the program can end
that. What asyncio itself makes to wait for others (`gather`, `wait`, `TaskGroup`, `shield`, `sleep`) is not: the others are
found on their own.

Nothing of the user's runs: frames and futures are only looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.code.command_issuer import StepFuture
from holdfast.code.loop import DurableTimerHandle, WorkflowFuture, WorkflowTask
from holdfast.code.source_locations import place_of
from holdfast.core.program import LocalWait, SignalPlace, Waits

if TYPE_CHECKING:
    from types import FrameType

    from holdfast.code.published_waits import SubscriptionFuture
    from holdfast.code.signals import SignalFuture

_ASYNCIO: Final = asyncio.__name__
_LOCKS: Final = frozenset({"asyncio.locks", "asyncio.queues"})
"""The modules whose coroutines wait for what other code of the same loop does."""
_GROUPS: Final = frozenset({"asyncio.tasks", "asyncio.taskgroups"})
"""The modules whose coroutines wait for several futures, or for one with a timeout."""
_LINKS: Final = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))
"""By kind of coroutine: its frame, and what it awaits."""


class _Stack(NamedTuple):
    """Where a task stands: the innermost line of user code, and what of asyncio is below it."""

    place: str | None
    lock: str
    """The function of a lock, an event or a queue that is awaited; empty if none is."""
    is_users: bool
    """Whether the user's code itself awaits the future, without anything of asyncio or Holdfast between them."""
    awaited: Sequence[asyncio.Future[Any]]
    """The futures that asyncio awaits for the user's code: those of `wait`, `wait_for` and `TaskGroup`."""
    timer: int = 0
    """The number of the timer for which `asyncio.sleep` waits; 0 if it does not."""


def find_waits(
    tasks: Sequence[WorkflowTask[Any]], signals: Sequence[SignalFuture], published: Sequence[SubscriptionFuture] = ()
) -> Waits:
    """What these tasks wait for; `signals` and `published` are the waits for those that are not over."""
    stacks = [(task, getattr(task, "_fut_waiter", None), _read_stack(task.get_coro())) for task in tasks]
    places = _find_places(stacks)
    local: list[LocalWait] = []
    numbers: dict[int, str] = {}
    for task, future, stack in stacks:
        place = stack.place or places.get(id(task))
        if stack.timer and place is not None:
            numbers[stack.timer] = place
        if stack.lock:
            local.append(LocalWait(stack.lock, place, task.get_name()))
            continue
        for one in _list_awaited(future, stack):
            if isinstance(one, StepFuture) and place is not None:
                numbers[one.number] = place
            elif type(one) is WorkflowFuture and not _is_shield(one):
                local.append(LocalWait("Future", place, task.get_name()))
    awaited = [SignalPlace(one.name, places.get(id(one)) or places.get(id(one.race and one.race.winner))) for one in signals]
    for future in published:
        found = places.get(id(future)) or places.get(id(future.race and future.race.winner))
        if found is not None:
            numbers.setdefault(future.number, found)
    lines = (stack.place or places.get(id(task)) for task, _, stack in stacks)
    return Waits(tuple(awaited), tuple(local), numbers, tuple(dict.fromkeys(line for line in lines if line)))


def _find_places(stacks: Iterable[tuple[WorkflowTask[Any], Any, _Stack]]) -> dict[int, str]:
    """By the identity of a future: the line of user code that awaits it."""
    places: dict[int, str] = {}
    for _, future, stack in stacks:
        if stack.place is not None:
            for one in (future, *_list_awaited(future, stack)):
                places.setdefault(id(one), stack.place)
    return places


def _list_awaited(future: Any, stack: _Stack) -> list[asyncio.Future[Any]]:
    """The futures that a task awaits and that have not ended: one, or those that `gather` and its like stand for."""
    found = list(stack.awaited)
    if stack.is_users and future is not None:
        found += [future, *getattr(future, "_children", ())]  # `gather` has children
    return [one for one in found if not one.done()]


def _read_stack(coro: Any) -> _Stack:
    place: str | None = None
    lock, is_users, is_ours = "", True, False
    awaited: Sequence[asyncio.Future[Any]] = ()
    timer = 0
    for frame in _frames(coro):
        found = place_of(frame)
        if found:
            place, lock, is_users, is_ours, awaited = found, "", True, False, ()
            continue
        is_users = False
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_ASYNCIO):
            is_ours = True  # it waits for others in the name of the user's code, as `as_completed` does
        elif module in _LOCKS and not is_ours and (not lock or lock.startswith("_")):
            lock = frame.f_code.co_qualname
        elif module in _GROUPS:
            awaited = _read_group(frame)
            handle = frame.f_locals.get("h")  # as `asyncio.sleep` calls it
            timer = handle.number if isinstance(handle, DurableTimerHandle) else 0
    return _Stack(place, lock, is_users, awaited, timer)


def _read_group(frame: FrameType) -> Sequence[asyncio.Future[Any]]:
    """The futures that a function of asyncio waits for, by its own variables."""
    variables = frame.f_locals
    if frame.f_code.co_name in ("__aexit__", "_aexit"):
        found = getattr(variables.get("self"), "_tasks", ())
    else:
        found = variables.get("fs") or [variables.get("fut")]
    return [one for one in found if isinstance(one, asyncio.Future)]


def _frames(coro: Any) -> Iterator[FrameType]:
    """The frames of a coroutine that waits, the outermost first."""
    while coro is not None:
        for frame_name, awaited_name in _LINKS:
            frame = getattr(coro, frame_name, None)
            if frame is not None:
                yield frame
                coro = getattr(coro, awaited_name, None)
                break
        else:
            return


def _is_shield(future: asyncio.Future[Any]) -> bool:
    """Whether asyncio made a future for `shield`: it ends with what is shielded, which is found on its own."""
    callbacks = getattr(future, "_callbacks", None) or ()
    return any(getattr(callback, "__qualname__", "").startswith("shield.") for callback, _ in callbacks)
