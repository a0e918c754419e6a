"""`@event`, the fields by which waits select events, `starts_on`, and what is refused of all of it."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

import holdfast
from holdfast import BroadcastSignal, Context, Message, event, workflow
from holdfast.code.event_types import encode_event, find_event_type, make_where
from holdfast.core import payloads
from holdfast.core.publications import DeliveryMode, EventOptions, OnTargetTerminated, SubscriptionKind
from holdfast.errors import (
    EncodingError,
    HoldfastError,
    InvalidArguments,
    InvalidConfiguration,
    InvalidDefinition,
    InvalidDuration,
)
from tests.code.playing import Play


class Colour(enum.Enum):
    RED = "red"


@event
@dataclass(frozen=True)
class Paid:
    order: int
    id: UUID
    day: date | None = None
    colour: Colour = Colour.RED
    sum: Decimal = Decimal(0)
    rate: float = 0.0
    items: tuple[str, ...] = ()


@event(
    consume_on_read=False,
    delivery_mode="after_create",
    expire_after=timedelta(hours=1),
    on_target_terminated="dead_letter",
    name="order.shipped",
)
class Shipped(msgspec.Struct, rename="camel"):
    order_id: int


@event
class Refunded(pydantic.BaseModel):
    order: int = pydantic.Field(alias="orderId")


class Inner(msgspec.Struct):
    count: int


class Wider(Inner):
    more: str = ""


@event
@dataclass
class Nested:
    inner: Inner
    name: str | None = None


@event
class Bounded(pydantic.BaseModel):
    count: int = pydantic.Field(gt=0)


@event
@dataclass
class Whole:
    text: str
    count: int
    rate: float = 0.0


@pytest.mark.parametrize(
    "value",
    [
        Whole("a", "x"),  # type: ignore[arg-type]
        Whole(1, 2),  # type: ignore[arg-type]
        Whole("a", True),
        Whole("a", 1, "x"),  # type: ignore[arg-type]
        Nested(Inner("x")),  # type: ignore[arg-type]
        Nested({"count": 1}, 7),  # type: ignore[arg-type]
        Bounded.model_construct(count=-1),
        Shipped("x"),  # type: ignore[arg-type]
    ],
)
def test_V2_event_with_values_that_do_not_fit_its_hints_is_refused(value: Any) -> None:
    with pytest.raises((InvalidArguments, EncodingError), match="Expected event '"):
        encode_event(value, payloads.encode)


def test_V2_event_whose_field_would_come_back_as_another_class_is_refused() -> None:
    with pytest.raises(EncodingError, match="Wider"):
        encode_event(Nested(Wider(1, "lost")), payloads.encode)


def test_V2_event_of_plain_values_is_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(payloads, "decode")  # whoever reads something back fails

    assert encode_event(Whole("a", 1, 0.5), payloads.encode).fields["text"] == '"a"'


def test_class_stays_as_it_is_and_knows_its_options() -> None:
    assert Paid(7, UUID(int=1)) == Paid(7, UUID(int=1))
    assert find_event_type(Paid).options == EventOptions()
    assert (find_event_type(Paid).name, find_event_type(Shipped).name) == ("Paid", "order.shipped")
    assert find_event_type(Shipped).options == EventOptions(
        consume_on_read=False,
        delivery_mode=DeliveryMode.AFTER_CREATE,
        expire_after_us=3_600_000_000,
        on_target_terminated=OnTargetTerminated.DEAD_LETTER,
    )
    assert holdfast.event is event


@pytest.mark.parametrize(
    ("cls", "where", "found"),
    [
        (Paid, None, {}),
        (Paid, {}, {}),
        (Paid, {"order": 7}, {"order": "7"}),
        (Paid, {"rate": 7, "order": 7}, {"order": "7", "rate": "7"}),
        (Paid, {"id": UUID(int=1)}, {"id": f'"{UUID(int=1)}"'}),
        (Paid, {"id": str(UUID(int=10)).upper()}, {"id": f'"{UUID(int=10)}"'}),
        (Paid, {"day": None}, {"day": "null"}),
        (Paid, {"day": date(2030, 1, 2)}, {"day": '"2030-01-02"'}),
        (Paid, {"colour": Colour.RED}, {"colour": '"red"'}),
        (Paid, {"sum": Decimal("1.50")}, {"sum": '"1.50"'}),
        (Shipped, {"order_id": 7}, {"orderId": "7"}),
        (Refunded, {"order": 7}, {"orderId": "7"}),
    ],
)
def test_fields_are_selected_as_events_have_them(cls: Any, where: Any, found: dict[str, str]) -> None:
    assert make_where(find_event_type(cls), where) == found


@pytest.mark.parametrize(
    "value",
    [
        Paid(7, UUID(int=1), date(2030, 1, 2), Colour.RED, Decimal("1.50"), 2.0, ("a",)),
        Shipped(7),
        Refunded(orderId=7),
    ],
)
def test_event_that_is_sent_has_the_fields_that_its_class_is_selected_by(value: Any) -> None:
    encoded = encode_event(value, payloads.encode)
    record = {"order": 7} if isinstance(value, Paid | Refunded) else {"order_id": 7}

    assert make_where(encoded.type, record).items() <= encoded.fields.items()
    assert "items" not in encoded.fields


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"ordre": 7}, "'ordre' is none of them. It has: 'order', 'id'"),
        ({7: 7}, "7 is none of them"),
        ({"order": "seven"}, "to be int, but it is 'seven'"),
        ({"order": None}, "to be int, but it is None"),
        ({"order": [7]}, "Select by a field that holds a single value"),
        ({"items": ("a",)}, "Select by a field that holds a single value"),
        ({"items": "a"}, "to be tuple"),
        ({"id": "no id"}, "to be UUID"),
        ([("order", 7)], "to be a dict of fields"),
        ("order", "to be a dict of fields"),
    ],
)
def test_selection_that_no_event_can_fit_is_refused(where: Any, says: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        make_where(find_event_type(Paid), where)

    assert says in refused.value.message


def test_selection_by_more_names_than_an_index_has_room_for_is_refused() -> None:
    names = [f"{number:02}".rjust(60, "f") for number in range(9)]
    wide = event(dataclasses.make_dataclass("Wide", [(name, int) for name in names]))

    assert len(make_where(find_event_type(wide), dict.fromkeys(names[:8], 1))) == 8
    with pytest.raises(InvalidArguments, match="500 bytes together, but they have 540"):
        make_where(find_event_type(wide), dict.fromkeys(names, 1))


def test_field_that_is_left_out_when_it_has_its_default_cannot_be_selected_by() -> None:
    @event
    class Lean(msgspec.Struct, omit_defaults=True):
        order: int
        by: str = "ann"

    assert make_where(find_event_type(Lean), {"order": 1}) == {"order": "1"}
    with pytest.raises(InvalidArguments, match="omit_defaults"):
        make_where(find_event_type(Lean), {"by": "ann"})


def test_hints_that_are_found_only_later_are_found_then(monkeypatch: pytest.MonkeyPatch) -> None:
    @event
    @dataclass
    class Sent:
        order: Later  # type: ignore[name-defined]  # noqa: F821 - that is the test

    with pytest.raises(InvalidArguments, match="type hints of event 'Sent'"):
        make_where(find_event_type(Sent), {"order": 7})
    monkeypatch.setitem(globals(), "Later", int)

    assert make_where(find_event_type(Sent), {"order": 7}) == {"order": "7"}


def test_subclass_is_an_event_of_its_own_or_none() -> None:
    @dataclass(frozen=True)
    class Later(Paid):
        pass

    with pytest.raises(InvalidArguments, match="Expected a class decorated with @event, but got Later"):
        find_event_type(Later)
    with pytest.raises(InvalidArguments, match="instance of a class decorated with @event, but got Later"):
        encode_event(Later(1, UUID(int=1)), payloads.encode)
    assert find_event_type(event(name="later")(Later)).name == "later"


BAD_EVENTS: list[tuple[Any, type[HoldfastError]]] = [
    (lambda: event(int), InvalidDefinition),
    (lambda: event(Paid), InvalidDefinition),
    (lambda: event(lambda: None), InvalidDefinition),  # type: ignore[call-overload]
    (lambda: event(consume_on_read="yes"), InvalidConfiguration),  # type: ignore[call-overload]
    (lambda: event(delivery_mode="later"), InvalidConfiguration),
    (lambda: event(on_target_terminated=None), InvalidConfiguration),  # type: ignore[call-overload]
    (lambda: event(expire_after=-1), InvalidDuration),
    (lambda: event(expire_after=0), InvalidDuration),
    (lambda: event(name=""), holdfast.InvalidIdentifier),
]


@pytest.mark.parametrize(("decorate", "error"), BAD_EVENTS)
def test_what_cannot_be_a_type_of_events_is_refused(decorate: Any, error: type[HoldfastError]) -> None:
    with pytest.raises(error, match="Expected"):
        decorate()


def test_struct_that_is_written_as_a_list_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="array_like"):

        @event
        class Row(msgspec.Struct, array_like=True):
            order: int


BAD_CALLS: list[tuple[Any, str]] = [
    (lambda ctx: ctx.wait_for_event(int), "InvalidArguments: Expected a class decorated with @event, but got int"),
    (lambda ctx: ctx.wait_for_event("Paid"), "InvalidArguments: Expected a class decorated with @event, but got 'Paid'"),
    (lambda ctx: ctx.wait_for_event(Shipped(1)), "InvalidArguments: Expected a class decorated with @event"),
    (lambda ctx: ctx.wait_for_event(Paid, {"x": 1}), "InvalidArguments: Expected where=… to name fields of event 'Paid'"),
    (lambda ctx: ctx.wait_for_event(Paid, timeout=-1), "InvalidDuration: Expected the timeout of wait_for_event"),
    (lambda ctx: ctx.event(Paid, {"order": []}), "InvalidArguments: Expected the value of field 'order'"),
    (lambda ctx: ctx.wait_for_message("", "k"), "InvalidIdentifier: Expected the name of a message"),
    (lambda ctx: ctx.wait_for_message("x", 7), "InvalidIdentifier: Expected the correlation key of a message"),
    (lambda ctx: ctx.wait_for_message("x", "k", timeout="1"), "InvalidDuration: Expected the timeout of wait_for_message"),
    (lambda ctx: ctx.wait_for_broadcast(" x"), "InvalidIdentifier: Expected the name of a broadcast signal"),
    (lambda ctx: ctx.send_event(Paid), "InvalidArguments: Expected an instance of a class decorated with @event"),
    (lambda ctx: ctx.send_event({"order": 1}), "InvalidArguments: Expected an instance of a class decorated with @event"),
    (lambda ctx: ctx.send_event_to("", Shipped(1)), "InvalidIdentifier: Expected the workflow id of a receiver"),
    (lambda ctx: ctx.send_message("x", ""), "InvalidIdentifier: Expected the correlation key of a message"),
    (lambda ctx: ctx.send_message("x", "k", object()), "EncodingError: Expected the value of message 'x'"),
    (lambda ctx: ctx.send_message("x", "k", ttl=-1), "InvalidDuration: Expected the time-to-live of a message"),
    (lambda ctx: ctx.send_message("x", "k", message_id=""), "InvalidIdentifier: Expected the id of a message"),
    (lambda ctx: ctx.broadcast_signal(None), "InvalidIdentifier: Expected the name of a broadcast signal"),
    (lambda ctx: ctx.broadcast_signal("x", {1, object()}), "EncodingError: Expected the variables of broadcast signal"),
]


@pytest.mark.parametrize(("call", "says"), BAD_CALLS, ids=[says for _, says in BAD_CALLS])
def test_bad_call_is_refused_where_it_is_made_and_records_nothing(call: Any, says: str) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await call(ctx)
        except HoldfastError as error:
            return f"{type(error).__name__}: {error.message}"
        return ""

    play = Play(story)

    assert play.result.startswith(says)
    assert play.kinds == ["WorkflowStarted", "WorkflowCompleted"]


# --- starts ---


def test_workflow_names_what_starts_it() -> None:
    @workflow(starts_on=Message("order"))
    async def order(_ctx: Context, _value: Any) -> None: ...

    @workflow(starts_on=[BroadcastSignal("night"), Message("order"), BroadcastSignal("night")])
    async def both(_ctx: Context) -> None: ...

    @workflow
    async def neither(_ctx: Context) -> None: ...

    assert [(one.kind, one.name) for one in order.starts_on] == [(SubscriptionKind.MESSAGE, "order")]
    assert both.starts_on == (BroadcastSignal("night"), Message("order"))
    assert neither.starts_on == ()


@pytest.mark.parametrize("given", ["order", [1], Message, {"a": 1}, [Message("a"), "b"]])
def test_what_starts_no_workflow_is_refused(given: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"Message\('…'\) or BroadcastSignal\('…'\)"):
        workflow(starts_on=given)


def test_start_without_a_name_is_refused() -> None:
    with pytest.raises(holdfast.InvalidIdentifier):
        Message("")
    with pytest.raises(holdfast.InvalidIdentifier):
        BroadcastSignal(7)  # type: ignore[arg-type]
