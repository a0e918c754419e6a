"""How history and envelopes are written down: JSON with a schema version, and upcasters for what older versions wrote.

What cannot be decoded is either damaged or newer, and only then it is found out which (`_explain`). *Newer* is well-formed
JSON that this code has no word for: a higher schema, a `type` that is unknown, a field or a value of an enumeration that is.
It raises NewerFormat and is left for a newer Holdfast to read. All else is *damaged*: CorruptStore.

Envelopes, details and offers have no schema number of their own, so they forbid unknown fields: what this code does not know
is noticed, and not dropped when the value is written again. Events have one, and ignore unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from holdfast.core.effects import ActivityTask
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.execution import Details
from holdfast.core.instants import Instant, from_datetime, to_datetime
from holdfast.core.publications import Publication
from holdfast.core.schedules import ScheduleDetails
from holdfast.errors import CorruptStore, NewerFormat, StoreError

SCHEMA: Final = 1
"""The version in which this code writes events and envelopes."""

T = TypeVar("T")
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

EVENT_UPCASTERS: Final[Mapping[int, Mapping[str, Upcaster]]] = {}
"""From version n to n + 1: `{n: {event type: function from the old object to the new}}`; types not named did not change."""

_DAMAGE: Final = (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError)
"""What decoding and upcasting raise for bytes that are not what they should be."""
_UNKNOWN: Final = re.compile(
    r"Object contains unknown field|Invalid enum value|Invalid value '.*' - at `\$(?:\[\.\.\.\]|\[\d+\]|\.\w+)*\.type`"
)
"""How msgspec says that JSON has a field, a value of an enumeration or a `type` that the code does not know."""
_ENCODER: Final = msgspec.json.Encoder()
_EVENTS: Final = msgspec.json.Decoder(tuple[AnyEvent, ...])
_ENVELOPE: Final[msgspec.json.Decoder[AnyEnvelope]] = msgspec.json.Decoder(AnyEnvelope)
_DETAILS: Final = msgspec.json.Decoder(Details)
_SCHEDULE: Final = msgspec.json.Decoder(ScheduleDetails)
_OFFER: Final = msgspec.json.Decoder(tuple[int, msgspec.Raw])
_TASK: Final = msgspec.json.Decoder(ActivityTask)
_PUBLICATION: Final = msgspec.json.Decoder(Publication)
_SEE_CHECK: Final = "Run `holdfast check` to see what else is damaged."

encode = _ENCODER.encode
"""Any of our values as JSON bytes."""


def decode_events(body: bytes, schema: int) -> tuple[AnyEvent, ...]:
    """The events of one turn, brought up to the present schema."""
    try:
        if schema == SCHEMA:
            return _EVENTS.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, f"a turn's events (schema {schema})", _SEE_CHECK) from error
    return upcast_events(body, schema, EVENT_UPCASTERS)


def upcast_events(
    body: bytes, schema: int, upcasters: Mapping[int, Mapping[str, Upcaster]], present: int = SCHEMA
) -> tuple[AnyEvent, ...]:
    """Events of an older schema, taken through each version's upcasters in turn."""
    if schema > present:
        raise _newer(f"a turn's events of schema {present} or older", f"they are of schema {schema}")
    try:
        items = msgspec.json.decode(body, type=list[dict[str, Any]])
        for version in range(schema, present):
            changes = upcasters.get(version, {})
            items = [changes[item["type"]](item) if item["type"] in changes else item for item in items]
        return _EVENTS.decode(_ENCODER.encode(items))
    except _DAMAGE as error:
        raise _explain(body, error, f"a turn's events (schema {schema})", _SEE_CHECK) from error


def decode_envelope(body: bytes) -> AnyEnvelope:
    """An envelope as it was stored. Raises CorruptStore or NewerFormat if it cannot be read."""
    try:
        return _ENVELOPE.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, "an envelope", "It belongs into the dead letters.") from error


def decode_publication(body: bytes) -> Publication:
    """A publication as it was stored. Raises CorruptStore or NewerFormat if it cannot be read."""
    try:
        return _PUBLICATION.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, "a publication", _SEE_CHECK) from error


