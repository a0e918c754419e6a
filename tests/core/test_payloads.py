"""Users' values: what JSON can hold goes through unchanged, everything else is refused in so many words."""

from __future__ import annotations

import asyncio
import math
import signal
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import payloads
from holdfast.core.payloads import DEEPEST, Payload
from holdfast.errors import DecodingError, EncodingError, ForbiddenInWorkflow, PayloadTooLarge


@dataclass
class Point:
    x: int
    y: int = 0


class Line(msgspec.Struct):
    ends: tuple[Point, Point]
    label: str | None = None


class Order(pydantic.BaseModel):
    id: UUID
    price: Decimal
    tags: list[str] = []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


class Pair(NamedTuple):
    left: int
    right: str


class Options(TypedDict, total=False):
    depth: int


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


UserId = NewType("UserId", int)
ID = UUID("12345678-1234-4678-9234-567812345678")
ORDER = Order(id=ID, price=Decimal("9.99"), tags=["a"])

TRAVELLERS: list[tuple[Any, Any]] = [
    (None, None),
    (True, bool),
    (7, int),
    (2**200, int),
    (-(2**63), int),
    (1.5, float),
    ("text with \x00 and 🦀", str),
    (b"\x00\xff", bytes),
    (Decimal("1.10"), Decimal),
    (ID, UUID),
    (datetime(2030, 1, 1, tzinfo=UTC), datetime),
    (date(2030, 1, 31), date),
    (time(9, 30), time),
    (timedelta(hours=1.5), timedelta),
    (Colour.RED, Colour),
    (Level.LOW, Level),
    (Point(1, 2), Point),
    (Line((Point(1), Point(2)), "a"), Line),
    (ORDER, Order),
    ([ORDER], list[Order]),
    ({"a": ORDER}, dict[str, Order]),
    (Pair(1, "b"), Pair),
    ({"depth": 1}, Options),
    ([1, 2], list[int]),
    ({1, 2}, set[int]),
    (frozenset({"a"}), frozenset[str]),
    ((1, "a"), tuple[int, str]),
    ({1: "a"}, dict[int, str]),
    ({Colour.BLUE: 1}, dict[Colour, int]),
    (None, Optional[Point]),  # noqa: UP045 - users still write it
    (Point(1), Point | None),
    ("a", int | str),
    ([Cat(9), Dog("rex")], list[Cat | Dog]),
    ("b", Literal["a", "b"]),
    (UserId(5), UserId),
    (5, Annotated[int, msgspec.Meta(ge=0)]),
    ({"a": [1, None, {"b": True}]}, Any),
]


@pytest.mark.parametrize(("value", "hint"), TRAVELLERS, ids=lambda one: payloads.describe_hint(one)[:40])
def test_value_comes_back_as_its_type(value: Any, hint: Any) -> None:
    found = payloads.decode(payloads.encode(value, "the value"), hint, "the value")

    assert found == value
    assert type(found) is type(value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES)
def test_every_json_value_comes_back(value: Any) -> None:
    assert payloads.decode(payloads.encode(value, "the value"), Any, "the value") == value


def nested(depth: int, leaf: Any = None) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Opaque:
    pass


UNENCODABLE = [
    (Opaque(), "values of type .*Opaque have no JSON form"),
    ([Opaque()], "values of type .*Opaque have no JSON form"),
    ({"a": Point}, "values of type builtins.type have no JSON form"),
    (lambda: None, "values of type builtins.function have no JSON form"),
    ({(1, 2): 3}, "values of type builtins.tuple have no JSON form"),
    ("\ud800", "it holds text that is not valid Unicode"),
    ({"\udfff": 1}, "it holds text that is not valid Unicode"),
    (math.nan, "it contains NaN or infinity"),
    ([None, {"a": math.inf}], "it contains NaN or infinity"),
    (Line((Point(1), Point(-math.inf))), "it contains NaN or infinity"),  # type: ignore[arg-type]
    (nested(DEEPEST + 1), "it is nested more than 200 levels deep"),
    (nested(DEEPEST + 1, 1), "it is nested more than 200 levels deep"),
    (nested(50_000), "nested"),
    (cyclic(), "this list is nested too deeply or contains itself"),
]


@pytest.mark.parametrize(("value", "found"), UNENCODABLE, ids=lambda one: one if isinstance(one, str) else "")
def test_value_that_json_cannot_hold_is_refused(value: Any, found: str) -> None:
    with pytest.raises(EncodingError, match=f"^Expected the answer to be a value that JSON can hold, but .*{found}.*\\. "):
        payloads.encode(value, "the answer")


def test_pydantic_model_with_nan_is_refused() -> None:
    class Reading(pydantic.BaseModel):
        celsius: float

    with pytest.raises(EncodingError, match="it contains NaN or infinity"):
        payloads.encode(Reading(celsius=math.nan), "the reading")


def test_null_beside_finite_numbers_is_no_nan() -> None:
    assert bytes(payloads.encode([None, 1.5, "null"], "the value").data) == b'[null,1.5,"null"]'


