"""Values as JSON and back, and values of Python on their way in."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.errors import FeelError, FeelLimitExceeded
from holdfast.feel.json_values import from_json, to_feel, to_json
from holdfast.feel.temporal.values import ExactDate, ExactDateTime, ExactTime
from holdfast.feel.values import Range, Value

PARIS = ZoneInfo("Europe/Paris")
EVENING = datetime(2024, 2, 29, 18, 30, tzinfo=PARIS)


class Colour(Enum):
    RED = "red"
    NUMBERED = 3


class Size(StrEnum):
    LARGE = "large"


class Level(IntEnum):
    HIGH = 2


class Name(str):
    __slots__ = ()


class Pair(NamedTuple):
    left: int
    right: int


@dataclass
class Item:
    sku: str
    price: float
    parts: tuple[int, ...] = ()


class Order(msgspec.Struct):
    id: int
    items: list[Item]


class Tied(dict[str, int]):
    pass


class PlainMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(["one"])

    def __len__(self) -> int:
        return 1


def refuse(value: Any) -> str:
    with pytest.raises(FeelError) as caught:
        to_feel(value)
    return str(caught.value)


def nest(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def unnest(value: Any) -> tuple[int, Any]:
    depth = 0
    while isinstance(value, list):
        (value,) = value
        depth += 1
    return depth, value


# --- JSON ---


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        ("text", "text"),
        (Decimal(5), 5),
        (Decimal("5.00"), 5),
        (Decimal("-0"), 0),
        (Decimal("1.5"), 1.5),
        (Decimal("0.1"), 0.1),
        (Decimal("9" * 34), int("9" * 34)),
        (Decimal("0.1000000000000000000000000001"), {"@number": "0.1000000000000000000000000001"}),
        (Decimal("1E+6000"), {"@number": "1E+6000"}),
        (Decimal("1E-6000"), {"@number": "1E-6000"}),
        (date(2024, 2, 29), {"@date": "2024-02-29"}),
        (ExactDate(99999, 1, 1), {"@date": "99999-01-01"}),
        (time(10, 30), {"@time": "10:30:00"}),
        (ExactTime(10, 30, 0, 123456789), {"@time": "10:30:00.123456789"}),
        (EVENING, {"@date and time": "2024-02-29T18:30:00@Europe/Paris"}),
        (datetime(2024, 2, 29, 18, 30), {"@date and time": "2024-02-29T18:30:00"}),  # noqa: DTZ001
        (feel.DaysTimeDuration(3_600_000_000_000), {"@duration": "PT1H"}),
        (feel.YearsMonthsDuration(14), {"@duration": "P1Y2M"}),
        (feel.DaysTimeDuration(0), {"@duration": "PT0S"}),
        (feel.YearsMonthsDuration(0), {"@duration": "P0M"}),
        ([Decimal(1), ["a"]], [1, ["a"]]),
        ({"a": {"b": None}}, {"a": {"b": None}}),
        (
            Range(Decimal(1), Decimal(5), end_included=False),
            {"@range": {"start": 1, "end": 5, "start included": True, "end included": False}},
        ),
        (
            Range(None, date(2024, 2, 29), has_start=False),
            {"@range": {"end": {"@date": "2024-02-29"}, "start included": True, "end included": True}},
        ),
        (Range(Decimal(1), Decimal(1), has_start=False, has_end=False), {"@range": {"=": 1}}),
        (
            Range("a", "a", start_included=False, end_included=False, has_start=False, has_end=False),
            {"@range": {"!=": "a"}},
        ),
        ({"@date": "2024-02-29"}, {"@context": {"@date": "2024-02-29"}}),
        ({"@context": {"@x": Decimal(1)}}, {"@context": {"@context": {"@context": {"@x": 1}}}}),
        ({"@later": True}, {"@context": {"@later": True}}),
        ({"@date": "x", "b": "y"}, {"@date": "x", "b": "y"}),
    ],
)
def test_every_value_has_a_json_from_which_it_comes_back(value: Value, data: object) -> None:
    assert to_json(value) == data
    assert type(to_json(value)) is type(data)
    assert from_json(json.loads(json.dumps(data))) == value
    assert type(from_json(data)) is type(value)


def test_the_second_time_that_a_clock_shows_is_kept() -> None:
    first = datetime(2024, 10, 27, 2, 30, tzinfo=PARIS)
    second = first.replace(fold=1)
    exact = ExactDateTime(2024, 10, 27, 2, 30, 0, 1, PARIS, fold=1)

    assert from_json(to_json(second)).utcoffset() == timedelta(hours=1)
    assert from_json(to_json(first)).utcoffset() == timedelta(hours=2)
    assert from_json(to_json(exact)) == exact


def test_numbers_that_are_none_are_null() -> None:
    assert to_json(Decimal("NaN")) is None
    assert from_json([float("nan"), float("inf")]) == [None, None]


def test_json_of_others_is_read_as_it_is() -> None:
    assert from_json({"@unknown": 1}) == {"@unknown": 1}
    assert from_json({"a": 0.1, "b": [1]}) == {"a": Decimal("0.1"), "b": [1]}


@pytest.mark.parametrize(
    "data",
    [
        {"@date": "2024-02-30"},
        {"@date": 5},
        {"@time": "x"},
        {"@number": "x"},
        {"@number": "NaN"},
        {"@number": 5},
        {"@range": 5},
        {"@context": 5},
        {"@duration": ["P1D", 1]},
        {"@date and time": []},
    ],
)
def test_a_tag_with_something_else_in_it_is_refused(data: object) -> None:
    with pytest.raises(FeelError, match=r"at \[0\]"):
        from_json([data])


def test_a_function_has_no_json() -> None:
    function = feel.evaluate("function(a) a")

    with pytest.raises(FeelError, match=r"at a\[1\], but it is a function"):
        to_json({"a": [Decimal(1), function]})


def test_values_of_python_have_a_json_too() -> None:
    assert to_json({"a": (1, 2.5), "b": timedelta(hours=1)}) == {"a": [1, 2.5], "b": {"@duration": "PT1H"}}


def test_json_does_not_change_what_it_is_made_of() -> None:
    value = {"a": [Decimal(1)]}
    data = to_json(value)

    assert value == {"a": [Decimal(1)]}
    assert isinstance(data, dict)
    assert data["a"] is not value["a"]


def test_a_deep_value_has_a_json_and_a_deeper_one_is_refused() -> None:
    assert unnest(from_json(to_json(nest(1000, "x")))) == (1000, "x")
    with pytest.raises(FeelError, match="1,000 deep"):
        to_json(nest(1001, "x"))
    with pytest.raises(FeelError, match="1,000 deep"):
        from_json(nest(100_000, "x"))


def test_what_occurs_often_is_rebuilt_once_and_refused_if_it_is_too_much_written_out() -> None:
    value: Value = ["x"]
    for _ in range(10):
        value = [value, value]
    data: Any = to_json(value)
    for _ in range(90):
        value = [value, value]

    assert data[0] is data[1]
    with pytest.raises(FeelLimitExceeded, match="Ask for a part"):
        to_json(value)


# --- from Python ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, Decimal(5)),
        (True, True),
        (0.1, Decimal("0.1")),
        (1e300, Decimal("1e300")),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Decimal("Infinity"), None),
        (12345678901234567890123456789012345678, Decimal(12345678901234567890123456789012350000)),
        (Decimal("0.12345678901234567890123456789012345678"), Decimal("0.1234567890123456789012345678901235")),
        (Colour.RED, "red"),
        (Colour.NUMBERED, Decimal(3)),
        (Size.LARGE, "large"),
        (Level.HIGH, Decimal(2)),
        (Name("n"), "n"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        ((1, (2,)), [Decimal(1), [Decimal(2)]]),
        (Pair(1, 2), [Decimal(1), Decimal(2)]),
        (timedelta(days=1, microseconds=5), feel.DaysTimeDuration(86_400_000_005_000)),
        (datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2023, 12, 31, 23, tzinfo=UTC)),
        (OrderedDict(a=1), {"a": Decimal(1)}),
        (Tied(a=1), {"a": Decimal(1)}),
        (PlainMapping(), {"one": Decimal(1)}),
        (MappingProxyType({"a": [1]}), {"a": [Decimal(1)]}),
        ({Size.LARGE: 1}, {"large": Decimal(1)}),
        (Item("a", 1.5, (1,)), {"sku": "a", "price": Decimal("1.5"), "parts": [Decimal(1)]}),
        (Order(1, [Item("a", 2.0)]), {"id": Decimal(1), "items": [{"sku": "a", "price": Decimal(2), "parts": []}]}),
        (Range(1, 5), Range(Decimal(1), Decimal(5))),
    ],
)
def test_values_of_python_take_the_form_of_feel(value: Any, expected: Value) -> None:
    made = to_feel(value)

    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    "value",
    [
        "x",
        Decimal("1.50"),
        date(2024, 1, 1),
        EVENING,
        feel.YearsMonthsDuration(1),
        ["a", Decimal(1), None],
        {"a": {"b": [True]}},
        Range(Decimal(1), Decimal(2)),
        nest(100, "x"),
    ],
)
def test_what_is_as_it_should_be_is_given_back_itself(value: Value) -> None:
    assert to_feel(value) is value


def test_what_is_given_is_not_changed() -> None:
    given_value = {"a": [1, {"b": 2.5}]}

    assert to_feel(given_value) == {"a": [Decimal(1), {"b": Decimal("2.5")}]}
    assert given_value == {"a": [1, {"b": 2.5}]}
    assert type(given_value["a"][0]) is int


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, 1j, Item, deque([1]), Ellipsis])
def test_what_feel_does_not_have_is_refused_with_the_way_to_it(value: Any) -> None:
    message = refuse({"order": {"items": ["a", (1, value)]}})

    assert "at order.items[1][1]" in message
    assert type(value).__name__ in message


def test_what_is_refused_at_the_top_has_no_way_to_it() -> None:
    assert refuse(object()).startswith("Expected a value that FEEL has, but it is a value of type object.")


def test_the_way_goes_through_dataclasses_and_structs() -> None:
    assert "at items[0].price" in refuse(Order(1, [Item("a", object())]))  # type: ignore[arg-type]


def test_a_key_that_is_no_text_is_refused() -> None:
    assert "the key 5" in refuse({"a": {5: 1}})


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})

    assert "contains itself" in refuse({"a": loop})


def test_a_value_is_at_most_a_thousand_deep() -> None:
    assert unnest(to_feel(nest(1000, 5))) == (1000, Decimal(5))
    assert "1,000 deep" in refuse(nest(1001, 5))
    assert "1,000 deep" in refuse(nest(100_000, 5))


def test_what_occurs_often_is_looked_at_once() -> None:
    value: Any = [5]
    for _ in range(100):
        value = [value, value]

    made = to_feel(value)

    assert made[0] is made[1]


def test_an_integer_too_large_for_a_number_is_null() -> None:
    assert to_feel(10**7000) is None
    assert to_feel([-(10**7000)]) == [None]


def test_a_long_list_is_taken_whole() -> None:
    assert to_feel(list(range(200_000))) == [Decimal(one) for one in range(200_000)]


# --- for all ---

ZONES = st.sampled_from([None, UTC, PARIS, timezone(timedelta(hours=-5, minutes=-30))])
NUMBERS = st.builds(
    lambda digits, exponent: Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), exponent)),
    st.integers(-(10**34) + 1, 10**34 - 1),
    st.integers(-40, 10) | st.integers(-6000, 6000),
)
SIMPLE = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.text(max_size=5)
    | st.dates()
    | st.times(timezones=ZONES)
    | st.datetimes(timezones=ZONES, allow_imaginary=False)
    | st.integers(-(10**18), 10**18).map(feel.DaysTimeDuration)
    | st.integers(-(10**9), 10**9).map(feel.YearsMonthsDuration)
    | st.builds(Range, NUMBERS, NUMBERS, st.booleans(), st.booleans())
    | st.builds(Range, st.none(), NUMBERS, st.booleans(), st.booleans(), st.just(False))
)
KEYS = st.text(max_size=3) | st.sampled_from(["@date", "@number", "@context", "@range", "@", "@x"])
VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=10
)


@given(VALUES)
def test_json_gives_back_every_value(value: Value) -> None:
    data = to_json(value)

    assert from_json(data) == value
    assert from_json(msgspec.json.decode(msgspec.json.encode(data))) == value


@given(VALUES)
def test_every_value_of_feel_is_fine_on_its_way_in(value: Value) -> None:
    assert to_feel(value) is value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=10,
    )
)
def test_a_value_that_came_in_stays_as_it_is(value: Any) -> None:
    made = to_feel(value)

    assert to_feel(made) is made
