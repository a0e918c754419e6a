"""The records of a process: what happened in it after one event, in the form in which history keeps it.

A record is a JSON array that begins with its name. `evolve` applies them to the state without the model and without
evaluating anything, so that old histories can be read whatever becomes of FEEL and of definitions. Instances of elements
have keys, which grow; a scope is the instance of a container: the process itself (key 1), a sub-process, the body of a
multi-instance activity.

Records only grow at their end: a new field has a default. A new meaning is a new record and a new generation of the route
(`program.ROUTE_NAME`).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload

Raws: TypeAlias = dict[str, msgspec.Raw]
"""Variables by name, each as JSON."""


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The root of all records of a process."""


class Passed(Record, frozen=True, tag="passed"):
    """An element was entered and left in one: tokens went to its outgoing flows."""

    element: str
    scope: int
    flows: tuple[str, ...] = ()


class Entered(Record, frozen=True, tag="entered"):
    """An instance of an element began."""

    key: int
    element: str
    scope: int
    phase: str
    variables: Raws | None = None
    """Its own variables; None: it is no scope of variables."""
    index: int = -1
    """Of an iteration of a multi-instance activity: its place in the collection, from 0 on."""


class Began(Record, frozen=True, tag="began"):
    """An instance whose entering had failed went on: it works from now on."""

    key: int
    variables: Raws | None = None


class Left(Record, frozen=True, tag="left"):
    """An instance completed, and tokens went to outgoing flows. Its waits are over."""

    key: int
    flows: tuple[str, ...] = ()


class Flowed(Record, frozen=True, tag="flowed"):
    """Tokens went to outgoing flows of an instance that goes on: a timer of a catching event that fires again."""

    key: int
    flows: tuple[str, ...] = ()


class Ended(Record, frozen=True, tag="ended"):
    """An instance was ended, with all that is inside of it and all that it waited for."""

    key: int


class Interrupted(Record, frozen=True, tag="interrupted"):
    """An interrupting event sub-process took over a scope: what waits for the others of that scope is over."""

    scope: int


class Ending(Record, frozen=True, tag="ending"):
    """The process ends by what it threw and a caller catches. It closes once it is fixed who gets what it published."""

    code: str
    message: str
    variables: Payload
    is_escalation: bool = False


class Arrived(Record, frozen=True, tag="arrived"):
    """A token waits at a joining gateway, by the flow over which it came."""

    element: str
    scope: int
    flow: str


class Joined(Record, frozen=True, tag="joined"):
    """A joining gateway took a token from each of these incoming flows, and gave tokens to the outgoing ones."""

    element: str
    scope: int
    taken: tuple[str, ...]
    flows: tuple[str, ...]


class Cleared(Record, frozen=True, tag="cleared"):
    """All tokens that waited at joining gateways of a scope are gone: it was terminated or interrupted."""

    scope: int


class Set(Record, frozen=True, tag="set"):
    """Variables of one scope have these values from now on."""

    key: int
    variables: Raws


class TimerWait(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a timer goes on after it fires."""

    text: str
    """The cycle, as it was evaluated; empty if it fires once."""
    armed_at: Instant
    due: Instant
    left: int | None = None
    """How many fires there are with this one; None: without end."""


class Wait(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that an instance waits for, by the number of the command that asked for it."""

    number: int
    kind: str
    """`activity`, `timer`, `child`, `task`, `message` or `broadcast`."""
    catcher: str
    """The id of the element that gets it: the instance's own, a boundary event, the start of an event sub-process, or one
    of the events behind an event-based gateway."""
    name: str = ""
    """Of a message or broadcast signal: its name."""
    is_standing: bool = False
    """Whether it stays after it came."""
    timer: TimerWait | None = None


class Waits(Record, frozen=True, tag="waits"):
    """An instance waits for these, too."""

    key: int
    waits: tuple[Wait, ...]


class Unwaits(Record, frozen=True, tag="unwaits"):
    """These waits are over, though their instance goes on."""

    numbers: tuple[int, ...]


class Sent(Record, frozen=True, tag="sent"):
    """An element published something, under this number of a command."""

    number: int
    element: str


class Looped(Record, frozen=True, tag="looped"):
    """A multi-instance activity froze its collection; without items it is repeated so often."""

    key: int
    total: int
    items: tuple[msgspec.Raw, ...] | None = None
    collection: str = ""
    """Under this name its iterations see the results so far."""


class Slot(Record, frozen=True, tag="slot"):
    """An iteration completed, with this result."""

    key: int
    index: int
    value: msgspec.Raw


class Kept(Record, frozen=True, tag="kept"):
    """The turn had done enough: these tokens go on in the next one. (scope, what, id) each."""

    tokens: tuple[tuple[int, str, str], ...]
    number: int
    """The timer that wakes the process."""


class Incident(Record, frozen=True, tag="incident"):
    """Something went wrong with an instance, in the phase that it was in."""

    key: int
    number: int
    kind: str
    message: str
    catcher: str = ""
    """The event whose wait failed, if it is not the instance's own element."""
    phase: str = ""
    """The phase from which it goes on once it is resolved."""


class Resolved(Record, frozen=True, tag="resolved"):
    """An incident is over: what had gone wrong is tried again."""

    key: int
    number: int


class Result(Record, frozen=True, tag="result"):
    """What an instance got is kept, since leaving it failed."""

    key: int
    variables: Raws


class Buffered(Record, frozen=True, tag="buffered"):
    """A signal came that no element waits for yet."""

    name: str
    value: Payload


class Taken(Record, frozen=True, tag="taken"):
    """The oldest buffered signal of a name was given to an element."""

    name: str


class Decided(Record, frozen=True, tag="decided"):
    """A business rule task made a decision: which model, and how its value came about. For people."""

    element: str
    decision: str
    version: int
    trace: msgspec.Raw


AnyRecord: TypeAlias = (
    Passed
    | Entered
    | Began
    | Left
    | Flowed
    | Ended
    | Interrupted
    | Ending
    | Arrived
    | Joined
    | Cleared
    | Set
    | Waits
    | Unwaits
    | Sent
    | Looped
    | Slot
    | Kept
    | Incident
    | Resolved
    | Result
    | Buffered
    | Taken
    | Decided
)

_DECODER: Final = msgspec.json.Decoder(list[AnyRecord])
_ENCODER: Final = msgspec.json.Encoder()


def encode_records(records: list[AnyRecord]) -> Payload:
    """Records as one payload, a JSON array."""
    return Payload(msgspec.Raw(_ENCODER.encode(records)))


def decode_records(payload: Payload) -> list[AnyRecord]:
    """The records of a payload. Raises msgspec.MsgspecError for what is none."""
    return _DECODER.decode(payload.data)