def decode_with(decoder: msgspec.json.Decoder[T], body: bytes | str, what: str) -> T:
    """What a decoder makes of something stored. Raises CorruptStore or NewerFormat that names it."""
    try:
        return decoder.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, what, _SEE_CHECK) from error


def encode_task(task: ActivityTask) -> bytes:
    """An activity as it is offered, with the schema of the event in it."""
    return _ENCODER.encode((SCHEMA, task))


def decode_task(body: bytes) -> ActivityTask:
    """An activity as it was offered. Raises CorruptStore or NewerFormat if it cannot be read."""
    try:
        schema, raw = _OFFER.decode(body)
        if schema == SCHEMA:
            return _TASK.decode(raw)
        if schema > SCHEMA:
            raise _newer(f"an offered activity of schema {SCHEMA} or older", f"it is of schema {schema}")
        plain = msgspec.json.decode(raw)
        (event,) = upcast_events(_ENCODER.encode([plain["event"]]), schema, EVENT_UPCASTERS)
        return _TASK.decode(_ENCODER.encode(plain | {"event": event}))
    except _DAMAGE as error:
        raise _explain(body, error, "an offered activity", _SEE_CHECK) from error


def decode_details(body: bytes) -> Details:
    """The details of an execution from its row. Raises CorruptStore or NewerFormat."""
    try:
        return _DETAILS.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, "an execution's details", _SEE_CHECK) from error


def decode_schedule(body: bytes) -> ScheduleDetails:
    """The details of a schedule from its row. Raises CorruptStore or NewerFormat."""
    try:
        return _SCHEDULE.decode(body)
    except _DAMAGE as error:
        raise _explain(body, error, "a schedule's details", _SEE_CHECK) from error


def _explain(body: bytes | str, error: Exception, what: str, advice: str) -> StoreError:
    """The error to raise for bytes that could not be decoded: they are newer, or damaged."""
    if isinstance(error, msgspec.ValidationError) and _UNKNOWN.match(str(error)) and _is_json(body):
        return _newer(what, str(error))
    said = error if isinstance(error, msgspec.MsgspecError) else repr(error)
    return CorruptStore(f"Expected to decode {what}, but {said}. {advice}")


def _is_json(body: bytes | str) -> bool:
    """Whether bytes are well-formed JSON: msgspec may have complained before it came to the end."""
    try:
        msgspec.json.decode(body)
    except _DAMAGE:
        return False
    return True


def _newer(what: str, found: str) -> NewerFormat:
    return NewerFormat(
        f"Expected to decode {what}, but a newer Holdfast wrote it ({found}). "
        "Upgrade this node; nodes that can read it go on."
    )


# --- histories as files -------------------------------------------------------------------------------------------------


def export_event(event: AnyEvent) -> dict[str, Any]:
    """An event as plain JSON values, with its type."""
    plain: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(event))
    return plain


def export_history(turns: list[HistoryTurn]) -> list[dict[str, Any]]:
    """A history as plain JSON values, one object per event, with its sequence, turn and time."""
    out = []
    for turn in turns:
        for offset, event in enumerate(turn.events):
            plain = export_event(event)
            head = {"sequence": turn.first + offset, "turn": turn.first, "at": to_datetime(turn.at).isoformat()}
            out.append(head | plain)
    return out


def import_history(items: list[dict[str, Any]], schema: int = SCHEMA) -> list[HistoryTurn]:
    """The history that `export_history` wrote. Raises CorruptStore if it is no such thing."""
    groups: dict[int, tuple[Instant, list[dict[str, Any]]]] = {}
    expected = 1
    for item in items:
        try:
            sequence, first, at = item["sequence"], item["turn"], _parse_instant(item["at"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptStore(
                f"Expected every event to have sequence, turn, at and type, but event {expected} does not: {error}."
            ) from error
        if sequence != expected:
            raise CorruptStore(f"Expected event {expected} of the history, but found {sequence}. Export it again, whole.")
        expected += 1
        body = {key: value for key, value in item.items() if key not in ("sequence", "turn", "at")}
        groups.setdefault(first, (at, []))[1].append(body)
    return [HistoryTurn(first, at, decode_events(_ENCODER.encode(bodies), schema)) for first, (at, bodies) in groups.items()]


def _parse_instant(text: str) -> Instant:
    return from_datetime(datetime.fromisoformat(text))
