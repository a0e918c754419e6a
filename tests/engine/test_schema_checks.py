"""Checks without the code: whatever a type takes fits the schema by which its values are checked."""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator

from holdfast.core.check_schemas import make_check_schema
from holdfast.core.decoders import make_decoder
from holdfast.core.linear_patterns import find_linear, find_weight
from holdfast.engine.schema_checks import MOST_STEPS, adapt_patterns, find_misfit, make_validator


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Forgiving(enum.Enum):
    YES = "yes"

    @classmethod
    def _missing_(cls, value: object) -> Forgiving:
        return cls.YES


class Tagged(Struct, tag="tagged", rename="camel"):
    first_part: int
    second_part: str = ""


class Closed(Struct, forbid_unknown_fields=True, tag=True):
    count: int = 0


class Row(Struct, array_like=True):
    name: str
    count: int = 0


class Tree(Struct):
    items: list[Tree] = []


class Point(NamedTuple):
    x: int
    y: int = 0


class Options(TypedDict):
    name: str
    size: NotRequired[int]


@dataclass
class Stored:
    where: Path
    sizes: list[int] = field(default_factory=list)
    parent: Stored | None = None


@dataclass
class Cat:
    lives: int


@dataclass
class Dog:
    tricks: list[str]


class Person(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first_name: str = Field(alias="firstName")
    age: int | None = None
    born: dt.date | None = None
    price: Decimal = Decimal(0)
    tags: Annotated[set[str], Field(max_length=2)] = set()
    word: Annotated[str, Field(pattern=r"^\w+$")] = "x"
    code: str = Field("", validation_alias=AliasChoices("code", AliasPath("codes", 0)))


class Number(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, extra="forbid")
    number: str
    friends: list[Number] = []


class Listed(BaseModel):
    names: list[str]
    share: float = 0.0
    person: Person | None = None

    @field_validator("names", mode="before")
    @classmethod
    def split(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value


class Wrapped(BaseModel):
    value: int

    @model_validator(mode="before")
    @classmethod
    def wrap(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"value": value}


class Made(BaseModel):
    value: int

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"value": 1, **given})


class Lax(BaseModel):
    """Whatever pydantic makes of texts."""

    count: Annotated[int, Field(ge=0, lt=10**31)] | None = None
    share: Annotated[float, Field(gt=-1.0)] | None = None
    price: Decimal | None = None
    is_paid: bool | None = None
    at: dt.datetime | None = None
    day: dt.date | None = None
    hour: dt.time | None = None
    length: dt.timedelta | None = None
    key: UUID | None = None


HINTS: list[Any] = [
    int, float, bool, str, bytes, None, Any, dt.datetime, dt.date, dt.time, dt.timedelta, UUID, Decimal, Path,
    Colour, Level, Forgiving, Literal["a", 1], Tagged, Closed, Row, Tree, Point,
    Options, Stored, Cat | Dog, Person, Number, Listed, Wrapped, Made, Lax,
    RootModel[list[int]], Tagged | Closed, int | str | None,
    Annotated[int, Meta(ge=0, lt=10)], Annotated[float, Meta(gt=0.1, le=2.0**53)], Annotated[int, Meta(multiple_of=3)],
    Annotated[float, Meta(multiple_of=0.1)], Annotated[str, Meta(min_length=1, max_length=3)],
    Annotated[bytes, Meta(min_length=1, max_length=2)], Annotated[str, Meta(pattern=r"^\w+$")],
    Annotated[str, Meta(extra_json_schema={"maxLength": 1, "type": "integer"})],
    Annotated[str, Field(max_length=2, pattern=r"\d$")],
]  # fmt: skip

