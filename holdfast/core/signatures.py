"""What a workflow or activity function takes and gives, read once from its signature and hints."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.interrupts import is_interrupt
from holdfast.core.payloads import Payload
from holdfast.errors import DecodingError, EncodingError, InvalidArguments, InvalidDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MISSING = inspect.Parameter.empty


class Signature:
    """The parameters (after the context, for workflows) and the result of one function.

    Arguments travel as one JSON array in the order of the parameters, defaults filled in, so that history holds what the
    function was really called with.
    """

    def __init__(self, function: Callable[..., Any], what: str, *, skip: int) -> None:
        self.what = what
        hints = _read_hints(function, what)
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
                raise InvalidDefinition(
                    f"Expected {what} to take named parameters that can be given by position, "
                    f"but '{parameter}' is {parameter.kind.description}. Take a dataclass or a list instead."
                )
        taken = parameters[skip:]
        self.names = tuple(parameter.name for parameter in taken)
        self.defaults = tuple(parameter.default for parameter in taken)
        self.hints = tuple(_checked_hint(hints.get(name, Any), f"parameter '{name}' of {what}") for name in self.names)
        self.required = sum(default is _MISSING for default in self.defaults)
        self.result_hint = _checked_hint(hints.get("return", Any), f"the result of {what}")
        if self.result_hint is None:
            self.result_hint = type(None)
        self._decoder = payloads.make_decoder(tuple[self.hints] if self.hints else tuple[()])  # type: ignore[name-defined]

    def encode_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The arguments as one payload. Raises InvalidArguments, EncodingError or PayloadTooLarge naming the parameter."""
        if kwargs or len(args) != len(self.names):
            args = self._bind(args, kwargs)
        try:
            return payloads.encode(args, self.what, limit)
        except EncodingError:
            for name, value in zip(self.names, args, strict=True):
                payloads.encode(value, f"parameter '{name}' of {self.what} (a {type(value).__name__})", limit)
            raise

    def check_arguments(self, payload: Payload) -> None:
        """Raises InvalidArguments if the payload does not fit the hints."""
        self.decode_arguments(payload)

    def decode_arguments(self, payload: Payload) -> tuple[Any, ...]:
        """The arguments as the hints say. Raises InvalidArguments naming the parameter."""
        try:
            return tuple(self._decoder.decode(payload.data))
        except payloads.LET_THROUGH:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._explain(payload)
            raise InvalidArguments(
                f"Expected the arguments of {self.what} to be {self._listing()}, but {payloads.describe_refusal(error)}."
            ) from error

    def decode_result(self, payload: Payload) -> Any:
        """The result as the function's return hint says."""
        return payloads.decode(payload, self.result_hint, f"the result of {self.what}")

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if len(args) > len(self.names):
            raise self._miscounted(len(args) + len(kwargs))
        values = list(args) + list(self.defaults[len(args) :])
        for name, value in kwargs.items():
            if name not in self.names:
                raise InvalidArguments(
                    f"Expected {self.what} to be called with {self._listing()}, but '{name}' is no parameter of it."
                )
            position = self.names.index(name)
            if position < len(args):
                raise InvalidArguments(
                    f"Expected one value for parameter '{name}' of {self.what}, but two were given. Pass it once."
                )
            values[position] = value
        if any(value is _MISSING for value in values):
            raise self._miscounted(len(args) + len(kwargs))
        return values

    def _explain(self, payload: Payload) -> None:
        try:
            items = msgspec.json.decode(payload.data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            raise InvalidArguments(
                f"Expected the arguments of {self.what} as a JSON array, but found "
                f"{bytes(payload.data)[:80].decode(errors='replace')}. Pass {self._listing()}."
            ) from None
        if len(items) != len(self.names):
            raise self._miscounted(len(items))
        for name, hint, item in zip(self.names, self.hints, items, strict=True):
            try:
                payloads.decode(Payload(item), hint, f"parameter '{name}' of {self.what}")
            except DecodingError as error:
                raise InvalidArguments(error.message) from None

    def _miscounted(self, found: int) -> InvalidArguments:
        return InvalidArguments(f"Expected {self.what} to be called with {self._listing()}, but got {found} arguments.")

    def _listing(self) -> str:
        if not self.names:
            return "no arguments"
        shown = [
            f"{name}: {payloads.describe_hint(hint)}" + ("" if default is _MISSING else f" = {default!r}")
            for name, hint, default in zip(self.names, self.hints, self.defaults, strict=True)
        ]
        return f"({', '.join(shown)})"


def describe_function(function: Callable[..., Any]) -> str:
    """A function's qualified name with the file and line of its definition, for messages."""
    code = getattr(function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "unknown place"
    return f"{getattr(function, '__qualname__', function)} ({where})"


def _read_hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidDefinition(
            f"Expected to resolve the type hints of {what}, but {error}. "
            "Define the type at module level, where hints are looked up."
        ) from error


def _checked_hint(hint: Any, what: str) -> Any:
    if payloads.is_model(hint):
        return hint
    try:
        info = msgspec.inspect.type_info(hint)
        payloads.make_decoder(hint)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InvalidDefinition(
            f"Expected {what} to have a type that JSON can become, but {error}. "
            "Use dataclasses, structs, pydantic models or plain types."
        ) from error
    for stranger in _find_strangers(info, set()):
        raise InvalidDefinition(
            f"Expected {what} to have a type that JSON can become, but {payloads.describe_hint(stranger)} is not one. "
            "Use a dataclass, msgspec struct, pydantic model or plain type."
        )
    return hint


def _find_strangers(info: Any, seen: set[int]) -> Iterator[Any]:
    """The classes inside a type that nobody can decode."""
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        if not payloads.is_model(info.cls):
            yield info.cls
    elif isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in info.__struct_fields__:
            value = getattr(info, name)
            for part in value if isinstance(value, tuple) else (value,):
                yield from _find_strangers(part, seen)
