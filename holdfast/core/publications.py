"""What is published without naming a receiver (messages, events, broadcast signals), and how it is matched with waits.

A wait is a *subscription* of an execution: a kind, a name and, by kind, a key. What is published is matched with
subscriptions by the store, under a lock of (org, kind, name, key) where what finds nobody is kept, so that "anyone waiting,
else keep" and "anything kept, else wait" exclude each other.

| kind      | matches by                    | who gets it                        | if nobody waits                    |
|-----------|-------------------------------|------------------------------------|------------------------------------|
| message   | name and correlation key      | the one execution; its oldest wait | starts a workflow, kept, refused   |
| event     | name, and fields of its value | one consumer or every waiter       | is kept until it expires           |
| broadcast | name                          | every subscriber                   | nothing is kept                    |
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Final

import msgspec

from holdfast.core.ids import check_topic
from holdfast.core.instants import Instant, Micros
from holdfast.core.payloads import NULL, Payload
from holdfast.core.payloads import encode as encode_payload
from holdfast.core.shown_values import ShownValue
from holdfast.errors import InvalidArguments

LONGEST_VALUE: Final = 500
"""Events cannot be selected by values that have more bytes as JSON: they are not indexed."""
MOST_FIELDS: Final = 100
"""Events can be selected by so many of their fields, the first ones."""
LONGEST_FIELD: Final = 255
"""Events cannot be selected by fields whose names have more bytes."""
LONGEST_NAMES: Final = 500
"""So many bytes the names of the fields have together by which a wait selects events."""
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class SubscriptionKind(StrEnum):
    """What kind of thing an execution waits for by a subscription."""

    MESSAGE = "message"
    EVENT = "event"
    BROADCAST = "broadcast"


class DeliveryMode(StrEnum):
    """Which events a wait gets, by when they were sent."""

    AFTER_WAIT = "after_wait"
    """Those sent after the wait began: such an event is never kept."""
    AFTER_CREATE = "after_create"
    """Those sent since the execution was created."""
    ALL = "all"
    """Also older ones that are still kept."""


class OnTargetTerminated(StrEnum):
    """What becomes of an event that was sent to one execution which ends without having taken it."""

    DISCARD = "discard"
    DEAD_LETTER = "dead_letter"


class EventOptions(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """How events of a type are delivered, as the type declares it. The options of the sender count."""

    consume_on_read: bool = True
    """Whether one consumer gets it; else every waiter does, and those who begin to wait while it is kept."""
    delivery_mode: DeliveryMode = DeliveryMode.ALL
    expire_after_us: Micros | None = None
    """For how long it is kept; None: for as long as the engine keeps events."""
    on_target_terminated: OnTargetTerminated = OnTargetTerminated.DISCARD


DEFAULT_EVENT: Final = EventOptions()


class Publication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Something that was published, whole: as it is kept, delivered, and published again if it comes too late."""

    kind: SubscriptionKind
    name: str
    key: str = ""
    """The correlation key of a message."""
    value: Payload = NULL
    headers: dict[str, str] = {}
    id: str
    """Of a message the id that its sender chose, or one that was made for it, as for all else."""
    sent_at: Instant
    expires_at: Instant | None = None
    """Until when it is kept if nobody takes it; None: it is not kept."""
    event: EventOptions | None = None
    """Of an event: the options of its type, where they are not the default ones."""
    target: str = ""
    """Of an event for one execution: its execution id."""


class StartTrigger(msgspec.Struct, frozen=True):
    """What starts a workflow beside a call: what is published under a name, as a message or as a broadcast signal."""

    kind: ClassVar[SubscriptionKind]
    name: str

    def __post_init__(self) -> None:
        check_topic(self.name, f"the name of what starts a workflow ({type(self).__name__})")


class MessageOutcome(ShownValue, frozen=True):
    """What became of a message that was sent."""

    delivered: bool = False
    """Whether an execution waited for it, which has it now."""
    started: bool = False
    """Whether it started a workflow."""
    kept: bool = False
    """Whether it is kept until somebody waits for it, or its time-to-live is over."""


class EventOutcome(ShownValue, frozen=True):
    """What became of an event that was sent."""

    delivered: int = 0
    """How many waits for it were found. One that ends in the same moment is counted."""
    kept: bool = False
    """Whether it is kept for those who begin to wait for it."""


class Broadcast(ShownValue, frozen=True):
    """What became of a broadcast signal."""

    delivered: int = 0
    """How many subscriptions were found. One that ends in the same moment is counted."""
    started: int = 0
    """How many workflows it started."""


def canonical_value(value: Any, what: str = "the value of a field") -> str:
    """A scalar as canonical JSON text: equal numbers have one text (7 and 7.0), all else is as it is written.

    Raises InvalidArguments for lists and objects, and for what is longer than an index takes; EncodingError for what JSON
    cannot hold. Texts of decimals, dates and times are compared as they are written.
    """
    found = _canonise(bytes(encode_payload(value, what).data))
    if found is None:
        raise InvalidArguments(
            f"Expected {what} to be a text, a number, a bool, None, or what is written as one of these, but it is "
            f"{type(value).__name__}. Select by a field that holds a single value."
        )
    if len(found.encode()) > LONGEST_VALUE:
        raise InvalidArguments(
            f"Expected {what} to have at most {LONGEST_VALUE} bytes as JSON, but it has {len(found.encode())}. "
            "Select by a shorter field, such as an id."
        )
    return found


def canonical_fields(data: bytes) -> dict[str, str]:
    """The fields by which an event can be selected, from its value as JSON: the scalars of the outermost object.

    Each is as `canonical_value` writes it. A value that is no object has none.
    """
    if not data.startswith(b"{"):
        return {}
    fields: dict[str, str] = {}
    for name, raw in _OBJECT.decode(data).items():
        if len(fields) >= MOST_FIELDS:
            break
        if not 0 < len(name.encode()) <= LONGEST_FIELD or not name.isprintable() or len(raw) > 4 * LONGEST_VALUE:
            continue
        found = _canonise(bytes(raw))
        if found is not None and len(found.encode()) <= LONGEST_VALUE:
            fields[name] = found
    return fields


def _canonise(raw: bytes) -> str | None:
    """A scalar of JSON in the one way in which it is compared; None for a list or an object."""
    raw = raw.strip()
    if raw.startswith((b"[", b"{")):
        return None
    value = msgspec.json.decode(raw)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return msgspec.json.encode(value).decode()