hints = st.recursive(
    st.sampled_from(HINTS),
    lambda inner: st.one_of(
        inner.map(lambda one: list[one]),  # type: ignore[valid-type]
        inner.map(lambda one: Sequence[one]),  # type: ignore[valid-type]
        inner.map(lambda one: dict[str, one]),  # type: ignore[valid-type]
        inner.map(lambda one: Annotated[dict[float, one], Meta(max_length=1)]),  # type: ignore[valid-type]
        inner.map(lambda one: dict[Annotated[str, Meta(pattern=r"^\w")], one]),  # type: ignore[valid-type]
        inner.map(lambda one: Optional[one]),  # noqa: UP045 - None, too
        st.tuples(inner, inner).map(lambda two: tuple[two[0], two[1]]),  # type: ignore[valid-type]
        st.sampled_from([set[int], Annotated[frozenset[str], Meta(max_length=1)], Annotated[list[int], Meta(max_length=1)]]),
    ),
    max_leaves=3,
)

SCALARS: list[Any] = [
    None, True, False, 0, 1, 3, 9, 2**53 + 1, 10**30, -1, 0.3, 1.5, 3.0, 1e300, "", "a", "é", "Müller", "١٢٣", "a\n",
    "12", "1.5", "true", "red", "yes", "tagged", "Tagged", "Closed", "2020-02-29", "2020-02-29T12:00:00Z", "12:00:00", "P1D",
    "YQ==", "YWI=", "a,b",
    "00000000-0000-4000-8000-000000000000", "\u0301", "😀😀😀",
    " 12 ", "1_000", "+7", "-0", "1e3", "Infinity", "-inf", "nan", "NaN", "TRUE", "oFF", "y", "No", "on", "t", "today",
    "1582934400", "PT1H", "1 day", "00:30", "{00000000-0000-4000-8000-000000000000}", "00000000000040008000000000000000",
    "urn:uuid:00000000-0000-4000-8000-000000000000",
]  # fmt: skip
KEYS = [
    "a", "é", "1", "1.0", "name", "names", "size", "first_part", "firstPart", "secondPart", "type", "count", "items",
    "where", "sizes", "parent", "lives", "tricks", "firstName", "first_name", "age", "born", "price", "tags", "word", "code",
    "codes", "number", "friends",
    "share", "person", "value", "is_paid", "at", "day", "hour", "length", "key",
]  # fmt: skip

values = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=6,
)
FORMS: Mapping[Any, Mapping[str, Any]] = {
    Tagged: {"firstPart": 1, "type": "tagged"}, Closed: {"count": 1, "type": "Closed"}, Options: {"name": "a", "size": 1},
    Stored: {"where": "a", "sizes": [1], "parent": {"where": "b"}}, Cat | Dog: {"lives": 1},
    Tree: {"items": [{"items": []}]},
    Person: {"firstName": "a", "age": 1, "born": "2020-02-29", "tags": ["a", "a", "a"], "code": "x", "price": "1"},
    Number: {"number": "1", "friends": [{"number": 5}]}, Listed: {"names": ["a"], "share": 1, "person": {"first_name": "a"}},
    Wrapped: {"value": 1}, Made: {"value": 1},
    Lax: dict.fromkeys(("count", "share", "price", "is_paid", "at", "day", "hour", "length", "key")),
}  # fmt: skip


@st.composite
def forms(draw: st.DrawFn) -> tuple[Any, Any]:
    """A class, and what may be a form of it: a good one of which some entries are left out, added or replaced."""
    hint = draw(st.sampled_from(list(FORMS)))
    kept = {key: value for key, value in FORMS[hint].items() if draw(st.integers(0, 4))}
    replaced = draw(st.dictionaries(st.sampled_from([*FORMS[hint], "first_name", "codes"]), values, max_size=2))
    return hint, {**kept, **replaced}


def takes(hint: Any, value: Any) -> bool:
    try:
        make_decoder(hint).decode(msgspec.json.encode(value))
    except (ValueError, TypeError):
        return False
    return True


def check_fits(hint: Any, value: Any) -> None:
    schema = msgspec.json.decode(msgspec.json.encode(make_check_schema(hint)))
    validator = make_validator(schema)
    found = None if validator is None else find_misfit(validator, msgspec.json.decode(msgspec.json.encode(value)))
    assert found is None or not takes(hint, value), (found, schema)


@given(hints, values)
def test_H1_I4_whatever_a_type_takes_fits_its_check(hint: Any, value: Any) -> None:
    check_fits(hint, value)


