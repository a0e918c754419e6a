"""What a workflow or activity function takes and gives, read once from its signature and hints."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from holdfast.core import decoders, payloads, type_checks
from holdfast.core.interrupts import is_interrupt
from holdfast.core.payloads import Payload, Strictness
from holdfast.core.safe_texts import count_noun
from holdfast.core.unions import IndistinctUnion
from holdfast.errors import DecodingError, EncodingError, InvalidArguments, InvalidDefinition, InvalidResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MISSING = inspect.Parameter.empty
MOST_SHOWN: Final = 30
"""How many names of variables a message lists."""


class NamedArguments(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The arguments of something that code calls by its name and whose parameters it does not know.

    They are bound to parameters where the function is. Calls that name no arguments are recorded as an array. The input of a
    job is recorded in this form too: `kwargs` are the variables.
    """

    args: list[msgspec.Raw]
    kwargs: dict[str, msgspec.Raw]
    is_lenient: bool = False
    """Whether names that there is no parameter for are left out, as with the variables that a call activity hands over."""


def make_call_input(variables: Mapping[str, msgspec.Raw]) -> Payload:
    """The input of the child of a call activity: variables by name. Code takes what it has parameters for."""
    return Payload(msgspec.Raw(msgspec.json.encode(NamedArguments([], dict(variables), is_lenient=True))), named=True)


def read_named_arguments(payload: Payload) -> NamedArguments | None:
    """Arguments with their names as they were recorded; None if the payload holds something else."""
    try:
        return _NAMED_ARGUMENTS.decode(payload.data)
    except (msgspec.MsgspecError, RecursionError):
        return None


def make_job_input(variables: Mapping[str, msgspec.Raw]) -> Payload:
    """The input of a job: variables by name, each as JSON. The activity takes those that it has parameters for."""
    return Payload(msgspec.Raw(msgspec.json.encode(NamedArguments([], dict(variables)))), named=True)


_NAMED_ARGUMENTS: Final = msgspec.json.Decoder(NamedArguments)
_EXACT: Final = frozenset({str, int, float, bool, type(None)})
"""Types whose values are read as they were, if they could be written."""


