"""Values come back as they were or are refused when written; hints that cannot work are refused at registration."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntFlag
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Protocol, TypedDict, TypeVar
from uuid import UUID

import annotated_types
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from holdfast.core import payloads, type_checks
from holdfast.core.models import Unfaithful
from holdfast.core.payloads import DEFAULT_LIMIT, Payload
from holdfast.core.signatures import Signature
from holdfast.errors import DecodingError, EncodingError, InvalidArguments, InvalidDefinition, InvalidResult

T = TypeVar("T")


def take(hint: Any) -> Signature:
    """The signature of a function that takes and gives one value of a hint."""

    def function(item):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return item

    function.__annotations__ = {"item": hint, "return": hint}
    return Signature(function, "activity 'take'", skip=0)


def send(value: Any, hint: Any) -> Any:
    signature = take(hint)
    (argument,) = signature.decode_arguments(signature.encode_arguments([value], {}, DEFAULT_LIMIT))
    assert signature.decode_result(signature.encode_result(value, DEFAULT_LIMIT)) == argument
    return argument


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Place(Point):
    name: str = ""


@dataclass
class Circle:
    radius: float


@dataclass
class Named:
    kind: Literal["named"]
    x: int


@dataclass
class Numbered:
    kind: Literal["numbered", 7]
    x: int


@dataclass
class Drawing:
    shapes: list[Point | Circle]
    by_name: dict[str, Point | Circle | None] = dataclasses.field(default_factory=dict)
    file: Path | None = None
    inner: Drawing | None = None
    size: int = dataclasses.field(default=0, init=False)


@dataclass
class Box(Generic[T]):
    item: T


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str
    id_: int = msgspec.field(default=0, name="$id")


class Wider(Renamed):
    more: int = 0


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Bird(msgspec.Struct, tag="bird"):
    lives: int = 1


class Model(pydantic.BaseModel):
    colour: str = "red"


class Pair(NamedTuple):
    left: Point | Circle
    right: dt.date | None = None


class Options(TypedDict, total=False):
    depth: int
    shape: Point | Circle


class Needed(TypedDict):
    id: int
    note: NotRequired[str]


class Mode(IntFlag):
    READ = 1
    WRITE = 2


@dataclass
class Derived:
    x: int
    double: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.double = self.x * 2


Shapes = TypeAliasType("Shapes", dict[str, Point | Circle] | None)
UserId = NewType("UserId", int)


def make_drawing() -> Drawing:
    drawing = Drawing([Point(1), Circle(2.0)], {"a": None, "b": Circle(1.5)}, Path("a/b"), Drawing([]))
    drawing.size = 5
    return drawing


TRAVELLERS: list[tuple[Any, Any]] = [
    (Point(1), Point | Circle),
    (Circle(1.0), Point | Circle | None),
    (None, Point | Circle | None),
    ("text", Point | Circle | str),
    ([Point(1), Circle(2.0)], list[Point | Circle]),
    ({"a": Circle(2.0)}, dict[str, Point | Circle]),
    ([Named("named", 1), Numbered(7, 1)], list[Named | Numbered]),
    ([Cat(), Bird()], list[Cat | Bird]),
    ([Cat(), Point(1), Model(), {"id": 1}], list[Cat | Point | Model | Needed]),
    (make_drawing(), Drawing),
    (Box(Point(1)), Box[Point]),
    (Box([Point(1), Circle(1.0)]), Box[list[Point | Circle]]),
    (Box(5), Box),
    (Renamed("ann", 5), Renamed),
    (Pair(Circle(1.0), dt.date(2030, 1, 1)), Pair),
    ({"depth": 1, "shape": Point(1)}, Options),
    ({}, Options),
    ({"id": 1}, Needed),
    (Mode.READ | Mode.WRITE, Mode),
    (Path("a/b"), Path),
    ([PurePosixPath("/x")], list[PurePosixPath]),
    (Derived(4), Derived),
    ({"a": Circle(1.0)}, Shapes),
    ({"id": 1, "note": "a"}, Needed),
    ({"depth": 1}, Options | Point),
    (UserId(5), UserId),
    (5, Annotated[int, annotated_types.Gt(1)]),
    ([1], collections.abc.Iterable[int]),
    ([Point(1)], collections.abc.Sequence[Point]),
    ({"a": Point(1)}, collections.abc.Mapping[str, Point]),
    ([dt.date(2030, 1, 1)], collections.abc.Iterable[dt.date]),
    ({1: "a"}, dict[int, str]),
    ({UUID(int=1): "a"}, dict[UUID, str]),
    (5, object),
    ([5], list[T]),  # type: ignore[valid-type]
    (dt.datetime(2030, 1, 1), dt.datetime),  # noqa: DTZ001 - without a zone
    (dt.timedelta(days=-5, microseconds=1), dt.timedelta),
    (Decimal("1E+5"), Decimal),
    (-0.0, float),
    (2**200, int),
]


@pytest.mark.parametrize(("value", "hint"), TRAVELLERS, ids=lambda one: payloads.describe_hint(one)[:50])
def test_V2_value_comes_back_as_its_type(value: Any, hint: Any) -> None:
    found = send(value, hint)

    assert found == value
    assert type(found) is type(value)


def make_derived() -> Derived:
    value = Derived(1)
    value.double = 7
    return value


ZONE = dt.timezone(dt.timedelta(minutes=19, seconds=32))

REFUSED: list[tuple[Any, Any, str]] = [
    (Place(1, 2, "a"), Point, "a Place would come back as a Point, and lose 'name'. Declare it as Place, or as a union"),
    ([Place(1)], list[Point], "a Place would come back as a Point, and lose 'name'"),
    ({"a": [Place(1)]}, dict[str, list[Point]], "a Place would come back as a Point"),
    (Place(1), Point | None, "a Place would come back as a Point"),
    (Place(1), Point | Circle, "a Place would come back as a Point"),
    ((1, Place(1)), tuple[int, Point], "a Place would come back as a Point"),
    (Box(Place(1)), Box[Point], "a Place would come back as a Point"),
    (Drawing([Place(1)]), Drawing, "a Place would come back as a Point"),
    (Wider("a"), Renamed, "a Wider would come back as a Renamed, and lose 'more'"),
    (Circle(1.0), Point, "it is a Circle, not a Point"),
    ({"x": 1, "z": 2}, Point, "Point has no field 'z'"),
    ({"id": 1, "z": 2}, Needed, "Needed has no field 'z'"),
    (make_derived(), Derived, "the __post_init__ of Derived would change the value"),
    (dt.datetime(1930, 1, 1, tzinfo=ZONE), dt.datetime, "is not a whole number of minutes"),
]


@pytest.mark.parametrize(("value", "hint", "reason"), REFUSED)
def test_V2_value_that_would_not_come_back_is_refused(value: Any, hint: Any, reason: str) -> None:
    with pytest.raises(EncodingError) as refused:
        send(value, hint)

    assert refused.value.message.startswith("Expected parameter 'item' of activity 'take' (a ")
    assert f"to arrive as it was sent, but {reason}" in refused.value.message or reason in refused.value.message


@dataclass
class Alike:
    x: int
    y: int = 0


@dataclass
class Undecided:
    shape: list[Point | Alike]


class Looks(Protocol):
    x: int


class Root(pydantic.RootModel[dict[str, int]]):
    pass


class Mixed(Enum):
    A = (1, 2)


@dataclass
class WithInit:
    x: int
    seed: dataclasses.InitVar[int] = 0


BAD_HINTS: list[tuple[Any, str]] = [
    (
        Point | Alike,
        "Point and Alike cannot be told apart in JSON: both may be written with the same fields (x, y). Give each",
    ),
    (list[Point | Alike], "cannot be told apart"),
    (Undecided, "cannot be told apart"),
    (dict[str, Undecided | None], "cannot be told apart"),
    (Point | Root, "may look like that of the other types"),
    (Point | dict[str, int], "may look like one of its classes. Give each"),
    (str | dt.datetime, "cannot be told apart in JSON"),
    (list[int] | set[int], "cannot be told apart in JSON"),
    (Path | str, "cannot be told apart in JSON"),
    (Callable[[int], int], "is not one. Use a dataclass"),
    (collections.abc.Iterator[int], "is not one"),
    (Looks, "Looks is not one"),
    (complex, "complex is not one"),
    (list[Looks], "Looks is not one"),
    (Box[Looks], "Looks is not one"),
    (typing.Awaitable[int], "is not one"),
    (Mixed, "Enums must contain either all str or all int values"),
    (WithInit, "InitVar"),
    (dict[tuple[int, int], str], "as the type of a dict's keys"),
    (dict[int | str, str], "as the type of a dict's keys"),
    (dict[bool, str], "as the type of a dict's keys"),
    (dict[Path, str], "as the type of a dict's keys"),
]


@pytest.mark.parametrize(("hint", "reason"), BAD_HINTS, ids=lambda one: payloads.describe_hint(one)[:50])
def test_V2_hint_that_cannot_work_is_refused_at_registration(hint: Any, reason: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        take(hint)

    assert refused.value.message.startswith(
        "Expected parameter 'item' of activity 'take' to have a type that JSON can become"
    )
    assert reason in refused.value.message


def test_V2_object_that_fits_no_class_of_a_union_is_refused_with_what_was_found() -> None:
    with pytest.raises(DecodingError, match="an object with the fields 'z' fits none of Point, Circle"):
        payloads.decode(Payload(msgspec.Raw(b'{"z":1}')), Point | Circle, "the value")
    with pytest.raises(DecodingError, match="expected `kind` to be one of 'named', 'numbered', 7, got 'other'"):
        payloads.decode(Payload(msgspec.Raw(b'{"kind":"other","x":1}')), Named | Numbered, "the value")
    with pytest.raises(DecodingError, match="got `str`"):
        payloads.decode(Payload(msgspec.Raw(b'{"shapes":[{"radius":"x"}]}')), Drawing, "the value")


def test_V2_bounds_of_annotated_types_and_pydantic_are_kept() -> None:
    for bound in (annotated_types.Gt(1), pydantic.Field(gt=1), msgspec.Meta(gt=1)):
        with pytest.raises(InvalidArguments, match=r"> 1|>= 2"):
            take(Annotated[int, bound]).decode_arguments(Payload(msgspec.Raw(b"[1]")))


def test_V3_result_that_does_not_fit_is_refused_with_what_was_expected_and_found() -> None:
    with pytest.raises(
        InvalidResult,
        match=r"^Expected the result of activity 'take' to fit its return hint, int, but it does not: expected `int`, ",
    ):
        take(int).encode_result("a", DEFAULT_LIMIT)


def test_V4_keyword_only_parameters_travel_in_the_order_of_the_parameters() -> None:
    def ship(item: str, *, count: int = 1, to: str) -> str:
        return f"{count} {item} to {to}"

    signature = Signature(ship, "activity 'ship'", skip=0)
    encoded = signature.encode_arguments(["tea"], {"to": "Ann"}, DEFAULT_LIMIT)

    assert bytes(encoded.data) == b'["tea",1,"Ann"]'
    assert signature.call(ship, signature.decode_arguments(encoded)) == "1 tea to Ann"


def test_V4_arguments_that_were_left_out_have_their_defaults() -> None:
    def order(item: str, count: int = 1, tags: list[str] = ["a"]) -> None: ...  # noqa: B006 - a fresh one each time

    signature = Signature(order, "workflow 'order'", skip=0)
    found = signature.decode_arguments(Payload(msgspec.Raw(b'["tea"]')))

    assert found == ("tea", 1, ["a"])
    assert found[2] is not signature.decode_arguments(Payload(msgspec.Raw(b'["tea",2]')))[2]
    with pytest.raises(InvalidArguments, match="but 'item' is missing"):
        signature.decode_arguments(Payload(msgspec.Raw(b"[]")))
    with pytest.raises(InvalidArguments, match="parameter 'item' of workflow 'order' to be str"):
        signature.decode_arguments(Payload(msgspec.Raw(b"[5]")))


# --- for all ---

SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats()),
    (str, st.text()),
    (bool, st.booleans()),
    (bytes, st.binary()),
    (Decimal, st.decimals(allow_nan=False)),
    (dt.datetime, st.datetimes(timezones=st.none() | st.timezones())),
    (dt.date, st.dates()),
    (dt.timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (Path, st.text("abc/.", min_size=1).map(Path)),
    (Point, st.builds(Point, st.integers(), st.integers()) | st.builds(Place, st.integers())),
    (Circle, st.builds(Circle, st.floats())),
    (Point | Circle, st.builds(Point, st.integers()) | st.builds(Circle, st.floats()) | st.builds(Place, st.integers())),
    (Renamed, st.builds(Renamed, st.text()) | st.builds(Wider, st.text())),
    (Cat | Bird, st.builds(Cat, st.integers()) | st.builds(Bird, st.integers())),
    (Model, st.builds(Model, colour=st.text())),
    (Derived, st.builds(Derived, st.integers())),
]
Typed = tuple[Any, st.SearchStrategy[Any]]
"""A hint, and its values."""


def wrap(one: Typed) -> st.SearchStrategy[Typed]:
    hint, values = one
    wrapped: list[Typed] = [
        (types.GenericAlias(list, (hint,)), st.lists(values, max_size=3)),
        (types.GenericAlias(dict, (str, hint)), st.dictionaries(st.text(), values, max_size=3)),
        (types.GenericAlias(tuple, (hint, int)), st.tuples(values, st.integers())),
        (hint | None, st.none() | values),
        (types.GenericAlias(Box, (hint,)), st.builds(Box, values)),
    ]
    return st.sampled_from(wrapped)


TYPES: st.SearchStrategy[Typed] = st.recursive(st.sampled_from(SCALARS), lambda inner: inner.flatmap(wrap), max_leaves=4)


@given(st.data())
def test_V2_every_value_comes_back_or_is_refused(data: st.DataObject) -> None:
    hint, values = data.draw(TYPES)
    value = data.draw(values)
    check = type_checks.find_check(hint)

    try:
        encoded = payloads.encode(value, "the value", check=check)
    except EncodingError:
        return
    assert payloads.decode(encoded, hint, "the value") == value


@dataclass(eq=False)
class Counted:
    number: int

    def __post_init__(self) -> None:
        self.number += 1


@dataclass
class HalfCompared:
    number: int = dataclasses.field(compare=False)

    def __post_init__(self) -> None:
        self.number += 1


BoundToBase = TypeVar("BoundToBase", bound=Counted)


class CountedMore(Counted):
    pass


@pytest.mark.parametrize("value", [Counted(1), HalfCompared(1)])
def test_V2_change_by_post_init_is_found_where_comparing_does_not_see_it(value: Any) -> None:
    with pytest.raises(Unfaithful, match=r"__post_init__ of .* would change the value"):
        check_as(value, type(value))


def test_V2_subclass_is_refused_where_the_hint_is_a_type_variable_with_a_bound() -> None:
    with pytest.raises(Unfaithful, match="CountedMore would come back as a Counted"):
        check_as([CountedMore(1)], list[BoundToBase])  # type: ignore[valid-type]


class Sides(NamedTuple):
    left: int
    right: int


class Span(NamedTuple):
    begin: int
    end: int


@dataclass
class Note:
    text: str


class Look(Enum):
    LARGE = "large"


ODD_ZONE = dt.timezone(dt.timedelta(seconds=90))


@pytest.mark.parametrize(
    ("value", "hint", "reason"),
    [
        (b"hello", str, "a bytes would come back as a str"),
        (dt.datetime(2030, 1, 1, tzinfo=dt.UTC), str, "a datetime would come back as a str"),
        (Decimal("1.5"), str | None, "a Decimal would come back as a str"),
        (["a", UUID(int=1)], list[str], "a UUID would come back as a str"),
        ({"a": Path("b")}, dict[str, str], "Path would come back as a str"),
        (Note(Look.LARGE), Note, "a Look would come back as a str"),  # type: ignore[arg-type]
        ({1: "a", "1": "b"}, dict[str, str], "a key that is a int would come back as a str"),
        ({dt.datetime(2030, 1, 1, tzinfo=ODD_ZONE): 1}, dict[dt.datetime, int], "not a whole number of minutes"),
        (2**53 + 1, float, "would be rounded to a float"),
        (Span(1, 2), Sides, "it is a Span, not a Sides"),
    ],
)
def test_V2_value_that_only_looks_like_one_of_the_hint_in_json_is_refused(value: Any, hint: Any, reason: str) -> None:
    with pytest.raises(Unfaithful, match=reason):
        check_as(value, hint)


class TextOrTime(pydantic.BaseModel):
    either: dt.datetime | str
    both: list[dt.date] | list[str]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (2**60, float),
        (2**60 + 1, float | int),
        (10**30, Decimal | float | int),
        (TextOrTime(either=dt.datetime(2030, 1, 1, tzinfo=dt.UTC), both=[dt.date(2030, 1, 1)]), TextOrTime),
    ],
)
def test_V2_value_that_can_be_told_from_others_is_taken(value: Any, hint: Any) -> None:
    assert take(hint).decode_result(take(hint).encode_result(value, DEFAULT_LIMIT)) == value


def check_as(value: Any, hint: Any) -> None:
    check = type_checks.find_check(hint)
    assert check is not None
    check(value)


class Measured(pydantic.BaseModel):
    size: float = 0.0
    sizes: list[float] = pydantic.Field(default=[])
    by_name: dict[str, float] = pydantic.Field(default={})
    either: int | float = 0


class Measuring(pydantic.BaseModel):
    inner: Measured
    more: list[Measured] = pydantic.Field(default=[])


@pytest.mark.parametrize("field", ["size", "sizes", "by_name"])
def test_V1_int_that_a_float_of_a_model_would_round_is_refused(field: str) -> None:
    value: Any = {"size": 2**53 + 1, "sizes": [1.0, 2**53 + 1], "by_name": {"a": 2**53 + 1}}[field]
    rounded = Measured.model_construct(**{field: value})
    for one in (rounded, Measuring(inner=rounded), Measuring(inner=Measured(), more=[rounded])):
        with pytest.raises(EncodingError, match="would be rounded to a float"):
            payloads.encode(one, "it", check=type_checks.find_check(type(one)))


def test_V1_int_that_fits_a_float_of_a_model_is_taken() -> None:
    fits = Measuring(inner=Measured.model_construct(size=5, sizes=[2**53], by_name={"a": 1}, either=2**53 + 1))

    written = payloads.encode(fits, "it", check=type_checks.find_check(Measuring))

    assert payloads.decode(written, Measuring, "it") == fits


@pytest.mark.parametrize("hint", [Path, PurePosixPath, Path | None, list[Path], dict[str, Path]])
def test_V2_path_of_windows_is_refused_where_it_would_be_another(hint: Any) -> None:
    path = PureWindowsPath(r"a\b")
    value = {"list": [path], "dict": {"a": path}}.get(getattr(hint, "__name__", ""), path)

    with pytest.raises(EncodingError, match="a PureWindowsPath would come back as a"):
        payloads.encode(value, "it", check=type_checks.find_check(hint))

    written = payloads.encode(path, "it", check=type_checks.find_check(PureWindowsPath))
    assert payloads.decode(written, PureWindowsPath, "it") == path
