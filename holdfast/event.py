"""The decorator that makes a class a type of events."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar, overload

from holdfast.code.event_types import register_event_type
from holdfast.core.ids import check_topic
from holdfast.core.instants import Duration, to_micros
from holdfast.core.publications import DeliveryMode, EventOptions, OnTargetTerminated
from holdfast.errors import InvalidConfiguration, InvalidDuration

C = TypeVar("C", bound=type[Any])
E = TypeVar("E", bound=StrEnum)


@overload
def event(cls: C, /) -> C: ...
@overload
def event(
    *,
    consume_on_read: bool = True,
    delivery_mode: str = DeliveryMode.ALL,
    expire_after: Duration | None = None,
    on_target_terminated: str = OnTargetTerminated.DISCARD,
    name: str | None = None,
) -> Callable[[C], C]: ...
def event(
    cls: Any = None,
    /,
    *,
    consume_on_read: bool = True,
    delivery_mode: str = DeliveryMode.ALL,
    expire_after: Duration | None = None,
    on_target_terminated: str = OnTargetTerminated.DISCARD,
    name: str | None = None,
) -> Any:
    """Make a dataclass, msgspec struct or pydantic model a type of events; the class stays as it is.

    Events are matched by `name` (default: the name of the class), within an organisation. The options of the class with
    which an event is sent count:

    - `consume_on_read`: one consumer gets it, the one that waits longest; else every waiter does, and whoever begins to wait
      while it is kept, each execution once.
    - `delivery_mode`: 'all' waits get it, also those that begin after it was sent, while it is kept; 'after_create' only
      executions that existed when it was sent; 'after_wait' only waits that had begun, so that it is never kept.
    - `expire_after`: for how long it is kept; by default as long as the engine keeps events.
    - `on_target_terminated`: what becomes of an event that was sent to one workflow which ends without having taken it:
      'discard', or 'dead_letter'.
    """
    if type(consume_on_read) is not bool:
        raise InvalidConfiguration(
            f"Expected consume_on_read=… of an event to be True or False, but it is {consume_on_read!r}."
        )
    options = EventOptions(
        consume_on_read=consume_on_read,
        delivery_mode=_choose(DeliveryMode, delivery_mode, "delivery_mode"),
        expire_after_us=None if expire_after is None else _check_expiry(expire_after),
        on_target_terminated=_choose(OnTargetTerminated, on_target_terminated, "on_target_terminated"),
    )
    if name is not None:
        check_topic(name, "the name of an event")

    def decorate(cls: Any) -> Any:
        chosen = name
        if chosen is None and isinstance(cls, type):
            chosen = check_topic(cls.__name__, "the name of an event")
        return register_event_type(cls, chosen or "", options)

    return decorate if cls is None else decorate(cls)


def _choose(kind: type[E], value: str, option: str) -> E:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(f"'{one}'" for one in kind)
        raise InvalidConfiguration(f"Expected {option}=… of an event to be one of {choices}, but it is {value!r}.") from None


def _check_expiry(value: Duration) -> int:
    micros = to_micros(value, "expire_after=… of an event")
    if micros == 0:
        raise InvalidDuration(
            "Expected expire_after=… of an event to be more than 0, but it is 0. Write delivery_mode='after_wait' for "
            "events that are not kept."
        )
    return micros
