"""What functions take and give: read from hints, checked before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from holdfast.core.payloads import DEFAULT_LIMIT, Payload
from holdfast.core.signatures import Signature
from holdfast.errors import EncodingError, InvalidArguments, InvalidDefinition, PayloadTooLarge


@dataclass
class Item:
    name: str
    count: int = 1


class Buyer(pydantic.BaseModel):
    email: str


async def order(ctx: object, item: Item, buyer: Buyer, note: str = "none") -> dict[str, Item]:
    return {note: item}


def read(function: Callable[..., Any], skip: int = 0) -> Signature:
    return Signature(function, f"workflow '{function.__name__}'", skip=skip)


ORDER = read(order, skip=1)
ANN = Buyer(email="ann@example.org")


def json_of(payload: Payload) -> Any:
    return msgspec.json.decode(payload.data)


def test_arguments_travel_in_the_order_of_the_parameters_with_defaults_filled_in() -> None:
    encoded = ORDER.encode_arguments([Item("tea")], {"buyer": ANN}, DEFAULT_LIMIT)

    assert json_of(encoded) == [{"name": "tea", "count": 1}, {"email": "ann@example.org"}, "none"]
    assert ORDER.decode_arguments(encoded) == (Item("tea"), ANN, "none")


def test_function_without_parameters_takes_no_arguments() -> None:
    def plain() -> None: ...

    signature = read(plain)

    assert signature.decode_arguments(signature.encode_arguments([], {}, DEFAULT_LIMIT)) == ()


def test_result_is_decoded_by_its_hint() -> None:
    assert ORDER.decode_result(Payload(msgspec.Raw(b'{"a":{"name":"tea"}}'))) == {"a": Item("tea")}


def test_missing_result_hint_gives_plain_json() -> None:
    def plain(a):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return a

    signature = read(plain)

    assert signature.decode_result(Payload(msgspec.Raw(b'{"a":1}'))) == {"a": 1}
    assert signature.decode_arguments(Payload(msgspec.Raw(b'[{"a":1}]'))) == ({"a": 1},)


def test_none_as_result_hint_takes_null_alone() -> None:
    def plain() -> None: ...

    assert read(plain).decode_result(Payload(msgspec.Raw(b"null"))) is None


LISTING = "(item: Item, buyer: Buyer, note: str = 'none')"


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        ((), {}, f"to be called with {LISTING}, but 'item' and 'buyer' are missing. Pass them."),
        ((1,), {}, f"to be called with {LISTING}, but 'buyer' is missing. Pass it."),
        ((), {"buyer": 1}, f"to be called with {LISTING}, but 'item' is missing. Pass it."),
        ((1, 2, 3, 4), {}, f"to be called with {LISTING}, but got 4 arguments by position, 1 too many. Leave it out."),
        ((1,) * 5, {}, f"to be called with {LISTING}, but got 5 arguments by position, 2 too many. Leave them out."),
        ((1, 2), {"colour": "red"}, f"to be called with {LISTING}, but 'colour' is no parameter of it."),
        ((1, 2), {"item": 1}, "one value for parameter 'item' of workflow 'order', but two were given."),
    ],
)
def test_wrong_number_of_arguments_is_refused(args: Any, kwargs: Any, found: str) -> None:
    with pytest.raises(InvalidArguments, match=f"^Expected .*{re.escape(found)}"):
        ORDER.encode_arguments(args, kwargs, DEFAULT_LIMIT)


@pytest.mark.parametrize(
    ("json", "found"),
    [
        (
            b'[1,{"email":"a"},"n"]',
            "Expected parameter 'item' of workflow 'order' to be Item, but expected `object`, got `int`",
        ),
        (b'[{"name":1},{"email":"a"},"n"]', "Expected parameter 'item' of workflow 'order' to be Item, but expected `str`"),
        (b'[{"name":"a"},{"mail":"a"},"n"]', "Expected parameter 'buyer' of workflow 'order' to be Buyer, but "),
        (
            b'[{"name":"a"},{"email":"a"},5]',
            "Expected parameter 'note' of workflow 'order' to be str, but expected `str`, got `int`",
        ),
        (b'[{"name":"a"}]', f"Expected workflow 'order' to be called with {LISTING}, but 'buyer' is missing. Pass it."),
        (b'{"item":1}', "Expected the arguments of workflow 'order' as a JSON array, but found {\"item\":1}."),
        (b"[" * 5_000, "Expected the arguments of workflow 'order' as a JSON array, but found [[["),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_parameter(json: bytes, found: str) -> None:
    payload = Payload(msgspec.Raw(json))

    with pytest.raises(InvalidArguments) as checked:
        ORDER.check_arguments(payload)
    with pytest.raises(InvalidArguments) as decoded:
        ORDER.decode_arguments(payload)

    assert checked.value.message.startswith(found)
    assert decoded.value.message == checked.value.message


def test_value_that_cannot_be_encoded_is_named_by_parameter_and_type() -> None:
    with pytest.raises(
        EncodingError, match=r"^Expected parameter 'buyer' of workflow 'order' \(a object\) to be a value that JSON "
    ):
        ORDER.encode_arguments([Item("tea"), object()], {}, DEFAULT_LIMIT)


def test_arguments_over_the_limit_are_refused() -> None:
    with pytest.raises(PayloadTooLarge, match=r"^Expected workflow 'order' to be at most 64 bytes as JSON, but it has "):
        ORDER.encode_arguments([Item("x" * 100), ANN], {}, 64)


class Opaque:
    pass


def variadic(*items: int) -> None: ...
def keywords(**items: int) -> None: ...
def opaque_parameter(item: Opaque) -> None: ...
def opaque_inside(items: list[Opaque]) -> None: ...
def opaque_result() -> complex:
    return 1j


def unresolved(item: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the point
def two_structs(item: Item | list[int] | tuple[int, ...]) -> None: ...


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (variadic, "to take named parameters that can be given by position, but '*items: 'int'' is variadic positional."),
        (keywords, "to take named parameters that can be given by position, but '**items: 'int'' is variadic keyword."),
        (
            opaque_parameter,
            "parameter 'item' of workflow 'opaque_parameter' to have a type that JSON can become, but Opaque is not",
        ),
        (
            opaque_inside,
            "parameter 'items' of workflow 'opaque_inside' to have a type that JSON can become, but Opaque is not",
        ),
        (opaque_result, "the result of workflow 'opaque_result' to have a type that JSON can become, but complex is not"),
        (unresolved, "to resolve the type hints of workflow 'unresolved', but name 'Missing' is not defined."),
        (two_structs, "parameter 'item' of workflow 'two_structs' to have a type that JSON can become, but "),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_function_whose_hints_cannot_work_is_no_workflow(function: Callable[..., Any], found: str) -> None:
    with pytest.raises(InvalidDefinition, match=f"^Expected .*{re.escape(found)}"):
        read(function)
