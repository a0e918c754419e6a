"""Checks the arguments of a start without having the workflow's code, by the input schemas that living nodes announce.

While versions of the code run side by side, nodes may announce different schemas: arguments that one of them takes are
accepted. Where nobody announces one, everything is accepted, and the first turn fails the execution with the same message.
On a database that one process owns, what the last owner announced counts: nobody is alive while others ask.
Formats such as 'date-time' are not checked: types take more than they allow. That, too, the first turn tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError

from holdfast.core import payloads
from holdfast.core.input_schemas import InputSchema, ParameterSchema, decode_input_schema
from holdfast.core.payloads import Payload
from holdfast.engine.nodes.roster import NodeDetails, NodeState, read_details, to_node_info
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.store.contract import Store
    from holdfast.store.rows import NodeRow

_LONGEST_SHOWN = 80


async def check_input(
    store: Store,
    workflow: str,
    version: str | None,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    *,
    now: Instant,
    limit: int,
) -> Payload:
    """The (positional, named) arguments of a start as history records them, of at most `limit` bytes.

    Raises InvalidArguments, EncodingError or PayloadTooLarge. Without `version`, the newest one of each node counts.
    """
    schemas = await find_schemas(store, workflow, version, now)
    return encode_arguments(workflow, schemas, arguments, limit)


def encode_arguments(
    workflow: str,
    schemas: Sequence[InputSchema],
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    limit: int,
) -> Payload:
    """The (positional, named) arguments of a start as history records them, if one of the schemas takes them.

    Raises InvalidArguments, EncodingError or PayloadTooLarge.
    """
    args, kwargs = arguments
    if not schemas:
        if kwargs:
            raise InvalidArguments(
                f"Expected to know the parameters of workflow '{workflow}', but no living node announces them. Pass the "
                "arguments by position, or start a node that has it."
            )
        return payloads.encode(list(args), f"workflow '{workflow}'", limit)
    refusal: InvalidArguments | None = None
    for schema in schemas:
        try:
            return _encode(schema, args, kwargs, limit)
        except InvalidArguments as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - each schema accepted or refused them
    raise refusal


async def find_schemas(store: Store, workflow: str, version: str | None, now: Instant) -> list[InputSchema]:
    """What the living nodes announce of a workflow, or the last owner did, each schema once."""
    digests: dict[str, None] = {}
    for details in _list_announcing(await store.list_nodes(), now, is_exclusive=store.exclusive):
        announced = details.inputs.get(workflow, {})
        known = details.versions.get(workflow) or [""]
        wanted = known[-1] if version is None else version
        if wanted in announced:
            digests[announced[wanted]] = None
    if not digests:
        return []
    bodies = await store.read_input_schemas(list(digests))
    found = (decode_input_schema(bodies[digest]) for digest in digests if digest in bodies)
    return [schema for schema in found if schema is not None]


def _list_announcing(rows: Sequence[NodeRow], now: Instant, *, is_exclusive: bool) -> list[NodeDetails]:
    if is_exclusive:
        return [read_details(max(rows, key=lambda row: (row.started_at, row.seen_at)))] if rows else []
    alive = (row for row in rows if to_node_info(row, now, has_ended=False).state is NodeState.ALIVE)
    return [read_details(row) for row in alive]


def _encode(schema: InputSchema, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
    values = _bind(schema, args, kwargs)
    encoded = payloads.encode(values, schema.what, limit)
    for parameter, item in zip(schema.parameters, msgspec.json.decode(encoded.data), strict=True):
        _check(parameter, item, schema.what)
    return encoded


def _bind(schema: InputSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    names = [one.name for one in schema.parameters]
    miscounted = InvalidArguments(
        f"Expected {schema.what} to be called with {schema.describe()}, but got {len(args) + len(kwargs)} arguments."
    )
    if len(args) > len(names):
        raise miscounted
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise InvalidArguments(
                f"Expected {schema.what} to be called with {schema.describe()}, but '{name}' is no parameter of it."
            )
        if name in given:
            raise InvalidArguments(
                f"Expected one value for parameter '{name}' of {schema.what}, but two were given. Pass it once."
            )
        given[name] = value
    for parameter in schema.parameters:
        if parameter.name not in given:
            if not parameter.has_default:
                raise miscounted
            given[parameter.name] = parameter.default
    return [given[name] for name in names]


def _check(parameter: ParameterSchema, item: Any, what: str) -> None:
    try:
        Draft202012Validator(parameter.schema).validate(item)
    except ValidationError as error:
        text = msgspec.json.encode(item).decode()
        shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
        raise InvalidArguments(
            f"Expected parameter '{parameter.name}' of {what} to be {parameter.hint}, but {error.message} in {shown}. "
            "Send a value of that type, or change the type hint."
        ) from None
    except ValueError:
        return  # the schema itself cannot be used: the first turn tells