@pytest.mark.parametrize("value", [nested(DEEPEST), nested(DEEPEST, "]" * 500), ["[" * 500] * 500, ["}{" * 300, '"[']])
def test_depth_counts_what_is_nested_and_not_what_is_written(value: Any) -> None:
    assert payloads.decode(payloads.encode(value, "the value"), Any, "the value") == value


def test_deep_json_from_elsewhere_is_refused_on_reading() -> None:
    deep = Payload(msgspec.Raw(b"[" * 100_000 + b"]" * 100_000))

    with pytest.raises(DecodingError, match=r"^Expected the value to be Any, but "):
        payloads.decode(deep, Any, "the value")


def test_value_over_the_limit_is_refused_and_one_at_it_is_not() -> None:
    payloads.encode("x" * 98, "the value", 100)

    with pytest.raises(PayloadTooLarge, match=r"^Expected the value to be at most 100 bytes as JSON, but it has 101\. "):
        payloads.encode("x" * 99, "the value", 100)


def test_limit_counts_bytes_and_not_characters() -> None:
    with pytest.raises(PayloadTooLarge, match="but it has 202"):
        payloads.encode("ж" * 100, "the value", 200)


@pytest.mark.parametrize(
    ("json", "hint", "found"),
    [
        (b'"a"', int, 'int, but expected `int`, got `str` in "a"'),
        (b'{"x":"a"}', Point, "Point, but expected `int`, got `str` - at `$.x`"),
        (b"{}", Point, "Point, but object missing required field `x`"),
        (b'"green"', Colour, "Colour, but invalid enum value 'green'"),
        (b'"no"', UUID, "UUID, but invalid UUID"),
        (b"[1]", dict[str, int], "dict[str, int], but expected `object`, got `array`"),
        (b'{"id":1}', Order, "Order, but "),
        (b"-1", Annotated[int, msgspec.Meta(ge=0)], "but expected `int` >= 0"),
        (b"[1", Any, "Any, but input data was truncated"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_what_was_expected_and_found(json: bytes, hint: Any, found: str) -> None:
    with pytest.raises(DecodingError) as refused:
        payloads.decode(Payload(msgspec.Raw(json)), hint, "the value")

    assert refused.value.message.startswith("Expected the value to be ")
    assert found in refused.value.message


def test_message_shows_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(DecodingError) as refused:
        payloads.decode(payloads.encode("x" * 10_000, "the value"), int, "the value")

    assert len(refused.value.message) < 400


def test_payload_of_another_codec_is_refused() -> None:
    sealed = Payload(msgspec.Raw(b'"sealed"'), encoding="aes", key="k1")

    with pytest.raises(DecodingError, match=r"^Expected the value to be plain JSON, but it is encoded as 'aes'\. "):
        payloads.decode(sealed, Any, "the value")


def test_hint_that_cannot_be_hashed_works() -> None:
    assert payloads.decode(payloads.encode(1, "the value"), Annotated[int, []], "the value") == 1


class Own(BaseException):
    pass


@dataclass
class Raising:
    """Raises what it is told to when it is made."""

    name: str

    def __post_init__(self) -> None:
        raise RAISED[self.name]


class RaisingModel:
    """Raises what it is told to when it is written."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_validate(cls, name: str) -> RaisingModel:
        return cls(name)

    def model_dump(self, mode: str) -> str:
        raise RAISED[self.name]


RAISED: dict[str, BaseException] = {
    type(error).__name__: error
    for error in (KeyError("k"), asyncio.CancelledError(), GeneratorExit(), SystemExit(3), StopIteration(), Own("mine"))
}


@pytest.mark.parametrize("name", RAISED)
def test_S4_whatever_a_type_raises_is_a_reason_to_refuse_its_value(name: str) -> None:
    with pytest.raises(DecodingError, match=rf"^Expected a value to be Raising, but {name}.* in "):
        payloads.decode(Payload(msgspec.Raw(f'{{"name":"{name}"}}'.encode())), Raising, "a value")
    with pytest.raises(EncodingError, match=rf"^Expected a value to be a value that JSON can hold, but {name}"):
        payloads.encode(RaisingModel(name), "a value")


@dataclass
class Interrupting:
    """Somebody presses Ctrl-C while it is decoded or encoded."""

    number: int = 0

    def __post_init__(self) -> None:
        if self.number:
            signal.raise_signal(signal.SIGINT)


class InterruptingModel:
    """The same for a model, in the way of pydantic."""

    @classmethod
    def model_validate(cls, _value: object) -> InterruptingModel:
        return cls()

    def model_dump(self, mode: str) -> object:
        return Interrupting(1)


def test_interrupt_by_the_user_goes_through() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            payloads.decode(Payload(msgspec.Raw(b'{"number":1}')), Interrupting, "a value")
        with pytest.raises(KeyboardInterrupt):
            payloads.encode(InterruptingModel(), "a value")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [MemoryError(), ForbiddenInWorkflow("no clock")])
def test_what_is_not_the_fault_of_a_value_goes_through(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RAISED, "other", error)

    with pytest.raises(type(error)):
        payloads.decode(Payload(msgspec.Raw(b'{"name":"other"}')), Raising, "a value")
    with pytest.raises(type(error)):
        payloads.encode(RaisingModel("other"), "a value")
