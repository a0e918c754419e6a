"""Pydantic models come back as they were, or are refused by name when they are written."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel

from holdfast.core import payloads, type_checks
from holdfast.core.payloads import Payload
from holdfast.errors import DecodingError, EncodingError

T = TypeVar("T")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def send(value: Any, hint: Any) -> Any:
    """Write a value and read it, as calls do."""
    return payloads.decode(payloads.encode(value, "the value", check=type_checks.find_check(hint)), hint, "the value")


def read(json: bytes, hint: Any) -> Any:
    return payloads.decode(Payload(msgspec.Raw(json)), hint, "the value")


class User(BaseModel):
    user_id: int | None = Field(None, alias="userId")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime
    id: UUID
    price: Decimal


class Shouting(BaseModel):
    model_config = ConfigDict(alias_generator=str.upper, extra="forbid")
    name: str
    user: User

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return len(self.name)


SHOUTING = Shouting.model_validate({"NAME": "a", "USER": {"userId": 1}})


class Numbers(RootModel[list[int]]):
    pass


class Box(BaseModel, Generic[T]):
    item: T


class Choosy(BaseModel):
    a: int = Field(validation_alias=AliasChoices("first", "a1"), serialization_alias="a1")
    b: int = Field(validation_alias=AliasPath("list", 0))
    c: int = Field(validation_alias="see")


class Colour(Enum):
    RED = "red"


class Plain(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    colour: Colour
    path: Path = Path("a/b")
    wait: timedelta = timedelta(seconds=1.5)
    tags: set[str] = {"a"}
    by_number: dict[int, str] = {1: "a"}
    pair: tuple[int, str] = (1, "a")
    data: bytes = b"abc"
    either: int | str = "5"
    link: pydantic.HttpUrl = pydantic.HttpUrl("https://example.org/a")
    json_text: pydantic.Json[list[int]] = [1]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Owner(BaseModel):
    pets: list[Pet]
    parent: Owner | None = None


class Rounded(BaseModel):
    price: float

    @pydantic.field_serializer("price")
    def write(self, price: float) -> float:
        return round(price, 2)


class Spelled(BaseModel):
    secret: pydantic.SecretStr

    @pydantic.field_serializer("secret")
    def write(self, secret: pydantic.SecretStr) -> str:
        return secret.get_secret_value()


@dataclasses.dataclass
class Holder:
    user: User
    pets: dict[str, Pet]
    numbers: list[Numbers]


@pydantic.dataclasses.dataclass
class Account:
    amount: int = Field(3, gt=1, alias="amountCents")
    at: datetime = NOON
    users: list[User] = Field(default_factory=list)


def get_kind(value: Any) -> str:
    return "many" if isinstance(value, list) or isinstance(getattr(value, "root", None), list) else "user"


ByFunction = Annotated[
    Annotated[Numbers, pydantic.Tag("many")] | Annotated[User, pydantic.Tag("user")], pydantic.Discriminator(get_kind)
]

TRAVELLERS: list[tuple[Any, Any]] = [
    (User(userId=42), User),
    ([User(userId=42)], list[User]),
    ({"a": User(userId=42)}, dict[str, User]),
    (User(userId=42), User | None),
    (User(userId=42), User | int),
    (Strict(at=NOON, id=UUID(int=5), price=Decimal("1.10")), Strict),
    (SHOUTING, Shouting),
    (Numbers([1, 2]), Numbers),
    ([Numbers([1, 2])], list[Numbers]),
    (Box[int](item=1), Box[int]),
    (Box(item=1), Box[int]),
    (Box[int](item=1), Box),
    (Box[User](item=User(userId=3)), Box[User]),
    (Plain(colour=Colour.RED), Plain),
    (Cat(lives=9), Pet),
    ([Dog(name="rex"), Cat(lives=9)], list[Pet]),
    ([Dog(name="rex"), Cat(lives=9)], list[Cat | Dog]),
    (Owner(pets=[Dog(name="rex")], parent=Owner(pets=[])), Owner),
    (Holder(User(userId=42), {"a": Cat(lives=1)}, [Numbers([1])]), Holder),
    (Account(amountCents=5, users=[User(userId=1)]), Account),
    (Rounded(price=1.25), Rounded),
    (Spelled(secret="s"), Spelled),  # type: ignore[arg-type]
    (User(userId=42), ByFunction),
    (Numbers([1]), ByFunction),
]


@pytest.mark.parametrize(("value", "hint"), TRAVELLERS, ids=lambda one: payloads.describe_hint(one)[:40])
def test_V1_model_comes_back_as_it_was(value: Any, hint: Any) -> None:
    assert send(value, hint) == value


def test_V1_model_is_written_by_its_aliases_and_without_computed_fields() -> None:
    encoded = payloads.encode(SHOUTING, "the value")

    assert bytes(encoded.data) == b'{"NAME":"a","USER":{"userId":1}}'


@pytest.mark.parametrize(
    ("json", "hint", "value"),
    [
        (b'{"user_id":42}', User, User(userId=42)),
        (b'{"userId":42}', User, User(userId=42)),
        (b'[{"user_id":42}]', list[User], [User(userId=42)]),
        (b'{"name":"a","user":{"user_id":1}}', Shouting, SHOUTING),
        (b'{"a":1,"b":2,"c":3}', Choosy, Choosy.model_construct(a=1, b=2, c=3)),
    ],
)
def test_V1_names_of_fields_in_older_histories_are_read(json: bytes, hint: Any, value: Any) -> None:
    assert read(json, hint) == value


class Measured(BaseModel):
    celsius: float


class Excluding(BaseModel):
    id: int
    cache: int = Field(0, exclude=True)


class Login(BaseModel):
    name: str
    password: pydantic.SecretStr
    old: list[pydantic.SecretBytes] = []


class Lopsided(BaseModel):
    total: int = Field(0, serialization_alias="sum", validation_alias="amount")


class Colliding(BaseModel):
    a: int = Field(1, alias="b")
    b: int = 2


class Outer(BaseModel):
    login: Login | None = None


class Base(BaseModel):
    id: int


class Wider(Base):
    more: str


class Keeper(BaseModel):
    one: Base
    many: list[Base] = []


class Private(BaseModel):
    _count: int = pydantic.PrivateAttr(0)


class Hashing(BaseModel):
    password: str

    @pydantic.field_validator("password")
    @classmethod
    def hash(cls, value: str) -> str:
        return hashlib.sha256(value.encode()).hexdigest()


class Based(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")
    data: bytes


class Either(BaseModel):
    at: str | datetime


class OneWay(BaseModel):
    price: float

    @pydantic.model_serializer
    def write(self) -> str:
        return f"{self.price} EUR"


def make_private() -> Private:
    value = Private()
    value._count = 5
    return value


REFUSED: list[tuple[Any, Any, str]] = [
    (Excluding(id=1, cache=5), Excluding, "field 'cache' of Excluding is excluded from what is written"),
    (Excluding(id=1, cache=5), Any, "field 'cache' of Excluding is excluded from what is written"),
    (Login(name="a", password="s"), Login, "field 'password' of Login is a secret"),  # type: ignore[arg-type]
    (Outer(), Outer, "field 'password' of Login is a secret"),
    ({"a": [Outer()]}, Any, "field 'password' of Login is a secret"),
    (
        Lopsided.model_validate({"amount": 5}),
        Lopsided,
        "field 'total' of Lopsided is written as 'sum', but read as 'amount' or 'total'",
    ),
    (Colliding(b=1), Colliding, "field 'a' of Colliding is written as 'b'"),
    (Wider(id=1, more="x"), Base, "a Wider would come back as a Base, and lose 'more'"),
    ([Wider(id=1, more="x")], list[Base], "a Wider would come back as a Base, and lose 'more'"),
    (Wider(id=1, more="x"), Base | None, "a Wider would come back as a Base, and lose 'more'"),
    (Keeper(one=Wider(id=1, more="x")), Keeper, "a Wider would come back as a Base, and lose 'more'"),
    (Keeper(one=Base(id=1), many=[Wider(id=1, more="x")]), Keeper, "a Wider would come back as a Base"),
    (Keeper(one=Wider(id=1, more="x")), Any, "a Wider would come back as a Base, and lose 'more'"),
    (make_private(), Private, "Private would come back with other values, because of its private attributes"),
    (Hashing(password="a"), Hashing, "fields 'password' of Hashing would come back with other values"),
    (Based(data=b"abc"), Based, "fields 'data' of Based would come back with other values"),
    (Either(at=NOON), Either, "fields 'at' of Either would come back with other values"),
    (Rounded(price=1.2345), Rounded, "fields 'price' of Rounded would come back with other values"),
    (OneWay(price=1), OneWay, "OneWay does not take back what it writes"),
    (User(userId=1), Base, "it is a User, not a Base"),
    ({"id": 1, "more": 2}, Base, "Base has no field 'more'"),
]


@pytest.mark.parametrize(("value", "hint", "reason"), REFUSED)
def test_V1_model_that_would_not_come_back_is_refused_by_name(value: Any, hint: Any, reason: str) -> None:
    with pytest.raises(EncodingError) as refused:
        send(value, hint)

    assert refused.value.message.startswith("Expected the value to arrive as it was sent, but ")
    assert reason in refused.value.message


def test_V1_executions_from_before_write_as_they_did() -> None:
    kept = payloads.encode(Keeper(one=Wider(id=1, more="x")), "the value", strictness=payloads.Strictness.UNCHECKED)

    assert bytes(kept.data) == b'{"one":{"id":1},"many":[]}'


def test_plain_json_is_taken_for_a_model() -> None:
    assert send({"userId": 5}, User) == User(userId=5)
    assert send({"user_id": 5}, User) == User(userId=5)


def test_model_with_nan_is_refused() -> None:
    with pytest.raises(EncodingError, match="NaN or infinity"):
        send(Measured(celsius=math.nan), Measured)


def test_what_pydantic_refuses_is_told_in_one_line() -> None:
    with pytest.raises(DecodingError) as refused:
        read(b'{"at":1,"id":"x","price":"y"}', Strict)

    assert "\n" not in refused.value.message
    assert "id: " in refused.value.message
    assert "https://errors" not in refused.value.message


class Crate(BaseModel, Generic[T]):
    content: T


class Fruit(BaseModel):
    weight: int = 0


class Apple(Fruit):
    colour: str = "red"


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    anything: Any = None


class Alike(BaseModel):
    """Its `==` does not look at the field that its validator changes."""

    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __hash__(self) -> int:
        return 0

    @pydantic.field_validator("number")
    @classmethod
    def increase(cls, number: int) -> int:
        return number + 1


@pydantic.dataclasses.dataclass
class Growing:
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def increase(cls, number: int) -> int:
        return number + 1


@pytest.mark.parametrize(
    ("value", "hint", "reason"),
    [
        (
            Crate[Apple](content=Apple()),
            Crate[Fruit],
            r"a Crate\[Apple\] would come back as a Crate\[Fruit\] with other values",
        ),
        (Crate(content=Apple()), Crate[Fruit], "with other values"),
        (Crate[datetime](content=NOON), Crate[str], "with other values"),
        (Loose(anything=math.nan), Loose, "NaN or infinity"),
        (Loose.model_validate({"more": [math.inf]}), Loose, "NaN or infinity"),
        (Alike(number=1), Alike, "fields 'number' of Alike would come back with other values"),
        (Growing(number=1), Growing, "the validators of Growing would change the value"),
        (Fruit.model_construct(weight="7"), Fruit, "fields 'weight' of Fruit would come back with other values"),
        ([Fruit.model_construct(weight=b"7")], list[Fruit], "fields 'weight' of Fruit would come back with other values"),
    ],
)
def test_V1_model_that_would_change_on_the_way_is_refused(value: Any, hint: Any, reason: str) -> None:
    with pytest.raises(EncodingError, match=reason):
        send(value, hint)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (Crate(content=Fruit()), Crate[Fruit], Crate[Fruit](content=Fruit())),
        (Crate[int](content=1), Crate[float], Crate[float](content=1.0)),
        (Crate[int](content=1), Crate, Crate(content=1)),
    ],
)
def test_V1_generic_model_of_other_types_arrives_if_its_values_do(value: Any, hint: Any, expected: Any) -> None:
    assert send(value, hint) == expected
