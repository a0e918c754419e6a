"""The handlers of one program: updates, which change it and are answered, and queries, which only look.

A handler is registered while the code runs, and is workflow code itself. Each update that is accepted becomes a task of the
program, in the order of the events. An update that comes before the code has begun waits for its handler to be registered
in the code's first step, and is refused if that does not happen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.code.command_issuer import ContinueRequested
from holdfast.code.read_only import ReadOnly
from holdfast.core import payloads
from holdfast.core.commands import CompleteUpdate, FailUpdate, UntakenUpdate
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.ids import check_identifier
from holdfast.core.payloads import Payload
from holdfast.core.signatures import Signature, describe_function
from holdfast.core.unused import NO_ENTRIES, NO_ITEMS, add, put
from holdfast.errors import (
    DeterminismError,
    ForbiddenInWorkflow,
    HoldfastError,
    InvalidArguments,
    InvalidDefinition,
    TurnTooLong,
    UnknownQuery,
    UnknownUpdate,
    UpdateRejected,
)

if TYPE_CHECKING:
    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.core.events import UpdateAccepted

MOST_SIGNATURES: Final = 1_000
_SIGNATURES: dict[Any, Signature] = {}
"""Of handlers, by their code: each run of a workflow makes functions of its own."""


class UpdateHandler(msgspec.Struct, frozen=True):
    """What handles the updates of a name."""

    function: Callable[..., Any]
    signature: Signature
    validator: Callable[..., Any] | None

    def decode(self, value: Payload) -> tuple[Any, ...]:
        """The arguments of the handler: none, or the value. Raises InvalidArguments if it does not fit."""
        is_left_out = value == payloads.NULL and not self.signature.required
        data = b"[]" if is_left_out else b"[" + bytes(value.data) + b"]"
        return self.signature.decode_arguments(Payload(msgspec.Raw(data)))


class QueryHandler(msgspec.Struct, frozen=True):
    """What answers the queries of a name."""

    function: Callable[..., Any]
    signature: Signature


class Handlers:
    """The handlers that the code of one program has registered, and the updates that wait for one."""

    updates: dict[str, UpdateHandler] = NO_ENTRIES
    queries: dict[str, QueryHandler] = NO_ENTRIES
    waiting: list[UpdateAccepted] = NO_ITEMS
    """Updates that were accepted before the code had begun."""
    violation: DeterminismError | None = None
    """What a handler raised that must stop the program, not only the handler."""

    def __init__(self, issuer: CommandIssuer) -> None:
        self._issuer = issuer
        issuer.read_only = issuer.loop.read_only = ReadOnly()

    # --- registering ---

    def on_update(self, name: str, function: Callable[..., Any], validator: Callable[..., Any] | None) -> None:
        """Let a function handle the updates of a name from now on, in the place of another."""
        self._issuer.read_only.check("register a handler")
        check_identifier(name, "the name of an update")
        if validator is not None and (not callable(validator) or inspect.iscoroutinefunction(validator)):
            raise InvalidDefinition(
                f"Expected the validator of update '{name}' to be a plain function, but it is {validator!r}. "
                "Let it return at once, or raise to refuse the update."
            )
        signature = read_signature(function, f"the handler of update '{name}'")
        if len(signature.names) > 1:
            raise InvalidDefinition(
                f"Expected the handler of update '{name}' to take at most one value, but {describe_function(function)} "
                f"takes {len(signature.names)}. Take a dataclass instead."
            )
        handler = UpdateHandler(function, signature, validator)
        self.updates = put(self.updates, name, handler)
        for event in [one for one in self.waiting if one.name == name]:
            self.waiting.remove(event)
            refusal = self._find_refusal(event, handler)
            if refusal is None:
                self._begin(event, handler)
            else:
                self._issuer.issue(FailUpdate(update=event.update, failure=refusal, is_rejected=True))

    def on_query(self, name: str, function: Callable[..., Any]) -> None:
        """Let a function answer the queries of a name from now on, in the place of another."""
        self._issuer.read_only.check("register a handler")
        check_identifier(name, "the name of a query")
        if inspect.iscoroutinefunction(function):
            raise InvalidDefinition(
                f"Expected the handler of query '{name}' to be a plain function, but {describe_function(function)} is "
                "async. Let it return at once: a query cannot wait for anything."
            )
        handler = QueryHandler(function, read_signature(function, f"the handler of query '{name}'"))
        self.queries = put(self.queries, name, handler)

    # --- updates ---

    def check(self, name: str, value: Payload) -> HoldfastError | None:
        """Why an update is refused before anything of it is recorded; None if it is accepted."""
        handler = self.updates.get(name)
        if handler is None:
            return _unknown(UnknownUpdate, "update", name, self.updates)
        return self._validate(name, handler, value)

    def _validate(self, name: str, handler: UpdateHandler, value: Payload) -> HoldfastError | None:
        try:
            args = handler.decode(value)
        except InvalidArguments as error:
            return error
        if handler.validator is None:
            return None
        loop, refusal = self._issuer.loop, None
        ready = loop.count_ready()
        try:
            with self._issuer.read_only.during(f"the validator of update '{name}'"):
                handler.validator(*args)
        except TurnTooLong:
            raise
        except BaseException as error:  # whatever a validator raises is its refusal
            if self._issuer.ends_process(error):
                raise
            failure = describe_exception(error)
            refusal = UpdateRejected(
                f"Expected update '{name}' to be accepted, but its validator refused it: {failure.type}: {failure.message}"
            )
        if loop.count_ready() != ready:  # replays run no validator, so that code would not run in them
            raise ForbiddenInWorkflow(
                f"Expected the validator of update '{name}' only to look at the workflow, but it woke code that waits for "
                "an event, a queue or a future. Do that in the handler of the update, then retry the execution."
            )
        return refusal

    def _find_refusal(self, event: UpdateAccepted, handler: UpdateHandler) -> Failure | None:
        """Why an update that came before the code is refused; on replay what was recorded counts, no validator runs."""
        if self._issuer.is_replaying:
            return self._issuer.recorded.rejected.get(event.update)
        try:
            error = self._validate(event.name, handler, event.value)
        except DeterminismError as violation:
            self.violation = violation  # the code that registers the handler may catch it
            raise
        return None if error is None else describe_exception(error)

    def receive(self, event: UpdateAccepted, *, has_begun: bool) -> None:
        """An update was accepted: its handler becomes a task, or it waits for the code to begin."""
        handler = self.updates.get(event.name)
        if has_begun and handler is not None:
            self._begin(event, handler)
        else:
            self.waiting = add(self.waiting, (event,))

    def refuse_waiting(self) -> None:
        """The code has come to rest: updates for which it has registered no handler are refused."""
        waiting, self.waiting = self.waiting, NO_ITEMS
        for event in waiting:
            error = _unknown(UnknownUpdate, "update", event.name, self.updates)
            known = payloads.encode({"known": error.known}, "the names of handlers")
            failure = msgspec.structs.replace(describe_exception(error), details=known)
            self._issuer.issue(FailUpdate(update=event.update, failure=failure, is_rejected=True))

    def untaken(self) -> tuple[UntakenUpdate, ...]:
        """The updates that wait for the code to begin: a next run takes them along."""
        return tuple(UntakenUpdate(one.update, one.name, one.value, one.headers, one.request) for one in self.waiting)

    def _begin(self, event: UpdateAccepted, handler: UpdateHandler) -> None:
        _ = self._issuer.loop.create_task(self._run(event, handler), name=f"update '{event.name}'")

    async def _run(self, event: UpdateAccepted, handler: UpdateHandler) -> None:
        issuer, number = self._issuer, event.update
        issuer.values.note_headers("update", event.name, event.headers)
        try:
            result = handler.signature.call(handler.function, handler.decode(event.value))
            if inspect.isawaitable(result):
                result = await result
            encoded = issuer.values.encode_result(handler.signature, result)
        except DeterminismError as error:
            self.violation = error
        except ContinueRequested:
            failure = Failure(
                type="InvalidRequest", message="a handler called continue_as, which only the workflow itself may"
            )
            issuer.issue(FailUpdate(update=number, failure=failure))
        except BaseException as error:  # whatever a handler raises is its caller's
            if issuer.loop.dead or issuer.ends_process(error):
                raise  # it is being unloaded, or it was not the handler
            issuer.issue(FailUpdate(update=number, failure=describe_exception(error)))
        else:
            issuer.issue(CompleteUpdate(update=number, result=encoded))

    # --- queries ---

    def answer(self, name: str, args: Payload) -> Payload:
        """What the handler of a query returns. Raises UnknownQuery, InvalidArguments, and what the handler raises."""
        handler = self.queries.get(name)
        if handler is None:
            raise _unknown(UnknownQuery, "query", name, self.queries)
        signature = handler.signature
        decoded = signature.decode_arguments(args)
        with self._issuer.read_only.during(f"query '{name}'"):
            result = signature.call(handler.function, decoded)
            if inspect.isawaitable(result):
                if inspect.iscoroutine(result):
                    result.close()
                raise InvalidDefinition(f"Expected query '{name}' to return a value, but it returned an awaitable.")
        return self._issuer.values.encode_result(signature, result)

    def release(self) -> None:
        """Let go of the functions, whose program is closed."""
        if self.updates or self.queries or self.waiting:
            self.updates, self.queries, self.waiting = NO_ENTRIES, NO_ENTRIES, NO_ITEMS


def register_handler(name: Any, handler: Any, register: Callable[[str, Callable[..., Any]], None]) -> Any:
    """Register a handler, given beside its name, by a decorator with a name, or by one without."""
    if handler is not None:
        register(name, handler)
        return handler
    if name is not None and not isinstance(name, str):
        register(getattr(name, "__name__", ""), name)
        return name

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        register(getattr(function, "__name__", "") if name is None else name, function)
        return function

    return decorate


def read_signature(function: Callable[..., Any], what: str) -> Signature:
    """What a handler takes and gives; read once for all functions that the same lines make. Raises InvalidDefinition."""
    if not callable(function):
        raise InvalidDefinition(f"Expected {what} to be a function, but it is {function!r}. Pass a function.")
    key = _find_key(function)
    known = None if key is None else _SIGNATURES.get(key)
    if known is not None and known.what == what:
        return known
    signature = Signature(function, what, skip=0)
    if key is not None:
        if len(_SIGNATURES) >= MOST_SIGNATURES:
            _SIGNATURES.clear()
        _SIGNATURES[key] = signature
    return signature


def _find_key(function: Callable[..., Any]) -> Any:
    """What tells functions apart that take something else; None where that cannot be told by their code."""
    code, annotations = getattr(function, "__code__", None), getattr(function, "__annotations__", None)
    if code is None or annotations is None or function.__defaults__ or function.__kwdefaults__:
        return None
    is_method = hasattr(function, "__self__")
    key = (code, is_method, tuple(annotations.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _unknown(
    kind: type[UnknownUpdate | UnknownQuery], what: str, name: str, known: dict[str, Any]
) -> UnknownUpdate | UnknownQuery:
    names = sorted(known)
    listed = "it has " + ", ".join(f"'{one}'" for one in names) if names else "it has none"
    plural = "queries" if what == "query" else "updates"
    return kind(
        f"Expected the workflow to have a handler for {what} '{name}', but of handlers for {plural} {listed}. Check the "
        f"name, or let the workflow call ctx.on_{what} before it first waits.",
        known=names,
    )
