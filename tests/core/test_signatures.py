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
from holdfast.core.signatures import NamedArguments, Signature, make_job_input
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


# --- keywords that no parameter is named for, and the variables of jobs ---


def charge(amount: int, card: str = "none", *, note: str | None = None, **variables: Any) -> None: ...


CHARGE = Signature(charge, "activity 'charge'", skip=0, takes_extra=True)


def call_with(signature: Signature, payload: Payload) -> Any:
    def note(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    return signature.call(note, signature.decode_arguments(payload))


def name_variables(**variables: Any) -> Payload:
    return make_job_input({name: msgspec.Raw(msgspec.json.encode(value)) for name, value in variables.items()})


def test_extra_keywords_are_the_last_argument_and_arrive_by_name() -> None:
    encoded = CHARGE.encode_arguments([5], {"note": "x", "vip": True, "variables": 1}, DEFAULT_LIMIT)

    assert json_of(encoded) == [5, "none", "x", {"vip": True, "variables": 1}]
    assert call_with(CHARGE, encoded) == ((5, "none"), {"note": "x", "vip": True, "variables": 1})


def test_extra_keywords_of_a_call_by_name_arrive() -> None:
    named = NamedArguments([msgspec.Raw(b"5")], {"vip": msgspec.Raw(b"[1]")})

    assert call_with(CHARGE, Payload(msgspec.Raw(msgspec.json.encode(named)), named=True)) == (
        (5, "none"),
        {"note": None, "vip": [1]},
    )
    assert call_with(CHARGE, Payload(msgspec.Raw(b"[5]"))) == ((5, "none"), {"note": None})


def test_extra_keywords_have_the_type_of_their_parameter() -> None:
    def count(**each: int) -> None: ...

    signature = Signature(count, "activity 'count'", skip=0, takes_extra=True)

    assert call_with(signature, signature.encode_arguments([], {"a": 1}, DEFAULT_LIMIT)) == ((), {"a": 1})
    with pytest.raises(InvalidArguments, match=r"^Expected parameter 'each' of activity 'count'"):
        signature.decode_arguments(name_and_bind(signature, a="one"))


def name_and_bind(signature: Signature, **variables: Any) -> Payload:
    return signature.bind_variables(name_variables(**variables))


def test_extra_keywords_cannot_be_given_by_position_nor_name_what_is_not_recorded() -> None:
    def save(connection: object, **variables: Any) -> None: ...

    signature = Signature(save, "activity 'save'", skip=1, takes_extra=True)

    with pytest.raises(InvalidArguments, match="got 1 argument by position, 1 too many"):
        signature.encode_arguments([{}], {}, DEFAULT_LIMIT)
    with pytest.raises(InvalidArguments, match="'connection'"):
        signature.encode_arguments([], {"connection": 1}, DEFAULT_LIMIT)
    assert json_of(name_and_bind(signature, connection=1, a=2)) == [{"a": 2}]


def test_workflows_take_no_extra_keywords() -> None:
    with pytest.raises(InvalidDefinition, match=re.escape("'**variables: 'Any'' is variadic keyword")):
        read(charge)


def test_job_takes_the_variables_that_it_has_parameters_for() -> None:
    def pay(amount: int, item: Item, note: str = "none") -> None: ...

    signature = Signature(pay, "activity 'pay'", skip=0, takes_extra=True)
    bound = name_and_bind(signature, amount=5, item={"name": "tea"}, other=[1])

    assert signature.decode_arguments(bound) == (5, Item("tea"), "none")


def test_job_with_extra_keywords_takes_all_variables() -> None:
    bound = name_and_bind(CHARGE, amount=5, note="x", vip=True, **{"order-id": 7})

    assert call_with(CHARGE, bound) == ((5, "none"), {"note": "x", "vip": True, "order-id": 7})


def test_job_without_a_needed_variable_names_it_and_those_there_are() -> None:
    def pay(amount: int, card: str, note: str = "none") -> None: ...

    signature = Signature(pay, "activity 'pay'", skip=0)

    with pytest.raises(InvalidArguments) as raised:
        name_and_bind(signature, card="1", total=5)
    assert raised.value.message == (
        "Expected the job of activity 'pay' to find variables for (amount: int, card: str, note: str = 'none'), but "
        "'amount' is missing (variables: card, total). Set it, add an input mapping to the task, or give the parameter a "
        "default."
    )
    with pytest.raises(InvalidArguments, match=r"'amount' and 'card' are missing \(variables: none\)\. Set them"):
        name_and_bind(signature)
    with pytest.raises(InvalidArguments, match=r"\(variables: (v\d+, ){30}…\)"):
        name_and_bind(signature, **{f"v{number}": 1 for number in range(100)})


def test_job_whose_variable_has_another_type_names_the_parameter() -> None:
    def pay(amount: int) -> None: ...

    signature = Signature(pay, "activity 'pay'", skip=0)

    with pytest.raises(InvalidArguments, match=r"^Expected parameter 'amount' of activity 'pay' to be int"):
        signature.decode_arguments(name_and_bind(signature, amount="five"))


@pytest.mark.parametrize("data", [b"[1]", b"5", b'{"a":1}', b"{"])
def test_job_whose_input_is_no_variables_is_refused(data: bytes) -> None:
    with pytest.raises(
        InvalidArguments, match=r"^Expected the input of the job of activity 'charge' to be variables by name"
    ):
        CHARGE.bind_variables(Payload(msgspec.Raw(data)))
