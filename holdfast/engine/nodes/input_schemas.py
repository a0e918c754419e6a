"""Checks the arguments of a start without having the workflow's code, by the input schemas that living nodes announce.

While versions of the code run side by side, nodes may announce different schemas: arguments that one of them takes are
accepted. Where nobody announces one, everything is accepted, and the first turn fails the execution with the same message.
On a database that one process owns, what the last owner announced counts: nobody is alive while others ask.
Whatever a type takes, its schema takes. What only the type refuses, such as a text that is no date, the first turn tells.

A digest stands for one schema for good, so what is made of a schema is kept by its digest, for the whole process: a start
reads and compiles only what none before it did.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import payloads
from holdfast.core.input_schemas import InputSchema, ParameterSchema, decode_input_schema
from holdfast.core.payloads import Payload
from holdfast.core.signatures import describe_extra, describe_missing
from holdfast.engine.nodes.roster import NodeDetails, NodeState, read_details, to_node_info
from holdfast.engine.schema_checks import find_misfit, make_validator
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

    from holdfast.core.instants import Instant
    from holdfast.store.contract import Store
    from holdfast.store.rows import NodeRow

_LONGEST_SHOWN: Final = 80
_MOST_KEPT: Final = 256
"""How many schemas are kept ready to check with: those that were used last."""


class InputChecker:
    """An input schema that is ready to check with: the validator of each parameter is made once, when it is first needed."""

    __slots__ = ("_validators", "schema")

    def __init__(self, schema: InputSchema) -> None:
        self.schema = schema
        self._validators: list[Draft202012Validator | None] | None = None

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The arguments as history records them. Raises InvalidArguments, EncodingError or PayloadTooLarge."""
        schema = self.schema
        encoded = payloads.encode(_bind(schema, args, kwargs), schema.what, limit)
        if self._validators is None:
            self._validators = [make_validator(one.check) for one in schema.parameters]
        items = msgspec.json.decode(encoded.data)
        for parameter, validator, item in zip(schema.parameters, self._validators, items, strict=True):
            if validator is not None:
                _check(validator, parameter, item, schema.what)
        return encoded


class KeptCheckers:
    """Checkers by the digests of their schemas, those that were used last; for all threads."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._by_digest: dict[str, InputChecker] = {}
        self._lock = threading.Lock()

    def find(self, digest: str) -> InputChecker | None:
        """The checker that is kept for a schema, if one is."""
        with self._lock:
            found = self._by_digest.pop(digest, None)
            if found is not None:
                self._by_digest[digest] = found  # the last one that was used
            return found

    def keep(self, digest: str, checker: InputChecker) -> None:
        """Keep a checker, in place of the one that was not used for longest if there are too many."""
        with self._lock:
            self._by_digest[digest] = checker
            while len(self._by_digest) > self._most:
                del self._by_digest[next(iter(self._by_digest))]


_KEPT: Final = KeptCheckers()


def encode_arguments(
    workflow: str,
    checkers: Sequence[InputChecker],
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    limit: int,
) -> Payload:
    """The (positional, named) arguments of a start as history records them, if one of the schemas takes them.

    Raises InvalidArguments, EncodingError or PayloadTooLarge.
    """
    args, kwargs = arguments
    if not checkers:
        if kwargs:
            raise InvalidArguments(
                f"Expected to know the parameters of workflow '{workflow}', but no living node announces them. Pass the "
                "arguments by position, or start a node that has it."
            )
        return payloads.encode(list(args), f"workflow '{workflow}'", limit)
    refusal: InvalidArguments | None = None
    for checker in checkers:
        try:
            return checker.encode(args, kwargs, limit)
        except InvalidArguments as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - each schema accepted or refused them
    raise refusal


async def find_checkers(store: Store, workflow: str, version: str | None, now: Instant) -> list[InputChecker]:
    """What the living nodes announce of a workflow, or the last owner did, each schema once and ready to check with."""
    return await make_checkers(store, await list_announcing(store, now), workflow, version)


async def list_announcing(store: Store, now: Instant) -> list[NodeDetails]:
    """What the living nodes announce; on a database that one process owns, what the last owner did."""
    return _list_announcing(await store.list_nodes(), now, is_exclusive=store.exclusive)


async def make_checkers(
    store: Store, announcing: Sequence[NodeDetails], workflow: str, version: str | None
) -> list[InputChecker]:
    """What nodes announce of a workflow, each schema once and ready to check with."""
    digests: dict[str, None] = {}
    for details in announcing:
        announced = details.inputs.get(workflow, {})
        known = details.versions.get(workflow) or [""]
        wanted = known[-1] if version is None else version
        if wanted in announced:
            digests[announced[wanted]] = None
    ready = {digest: checker for digest in digests if (checker := _KEPT.find(digest)) is not None}
    if missing := [digest for digest in digests if digest not in ready]:
        for digest, body in (await store.read_input_schemas(missing)).items():
            schema = decode_input_schema(body)
            if schema is not None:
                ready[digest] = InputChecker(schema)
                _KEPT.keep(digest, ready[digest])
    return [ready[digest] for digest in digests if digest in ready]


def _list_announcing(rows: Sequence[NodeRow], now: Instant, *, is_exclusive: bool) -> list[NodeDetails]:
    if is_exclusive:
        return [read_details(max(rows, key=lambda row: (row.started_at, row.seen_at)))] if rows else []
    alive = (row for row in rows if to_node_info(row, now, has_ended=False).state is NodeState.ALIVE)
    return [read_details(row) for row in alive]


def _bind(schema: InputSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    names = [one.name for one in schema.parameters]
    expected = f"Expected {schema.what} to be called with {schema.describe()}, but "
    if len(args) > len(names):
        raise InvalidArguments(f"{expected}{describe_extra(len(args), len(names))}.")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise InvalidArguments.name_unknown(name, schema.what, schema.describe())
        if name in given:
            raise InvalidArguments(
                f"Expected one value for parameter '{name}' of {schema.what}, but two were given. Pass it once."
            )
        given[name] = value
    missing = [one.name for one in schema.parameters if one.name not in given and not one.has_default]
    if missing:
        raise InvalidArguments(f"{expected}{describe_missing(missing)}.")
    return [given.get(one.name, one.default) for one in schema.parameters]


def _check(validator: Draft202012Validator, parameter: ParameterSchema, item: Any, what: str) -> None:
    misfit = find_misfit(validator, item)
    if misfit is None:
        return
    text = msgspec.json.encode(item).decode()
    shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
    raise InvalidArguments(
        f"Expected parameter '{parameter.name}' of {what} to be {parameter.hint}, but {misfit[0]} in {shown}. "
        "Send a value of that type, or change the type hint."
    )