@given(forms())
def test_H1_I4_whatever_a_class_takes_fits_its_check(form: tuple[Any, Any]) -> None:
    check_fits(*form)


TAKEN: list[tuple[Any, Any]] = [
    (Annotated[str, Meta(pattern=r"^\w+$")], "Müller"),
    (Annotated[str, Meta(pattern=r"^\w+\s\w+$")], "Jürgen\u2003Müller"),
    (Annotated[str, Meta(pattern=r"^\d+$")], "١٢٣"),
    (Annotated[str, Meta(pattern=r"^[^\W\d_]+$")], "Müller"),
    (Annotated[str, Meta(pattern=r"^a$")], "a\n"),
    (Annotated[str, Meta(pattern=r"^(?:a(?=x))?+ab$")], "ab"),
    (Annotated[str, Meta(pattern=r"^.$")], "\u2028"),
    (Annotated[str, Meta(pattern=r"^(?=z).*.*.*.*z")], "z" + "x" * 500 + "z"),
    (Decimal, 12.5),
    (set[int], [1, 1]),
    (Annotated[set[int], Meta(max_length=1)], [1, 1]),
    (Annotated[dict[float, int], Meta(max_length=1)], {"1": 1, "1.0": 2}),
    (Annotated[float, Meta(le=2.0**53)], 2**53 + 1),
    (Forgiving, "whatever"),
    (Tagged, {"firstPart": 1}),
    (Annotated[str, Meta(extra_json_schema={"maxLength": 1})], "abc"),
    (Person, {"first_name": "Ann", "age": "12", "born": 0, "price": 1.5, "tags": ["a", "b", "b"], "word": "e\u0301"}),
    (Person, {"firstName": "Ann", "codes": ["x"]}),
    (Number, {"number": 5, "friends": [{"number": 1.5}]}),
    (Listed, {"names": "a,b", "share": "0.5"}),
    (Wrapped, 5),
    (Made, {}),
    (list[Person | None], [None, {"first_name": "Ann"}]),
]


@pytest.mark.parametrize(("hint", "value"), TAKEN, ids=str)
def test_H1_I4_what_schemas_for_people_are_too_narrow_for_fits(hint: Any, value: Any) -> None:
    assert takes(hint, value)
    check_fits(hint, value)


REFUSED: list[tuple[Any, Any]] = [
    (Lax, {"count": "x"}),
    (Lax, {"count": -1}),
    (Lax, {"share": "half"}),
    (Lax, {"is_paid": "maybe"}),
    (Lax, {"day": "yesterday"}),
    (Lax, {"key": "k-1"}),
    (int, "1"),
    (Annotated[int, Meta(ge=0)], -1),
    (Annotated[str, Meta(pattern=r"^\w+$")], "a b"),
    (Annotated[str, Meta(pattern=r"^(\w+)+$")], "é" * 100_000 + "!"),
    (Annotated[str, Meta(pattern=r"^(?=a)(a+)+$")], "a" * 100_000 + "!"),
    (dict[Annotated[str, Meta(pattern=r"^\w+$")], int], {"a b": 1}),
    (Colour, "green"),
    (Tagged, {"firstPart": 1, "type": "other"}),
    (Tagged, {}),
    (Closed, {"more": 1}),
    (Row, []),
    (Tree, {"items": [{"items": [{"items": 5}]}]}),
    (Options, {}),
    (Stored, {"where": "a", "parent": {}}),
    (tuple[int, str], [1]),
    (Person, {}),
    (Person, {"firstName": 5}),
    (Person, "Ann"),
    (Number, {"number": "1", "friends": [{}]}),
    (Listed, {"names": [], "person": {}}),
]


@pytest.mark.parametrize(("hint", "value"), REFUSED, ids=lambda one: str(one)[:60])
def test_I4_what_surely_does_not_fit_is_found_without_the_code(hint: Any, value: Any) -> None:
    validator = make_validator(make_check_schema(hint))

    assert validator is not None
    assert find_misfit(validator, value) is not None


