"""Types of events by name: those that this engine was given, and those that living nodes announce.

So events can be sent by callers that do not have the class. What a node announces of a type is how its events are delivered,
and the digest of a schema by which values are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from holdfast.code.event_types import EventType, find_event_type
from holdfast.core.check_schemas import make_check_schema
from holdfast.core.input_schemas import InputSchema, ParameterSchema, decode_input_schema, encode_input_schema, make_schema
from holdfast.core.payloads import Payload
from holdfast.core.publications import EventOptions
from holdfast.engine.nodes.input_schemas import InputChecker, encode_arguments, list_announcing
from holdfast.errors import DuplicateName, InvalidArguments, InvalidDefinition, UnknownEvent

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.nodes.roster import AnnouncedEvent
    from holdfast.store.contract import Store


class NamedEvent(msgspec.Struct, frozen=True):
    """A type of events whose class is elsewhere."""

    name: str
    options: EventOptions
    checkers: Sequence[Any] = ()
    """What nodes announce of its values: one of them has to take a value."""

    def encode(self, value: Any, limit: int) -> Payload:
        """A value as it is stored. Raises InvalidArguments or a PayloadError."""
        encoded = encode_arguments(self.name, self.checkers, ([value], {}), limit)
        (raw,) = msgspec.json.decode(encoded.data, type=list[msgspec.Raw])
        return Payload(data=raw)


EventLike: TypeAlias = EventType | NamedEvent


def index_events(events: Iterable[Any]) -> dict[str, EventType]:
    """The types of events that an engine is given, by name. Raises InvalidDefinition or DuplicateName."""
    found: dict[str, EventType] = {}
    if isinstance(events, str) or not isinstance(events, Iterable):
        raise InvalidDefinition(f"Expected events=… to be a list of classes that @event decorates, but it is {events!r}.")
    for cls in events:
        try:
            one = find_event_type(cls)
        except InvalidArguments as error:
            raise InvalidDefinition(f"{error.message} It is in events=….") from error
        if found.setdefault(one.name, one).cls is not one.cls:
            raise DuplicateName(
                f"Expected each type of events to have its own name, but two are called '{one.name}'. Rename one: "
                "@event(name='…')."
            )
    return found


def describe_events(events: Mapping[str, EventType]) -> tuple[dict[str, tuple[EventOptions, str]], dict[str, bytes]]:
    """What a node announces of its types: (options, digest of the schema) by name; and the schemas by digest."""
    announced: dict[str, tuple[EventOptions, str]] = {}
    bodies: dict[str, bytes] = {}
    for name, one in sorted(events.items()):
        parameter = ParameterSchema(
            name="value", hint=one.cls.__name__, schema=make_schema(one.cls), check=make_check_schema(one.cls)
        )
        digest, body = encode_input_schema(InputSchema(what=f"event '{name}'", parameters=[parameter]))
        announced[name] = one.options, digest
        bodies[digest] = body
    return announced, bodies


class AnnouncedEvents:
    """Finds types of events by name: this engine's own first, then those of living nodes."""

    def __init__(self, store: Store, clock: Clock, own: Mapping[str, EventType]) -> None:
        self._store = store
        self._clock = clock
        self.own = own

    async def find(self, name: str) -> EventLike:
        """The type of that name. Raises UnknownEvent, which lists those that there are."""
        own = self.own.get(name)
        if own is not None:
            return own
        announcing = await list_announcing(self._store, self._clock.now())
        found = [details.events[name] for details in announcing if name in details.events]
        if not found:
            raise self._make_unknown(name, {one for details in announcing for one in details.events})
        return NamedEvent(name, found[-1].options, await self._make_checkers(found))

    async def _make_checkers(self, announced: Sequence[AnnouncedEvent]) -> list[InputChecker]:
        digests = dict.fromkeys(one.schema for one in announced)
        bodies = await self._store.read_input_schemas(list(digests))
        schemas = [decode_input_schema(bodies[digest]) for digest in digests if digest in bodies]
        return [InputChecker(schema) for schema in schemas if schema is not None]

    def _make_unknown(self, name: str, announced: set[str]) -> UnknownEvent:
        known = sorted({*self.own, *announced})
        return UnknownEvent(
            f"Expected a type of events called '{name}', but neither this engine nor a living node has one (known: "
            f"{', '.join(known) or 'none'}). Pass its class, or list it in Engine(..., events=[...]).",
            event=name,
            known=known,
        )