class Signature:
    """The parameters (after the context, for workflows) and the result of one function.

    Arguments travel as one JSON array in the order of the parameters, defaults filled in, so that history holds what the
    function was really called with. What a parameter like `**variables` takes is one object, the last of the array.
    """

    def __init__(self, function: Callable[..., Any], what: str, *, skip: int, takes_extra: bool = False) -> None:
        self.what = what
        hints = _read_hints(function, what)
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL or (parameter.kind is parameter.VAR_KEYWORD and not takes_extra):
                raise InvalidDefinition(
                    f"Expected {what} to take named parameters that can be given by position, "
                    f"but '{parameter}' is {parameter.kind.description}. Take a dataclass or a list instead."
                )
        self.skipped = tuple((one.name, hints.get(one.name, Any)) for one in parameters[:skip])
        """The parameters that history does not record, with their hints."""
        self._reserved = frozenset(one.name for one in parameters[:skip] if one.kind is not one.POSITIONAL_ONLY)
        """Names that none of the extra keywords can have."""
        taken = parameters[skip:]
        self.extra = next((one.name for one in taken if one.kind is one.VAR_KEYWORD), None)
        """The parameter that takes all other keywords, as `**variables`, if there is one: the last of `names`."""
        self.keyword_only = tuple(one.name for one in taken if one.kind is one.KEYWORD_ONLY)
        self.most_positional = len(taken) - len(self.keyword_only) - (self.extra is not None)
        """How many arguments can be given by position."""
        self.names = tuple(parameter.name for parameter in taken)
        self.defaults = tuple({} if parameter.name == self.extra else parameter.default for parameter in taken)
        self.hints = tuple(self._read_hint(hints.get(name, Any), name) for name in self.names)
        self.required = sum(default is _MISSING for default in self.defaults)
        self.result_hint = _checked_hint(hints.get("return", Any), f"the result of {what}")
        if self.result_hint is None:
            self.result_hint = type(None)
        arguments: Any = tuple[self.hints] if self.hints else tuple[()]  # type: ignore[name-defined]
        self._decoder = decoders.make_decoder(arguments)
        self._check = type_checks.find_check(arguments)
        self._result_check = type_checks.find_check(self.result_hint)

    def _read_hint(self, hint: Any, name: str) -> Any:
        what = f"parameter '{name}' of {self.what}"
        return _checked_hint(dict[str, hint] if name == self.extra else hint, what)

    def encode_arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int, *, strictness: Strictness = Strictness.STRICT
    ) -> Payload:
        """The arguments as one payload. Raises InvalidArguments, EncodingError or PayloadTooLarge naming the parameter."""
        if kwargs or len(args) != len(self.names) or self.extra is not None:
            args = self._bind(args, kwargs)
        try:
            return payloads.encode(args, self.what, limit, self._check, strictness=strictness)
        except EncodingError:
            for name, hint, value in zip(self.names, self.hints, args, strict=True):
                what = f"parameter '{name}' of {self.what} (a {type(value).__name__})"
                payloads.encode(value, what, limit, type_checks.find_check(hint), strictness=strictness)
            raise

    def refuse_positions(self, args: Sequence[Any]) -> NoReturn:
        """Raises InvalidArguments, for more arguments by position than can be: it names what is given by name only."""
        if len(args) > len(self.names):
            raise self._misfit(self._count_extra(len(args)))
        named = self.keyword_only[: len(args) - self.most_positional]
        verb, shown = "is" if len(named) == 1 else "are", ", ".join(f"{name}=…" for name in named)
        raise self._misfit(f"{_join(named)} {verb} given by position, and can be given by name only. Write {shown}")

    def check_names(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises InvalidArguments unless these are arguments of the function, by number and by name."""
        self._bind(args, kwargs)

    def encode_result(self, value: Any, limit: int, *, strictness: Strictness = Strictness.STRICT) -> Payload:
        """The result as a payload that fits the return hint.

        Raises InvalidResult if it does not fit, else EncodingError or PayloadTooLarge.
        """
        what = f"the result of {self.what}"
        encoded = payloads.encode(value, what, limit, self._result_check, strictness=strictness)
        if not self._fits_surely(value):
            try:
                self.decode_result(encoded)
            except DecodingError as error:
                raise InvalidResult(
                    f"Expected {what} to fit its return hint, {payloads.describe_hint(self.result_hint)}, but it does not: "
                    f"{payloads.describe_refusal(error.__cause__ or error)}. Return such a value, or change the hint."
                ) from error
        return encoded

    def _fits_surely(self, value: Any) -> bool:
        """Whether a result need not be read back to know that it fits: a short way for what is returned most."""
        hint = self.result_hint
        return hint is Any or (type(value) is hint and hint in _EXACT)

    def call(self, function: Callable[..., Any], args: Sequence[Any], *first: Any) -> Any:
        """Call the function with decoded arguments, after `first`, which history does not record."""
        if not self.keyword_only and self.extra is None:
            return function(*first, *args)
        extra: Mapping[str, Any] = {}
        if self.extra is not None:
            *args, extra = args
        count = len(args) - len(self.keyword_only)
        return function(*first, *args[:count], **dict(zip(self.keyword_only, args[count:], strict=True)), **extra)

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
            filled = self._fill_defaults(payload) or self._bind_named(payload)
            if filled is not None:
                return self.decode_arguments(filled)
            self._explain(payload)
            raise InvalidArguments(
                f"Expected the arguments of {self.what} to be {self._listing()}, but {payloads.describe_refusal(error)}."
            ) from error

    def decode_result(self, payload: Payload) -> Any:
        """The result as the function's return hint says."""
        return payloads.decode(payload, self.result_hint, f"the result of {self.what}")

    def bind_variables(self, payload: Payload) -> Payload:
        """The arguments of a job in their order: of the variables, those that there are parameters for.

        Raises InvalidArguments naming the parameters without a default that no variable is there for.
        """
        try:
            variables = _NAMED_ARGUMENTS.decode(payload.data).kwargs
        except (msgspec.MsgspecError, RecursionError) as error:
            reason = payloads.describe_refusal(error)
            raise InvalidArguments(
                f"Expected the input of the job of {self.what} to be variables by name, but {reason}."
            ) from error
        values: list[Any] = []
        missing: list[str] = []
        for name, default in zip(self.names, self.defaults, strict=True):
            if name == self.extra:
                taken = self._reserved.union(self.names).difference((name,))
                values.append({key: value for key, value in variables.items() if key not in taken})
            elif name in variables:
                values.append(variables[name])
            elif default is _MISSING:
                missing.append(name)
            else:
                values.append(_encode_default(default, f"the default of '{name}' of {self.what}"))
        if missing:
            raise self._describe_absent(missing, variables)
        return Payload(msgspec.Raw(msgspec.json.encode(values)))

    def _describe_absent(self, missing: Sequence[str], variables: Mapping[str, Any]) -> InvalidArguments:
        shown = ", ".join(sorted(variables)[:MOST_SHOWN]) + (", …" if len(variables) > MOST_SHOWN else "")
        is_one = len(missing) == 1
        return InvalidArguments(
            f"Expected the job of {self.what} to find variables for {self._listing()}, but {_join(missing)} "
            f"{'is' if is_one else 'are'} missing (variables: {shown or 'none'}). "
            f"Set {'it' if is_one else 'them'}, add an input mapping to the task, or give the parameter a default."
        )

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if len(args) > len(self.names) - (self.extra is not None):
            raise self._misfit(self._count_extra(len(args)))
        values = list(args) + list(self.defaults[len(args) :])
        extra: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name not in self.names or name == self.extra:
                if self.extra is None or name in self._reserved:
                    raise InvalidArguments.name_unknown(name, self.what, self._listing())
                extra[name] = value
                continue
            position = self.names.index(name)
            if position < len(args):
                raise InvalidArguments(
                    f"Expected one value for parameter '{name}' of {self.what}, but two were given. Pass it once."
                )
            values[position] = value
        if self.extra is not None:
            values[-1] = extra
        missing = [name for name, value in zip(self.names, values, strict=True) if value is _MISSING]
        if missing:
            raise self._misfit(describe_missing(missing))
        return values

    def _fill_defaults(self, payload: Payload) -> Payload | None:
        """The arguments of a call by name that left out the last ones, with their defaults; None if that is not the case."""
        try:
            items = msgspec.json.decode(payload.data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            return None
        rest = self.defaults[len(items) :]
        if not rest or any(default is _MISSING for default in rest):
            return None
        values = [
            _encode_default(value, f"the default of '{name}' of {self.what}")
            for name, value in zip(self.names[len(items) :], rest, strict=True)
        ]
        return Payload(msgspec.Raw(msgspec.json.encode([*items, *values])))

    def _bind_named(self, payload: Payload) -> Payload | None:
        """The arguments of a call by name that names some, in their order; None if it is no such call."""
        given = read_named_arguments(payload)
        if given is None:
            return None
        kwargs = given.kwargs
        if given.is_lenient and self.extra is None:
            kwargs = {name: value for name, value in kwargs.items() if name in self.names}
        values = [
            value
            if isinstance(value, msgspec.Raw) or name == self.extra
            else _encode_default(value, f"the default of '{name}' of {self.what}")
            for name, value in zip(self.names, self._bind(given.args, kwargs), strict=True)
        ]
        return Payload(msgspec.Raw(msgspec.json.encode(values)))

    def _explain(self, payload: Payload) -> None:
        try:
            items = msgspec.json.decode(payload.data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            raise InvalidArguments(
                f"Expected the arguments of {self.what} as a JSON array, but found "
                f"{bytes(payload.data)[:80].decode(errors='replace')}. Pass {self._listing()}."
            ) from None
        if len(items) != len(self.names):
            missing = [name for name, default in self._list_defaults()[len(items) :] if default is _MISSING]
            raise self._misfit(describe_missing(missing) if missing else self._count_extra(len(items)))
        for name, hint, item in zip(self.names, self.hints, items, strict=True):
            try:
                payloads.decode(Payload(item), hint, f"parameter '{name}' of {self.what}")
            except DecodingError as error:
                raise InvalidArguments(error.message) from None

    def _list_defaults(self) -> list[tuple[str, Any]]:
        return list(zip(self.names, self.defaults, strict=True))

    def _count_extra(self, found: int) -> str:
        return describe_extra(found, len(self.names) - (self.extra is not None))

    def _misfit(self, reason: str) -> InvalidArguments:
        return InvalidArguments(f"Expected {self.what} to be called with {self._listing()}, but {reason}.")

    def _listing(self) -> str:
        if not self.names:
            return "no arguments"
        shown = [
            f"**{name}"
            if name == self.extra
            else f"{name}: {payloads.describe_hint(hint)}" + ("" if default is _MISSING else f" = {default!r}")
            for name, hint, default in zip(self.names, self.hints, self.defaults, strict=True)
        ]
        if self.keyword_only:
            shown.insert(self.most_positional, "*")
        return f"({', '.join(shown)})"


def describe_missing(names: Sequence[str]) -> str:
    """Which arguments of a call are missing, within a sentence."""
    return f"{_join(names)} {'is' if len(names) == 1 else 'are'} missing. Pass {'it' if len(names) == 1 else 'them'}"


def describe_extra(found: int, known: int) -> str:
    """How many arguments by position a call has too many, within a sentence."""
    what = "Leave it out" if found - known == 1 else "Leave them out"
    return f"got {count_noun(found, 'argument')} by position, {found - known} too many. {what}"


def _join(names: Sequence[str]) -> str:
    *first, last = [f"'{name}'" for name in names]
    return f"{', '.join(first)} and {last}" if first else last


def describe_function(function: Callable[..., Any]) -> str:
    """A function's qualified name with the file and line of its definition, for messages."""
    code = getattr(function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "unknown place"
    return f"{getattr(function, '__qualname__', function)} ({where})"


def is_payload_hint(hint: Any) -> bool:
    """Whether a hint says that values of some type travel as JSON; one that takes anything says nothing."""
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return False
    try:
        _checked_hint(hint, "a parameter")
    except InvalidDefinition:
        return False
    return True


def _read_hints(function: Callable[..., Any], what: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidDefinition(
            f"Expected to resolve the type hints of {what}, but {error}. "
            "Define the type at module level, where hints are looked up."
        ) from error


def _encode_default(value: Any, what: str) -> msgspec.Raw:
    return payloads.encode(value, what).data


def _checked_hint(hint: Any, what: str) -> Any:
    """A hint by which JSON can be read. Raises InvalidDefinition for one that would fail first when something runs."""
    fault, error = _find_fault(hint)
    if fault:
        raise InvalidDefinition(f"{_expect_type(what)}{fault}") from error
    return hint


def check_hint(hint: Any, kind: str, name: str) -> None:
    """Raises InvalidArguments if something of a kind and a name cannot be read by a hint: found out once per hint."""
    if decoders.is_known(hint):
        return
    fault, error = _find_fault(hint)
    if fault:
        raise InvalidArguments(_expect_type(f"{kind} '{name}'") + fault) from error
    decoders.note_known(hint)


def _expect_type(what: str) -> str:
    return f"Expected {what} to have a type that JSON can become, but "


def _find_fault(hint: Any) -> tuple[str, Exception | None]:
    """Why values cannot be read by a hint, with the remedy, and the exception that says so; empty if they can."""
    try:
        strangers = list(decoders.find_strangers(hint))
        decoders.make_decoder(hint)
        bad = type_checks.find_bad_part(hint)
        type_checks.find_check(hint)
    except NameError as error:
        return f"{error}. Define the type at module level, where hints are looked up.", error
    except IndistinctUnion as error:
        return f"{error}.", error
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"{error}. Use dataclasses, structs, pydantic models or plain types.", error
    if bad:
        return f"{bad}.", None
    for stranger in strangers:
        name = payloads.describe_hint(stranger)
        return f"{name} is not one. Use a dataclass, msgspec struct, pydantic model or plain type.", None
    return "", None