PARTS = [
    "a", "é", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\.", r"\n", "[a-c]", "[^a]", r"[\w.-]", r"[^\W\d_]",
    r"[\]a]", "(a|é)", "(?:ab)",
    "(?P<n>a)", "(?=a)", r"(?!\d)", "(?<=a)", "(?i:a)", "(?P=n)", "^", "$", r"\A", r"\Z", "|", "-", " ", "{", "}",
    "]", "#", "(a$|b)", "\\\\",
]  # fmt: skip
COUNTS = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,}", "{,2}", "{0,2}", "++"]
patterns = st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(COUNTS)).map("".join), max_size=5).map("".join)
texts = st.text(st.sampled_from("aAbcéß1٣_ \t\n\r\x1c\x85\u2028\u0301€-.{}]#\\"), max_size=6) | st.text(max_size=3)


@given(patterns, texts)
@example(r"^(a$|b)\s*", "a\n")
@example(r"a$\n", "a\n")
def test_H1_I4_whatever_re_finds_fits_the_pattern_that_is_checked(pattern: str, text: str) -> None:
    try:
        found = re.search(pattern, text)
    except (re.error, FutureWarning):
        return
    linear = find_linear(pattern)
    validator = None if linear is None else make_validator({"pattern": pattern})
    if found is not None and validator is not None:
        assert find_misfit(validator, text) is None, linear


@pytest.mark.parametrize(
    "pattern", [r"^\w+$", r"^\d{4}\Z", r"^[^\W\d_]{1,50}$", r"^[A-Z]{3}-\d+$", r"[\w.-]+@[\w.-]+", "^(a|b)*$", "^.{,3}$"]
)
@given(texts)
def test_H1_I4_usual_patterns_are_checked_exactly(pattern: str, text: str) -> None:
    validator = make_validator({"pattern": pattern})

    assert validator is not None
    assert (find_misfit(validator, text) is None) == (re.search(pattern, text) is not None)


TEXT = {"type": "string"}
UNUSABLE = {"type": "string", "pattern": "(?i)a"}


@pytest.mark.parametrize(
    ("schema", "adapted"),
    [
        (
            {"type": "string", "pattern": "^a"},
            {"type": "string", "if": {"maxLength": MOST_STEPS // 2}, "then": {"pattern": r"^\x61"}},
        ),
        (UNUSABLE, TEXT),
        ({"type": "string", "pattern": r"^\w{1,100000}$"}, TEXT),
        ({"properties": {"pattern": UNUSABLE, "enum": TEXT}}, {"properties": {"pattern": TEXT, "enum": TEXT}}),
        ({"$defs": {"0": UNUSABLE}, "$ref": "#/$defs/0"}, {"$defs": {"0": TEXT}, "$ref": "#/$defs/0"}),
        ({"anyOf": [UNUSABLE, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"items": UNUSABLE, "enum": [UNUSABLE]}, {"items": TEXT, "enum": [UNUSABLE]}),
        ({"propertyNames": UNUSABLE, "additionalProperties": False}, {"propertyNames": TEXT, "additionalProperties": False}),
    ],
)  # fmt: skip
def test_only_patterns_that_cannot_be_used_are_left_out(schema: dict[str, Any], adapted: dict[str, Any]) -> None:
    assert adapt_patterns(schema) == adapted


@pytest.mark.parametrize(
    ("pattern", "weight"), [("abc", 3), ("[ab]*a[ab]{1000}c", 1003), ("^((a{1,10}){1,10}b){2,}$", 204), ("", 1)]
)
def test_what_a_pattern_counts_weighs_as_often(pattern: str, weight: int) -> None:
    assert find_weight(pattern) == weight


def test_D2_long_texts_are_not_checked_by_large_patterns() -> None:
    validator = make_validator({"pattern": "[ab]*a[ab]{1000}c"})

    assert validator is not None
    assert find_misfit(validator, "a" * 1_500) is not None
    assert find_misfit(validator, "a" * 1_900_000) is None, "whoever reads it finds out"


def test_a_schema_that_cannot_be_used_checks_nothing() -> None:
    assert make_validator({}) is None
    assert make_validator({"type": "no type"}) is None
