"""What is written down: read back as it was, older shapes brought up, damage reported."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_origin

import msgspec
import pytest

from holdfast.core import codec, commands, envelopes, events
from holdfast.core.chains import Chain, TimeoutScope
from holdfast.core.effects import ActivityTask
from holdfast.core.events import HistoryTurn
from holdfast.core.execution import AttemptState, Details, Waiting
from holdfast.core.failures import Failure
from holdfast.core.options import ActivityOptions, OnClosed, OnOpen, ParentClose, TimeoutKind
from holdfast.core.parents import Parent
from holdfast.core.payloads import NULL, Payload
from holdfast.core.publications import DeliveryMode, EventOptions, OnTargetTerminated, Publication, SubscriptionKind
from holdfast.core.references import BusinessReference
from holdfast.core.request_keys import RequestKey
from holdfast.core.retry import RetryPolicy
from holdfast.errors import CorruptStore, NewerFormat

VALUE = Payload(msgspec.Raw(b'{"a":[1,null,"x"]}'))
FAILURE = Failure(type="ValueError", message="no", details=VALUE, non_retryable=True, trace="a.py:1 in f")
OPTIONS = ActivityOptions(queue="slow", retry=RetryPolicy(max_attempts=3), start_to_close_us=5, heartbeat_us=1)
PARENT = Parent("parent", 4, ParentClose.CANCEL)
EVENT_OPTIONS = EventOptions(
    consume_on_read=False,
    delivery_mode=DeliveryMode.AFTER_CREATE,
    expire_after_us=5,
    on_target_terminated=OnTargetTerminated.DEAD_LETTER,
)

FILLED: dict[Any, object] = {
    int: 7,
    str: "text",
    bool: True,
    Payload: VALUE,
    Failure: FAILURE,
    TimeoutKind: TimeoutKind.HEARTBEAT,
    ActivityOptions: OPTIONS,
    ParentClose: ParentClose.TERMINATE,
    BusinessReference: BusinessReference("key", {"part": "one"}),
    OnOpen: OnOpen.FAIL,
    OnClosed: OnClosed.REJECT,
    Parent: PARENT,
    Chain: Chain(run_timeout_us=5, retry=RetryPolicy(max_attempts=3), attempt=2, run_deadline=9),
    TimeoutScope: TimeoutScope.RUN,
    envelopes.Sender: envelopes.Sender("sender", 2),
    RequestKey: RequestKey("signal", "key-1", 9),
    envelopes.Signal: envelopes.Signal(name="text", value=VALUE),
    envelopes.Start: envelopes.Start(execution_id="text", workflow_id="text", workflow="text", input=VALUE),
    SubscriptionKind: SubscriptionKind.EVENT,
    EventOptions: EVENT_OPTIONS,
    Publication: Publication(
        kind=SubscriptionKind.MESSAGE,
        name="text",
        key="k",
        value=VALUE,
        headers={"k": "v"},
        id="m",
        sent_at=3,
        expires_at=9,
        event=EVENT_OPTIONS,
        target="text",
    ),
    dict: {"k": "v"},
    tuple: ("text",),
    tuple[str, ...]: ("text",),
    tuple[envelopes.Signal, ...]: (envelopes.Signal(name="text", value=VALUE),),
    tuple[envelopes.Signal | envelopes.Update, ...]: (envelopes.Signal(name="text", value=VALUE),),
}


def fill(kind: type[msgspec.Struct]) -> Any:
    """A value of a message type with every field set."""
    hints = {field.name: field.type for field in msgspec.structs.fields(kind)}
    filled = {name: next(FILLED[one] for one in _alternatives(hint) if one in FILLED) for name, hint in hints.items()}
    return kind(**filled)


def _alternatives(hint: Any) -> list[Any]:
    kinds = hint.__args__ if isinstance(hint, UnionType) else [hint]
    return [one if one in FILLED else get_origin(one) or one for one in kinds]


def plain(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))


EVENTS = sorted(events.GIVEN | events.RECORDED, key=lambda one: one.__name__)
ENVELOPES = envelopes.AnyEnvelope.__args__


@pytest.mark.parametrize("kind", EVENTS, ids=lambda one: one.__name__)
def test_event_is_read_as_it_was_written(kind: type[events.Event]) -> None:
    event = fill(kind)

    (found,) = codec.decode_events(codec.encode((event,)), codec.SCHEMA)

    assert type(found) is kind
    assert plain(found) == plain(event)


@pytest.mark.parametrize("kind", ENVELOPES, ids=lambda one: one.__name__)
def test_envelope_is_read_as_it_was_written(kind: type[envelopes.Envelope]) -> None:
    envelope = fill(kind)

    found = codec.decode_envelope(codec.encode(envelope))

    assert type(found) is kind
    assert plain(found) == plain(envelope)


@pytest.mark.parametrize("root", [events.Event, envelopes.Envelope, commands.Command])
def test_every_message_belongs_to_its_union(root: type) -> None:
    unions: dict[type, tuple[type, ...]] = {
        events.Event: events.AnyEvent.__args__,
        envelopes.Envelope: envelopes.AnyEnvelope.__args__,
        commands.Command: commands.AnyCommand.__args__,
    }

    assert set(root.__subclasses__()) == set(unions[root])


def test_tags_are_unique_and_follow_the_class_name() -> None:
    for kind in (*EVENTS, *ENVELOPES):
        tag = kind.__struct_config__.tag
        assert tag == "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("_")


def test_details_are_read_as_they_were_written() -> None:
    details = Details(
        parent=PARENT,
        metadata={"channel": "web"},
        signals=3,
        attempts={1: AttemptState(attempt=2, failures=1, retry_at=9, failure=FAILURE, heartbeat=VALUE)},
        waiting=Waiting("signal", "message", 5),
        state=VALUE,
        last_error=FAILURE,
    )

    assert plain(codec.decode_details(codec.encode(details))) == plain(details)


# --- older schemas ---

RENAMED = {1: {"signal_received": lambda item: {**item, "name": item["title"]}}}
SPLIT = {
    1: {"timer_started": lambda item: {"type": "timer_started", "id": item["id"], "due": item["at_ms"] * 1000}},
    2: {"timer_started": lambda item: {"type": "timer_started", "number": item["id"], "due": item["due"]}},
}


def test_older_events_are_brought_up_to_the_present() -> None:
    old = b'[{"type":"signal_received","title":"go","value":{"data":1}},{"type":"timer_fired","number":3}]'

    found = codec.upcast_events(old, 1, RENAMED, present=2)

    assert plain(found) == plain((events.SignalReceived(name="go", value=_of(b"1")), events.TimerFired(number=3)))


def test_upcasters_are_applied_version_by_version() -> None:
    oldest = b'[{"type":"timer_started","id":4,"at_ms":5}]'
    newer = b'[{"type":"timer_started","id":4,"due":5000}]'

    assert codec.upcast_events(oldest, 1, SPLIT, present=3) == (events.TimerStarted(number=4, due=5_000),)
    assert codec.upcast_events(newer, 2, SPLIT, present=3) == (events.TimerStarted(number=4, due=5_000),)


def test_version_without_a_change_needs_no_upcaster() -> None:
    body = codec.encode((events.TimerFired(number=1),))

    assert codec.upcast_events(body, 1, {}, present=5) == (events.TimerFired(number=1),)


def test_events_of_a_newer_holdfast_are_refused() -> None:
    expected = f"^Expected to decode a turn's events of schema {codec.SCHEMA} or older, but a newer Holdfast wrote it"
    with pytest.raises(NewerFormat, match=expected):
        codec.decode_events(b"[]", 99)


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"unheard_of"}',
        b'{"type":"cancel","soon":true}',
        codec.encode(fill(envelopes.Start)).replace(b"fail", b"wait"),
    ],
)
def test_envelope_with_a_word_that_is_unknown_here_is_newer_not_damaged(body: bytes) -> None:
    with pytest.raises(
        NewerFormat, match=r"^Expected to decode an envelope, but a newer Holdfast wrote it \(.*Upgrade this node"
    ):
        codec.decode_envelope(body)


def test_event_of_an_unknown_type_is_newer_not_damaged() -> None:
    with pytest.raises(NewerFormat, match="unheard_of"):
        codec.decode_events(b'[{"type":"timer_fired","number":1},{"type":"unheard_of"}]', codec.SCHEMA)


@pytest.mark.parametrize("body", [b'{"paused":true}', b'{"attempts":{"1":{"attempt":2,"paused":true}}}'])
def test_details_with_an_unknown_field_are_newer_not_damaged(body: bytes) -> None:
    with pytest.raises(NewerFormat, match="paused"):
        codec.decode_details(body)


@pytest.mark.parametrize("body", [b"[99, {}]", b'[99, {"event": {"type": "timer_fired"}}]', b'[1, {"priority": 1}]'])
def test_offer_of_a_newer_holdfast_is_newer_not_damaged(body: bytes) -> None:
    with pytest.raises(NewerFormat, match=r"^Expected to decode an offered activity"):
        codec.decode_task(body)


def test_present_schema_needs_no_upcaster() -> None:
    assert [version for version in codec.EVENT_UPCASTERS if version >= codec.SCHEMA] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"{}",
        b'[{"type":"unheard_of"}',
        b'[{"type":"timer_fired"}]',
        b'[{"type":"timer_fired","number":"x"}]',
        b"[1]",
    ],
)
def test_damaged_events_are_reported(body: bytes) -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode a turn's events \(schema 1\), but "):
        codec.decode_events(body, codec.SCHEMA)


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'[{"title":"x"}]', b"[", b'[{"type":"signal_received"}]'])
def test_damaged_events_of_an_older_schema_are_reported(body: bytes) -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode "):
        codec.upcast_events(body, 1, RENAMED, present=2)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"type":"unheard_of"', b'{"type":"signal","name":1}', b"\xff"])
def test_damaged_envelope_is_reported(body: bytes) -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode an envelope, but "):
        codec.decode_envelope(body)


def test_damaged_details_are_reported() -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode an execution's details, but "):
        codec.decode_details(b'{"signals":"many"}')


@pytest.mark.parametrize("decode", [codec.decode_envelope, codec.decode_details, lambda body: codec.decode_events(body, 1)])
def test_nesting_without_end_is_reported_like_other_damage(decode: Any) -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode "):
        decode(b'{"type":' + b"[" * 100_000)


# --- histories as files ---

TURNS = [
    HistoryTurn(1, 1_000_001, (events.SignalReceived(name="a", value=NULL), events.TimerStarted(number=1, due=5))),
    HistoryTurn(3, 2_000_000, (events.TimerFired(number=1),)),
]


def test_exported_history_is_imported_as_it_was() -> None:
    exported = msgspec.json.decode(msgspec.json.encode(codec.export_history(TURNS)))

    assert plain(codec.import_history(exported)) == plain(TURNS)
    assert exported[0] == {
        "sequence": 1,
        "turn": 1,
        "at": "1970-01-01T00:00:01.000001+00:00",
        "type": "signal_received",
        "name": "a",
        "value": {"data": None},
    }


@pytest.mark.parametrize("missing", ["sequence", "turn", "at", "type"])
def test_history_without_its_heads_is_refused(missing: str) -> None:
    exported = codec.export_history(TURNS)
    del exported[1][missing]

    with pytest.raises(CorruptStore, match=r"^Expected "):
        codec.import_history(exported)


def test_history_with_a_gap_is_refused() -> None:
    exported = codec.export_history(TURNS)
    del exported[1]

    with pytest.raises(CorruptStore, match=r"^Expected event 2 of the history, but found 3"):
        codec.import_history(exported)


@pytest.mark.parametrize("items", [["text"], [None], [{"sequence": 1, "turn": 1, "at": "today", "type": "timer_fired"}]])
def test_history_that_is_none_is_refused(items: Any) -> None:
    with pytest.raises(
        CorruptStore, match=r"^Expected every event to have sequence, turn, at and type, but event 1 does not"
    ):
        codec.import_history(items)


def _of(json: bytes) -> Payload:
    return Payload(msgspec.Raw(json))


# --- offered activities ---


def test_offered_activity_is_read_as_it_was_written() -> None:
    scheduled = events.ActivityScheduled(number=3, name="charge", input=VALUE, options=OPTIONS)
    task = ActivityTask("default", "e", "w", "order", scheduled, 5, 2, VALUE, 7, 1, "default\torder", True)

    assert codec.decode_task(codec.encode_task(task)) == task


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"[1, {}]", b'[0, {"event": {"type": "timer_fired"}}]', b"[0, []]"])
def test_damaged_offer_is_reported(body: bytes) -> None:
    with pytest.raises(CorruptStore, match=r"^Expected to decode (an offered activity|a turn.s events)"):
        codec.decode_task(body)
