"""Functions between Python and FEEL: callables of the context as functions of FEEL, functions of FEEL called from Python.

Both ways share one budget: what a Python function calls while an expression is evaluated counts as part of that evaluation,
and a limit that is met there is met for the expression as a whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from holdfast.errors import DeterminismError, FeelError, FeelLimitExceeded
from holdfast.feel.invocations import call_deeper, call_function
from holdfast.feel.python_values import to_feel
from holdfast.feel.rebuilding import Branch, rebuild
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Function, Value

_CURRENT: Final[ContextVar[Run | None]] = ContextVar("feel_run", default=None)
"""The evaluation that is calling a Python function just now."""
_LONGEST_TOLD: Final = 200
"""Characters of what an exception says."""


# --- from Python to FEEL ---


def make_function(callable_: Callable[..., Any]) -> Function:
    """A Python callable as a function of FEEL, with its parameters by position or by name. What it raises gives null.

    Its arguments are values as `values` describes them; lists and contexts are copies. Its result is taken in as values of
    the context are. Limits that are met inside of it, and whatever ends the process or the turn, are not caught.
    """
    name = getattr(callable_, "__name__", type(callable_).__name__)
    name = "" if name == "<lambda>" else name
    signature = _read_signature(callable_)

    def call(run: Run, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
        given = [_to_python(run, one) for one in arguments]
        by_name = {key: _to_python(run, one) for key, one in named.items()}
        if signature is not None:
            try:
                signature.bind(*given, **by_name)
            except TypeError as error:
                raise Fail(f"its parameters are {signature}, but {error}") from None
        return call_deeper(run, lambda _frame: _call(run, callable_, given, by_name), [])

    return Function(
        name,
        _name_parameters(signature),
        lambda run, arguments: call(run, arguments, {}),
        call_by_name=lambda run, named: call(run, (), named),
    )


def _call(run: Run, callable_: Callable[..., Any], arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
    token = _CURRENT.set(run)
    try:
        result = callable_(*arguments, **named)
    except (FeelLimitExceeded, DeterminismError, RecursionError, MemoryError):
        raise
    except Exception as error:
        raise Fail(f"it raised {type(error).__name__}: {_tell(error)}") from error
    finally:
        _CURRENT.reset(token)
    if inspect.iscoroutine(result):
        result.close()
        raise Fail("it is an async function, which nothing here can wait for")
    run.spend(0)  # a limit that was met inside is met, whoever caught it there
    try:
        return to_feel(result)
    except FeelLimitExceeded:
        raise
    except FeelError as error:
        raise Fail(f"its result cannot be used: {error.message}") from error


def _tell(error: Exception) -> str:
    """What an exception says, in one line of characters that can be written; one that cannot even say it says nothing."""
    try:
        text = str(error)[:_LONGEST_TOLD]
    except Exception:  # noqa: BLE001 - code of the user, as what raised it
        return ""
    return " ".join(text.split()).encode("utf-8", "replace").decode()


def _read_signature(callable_: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(callable_)
    except (TypeError, ValueError):
        return None  # some of those that are written in C do not say


def _name_parameters(signature: inspect.Signature | None) -> tuple[str, ...]:
    """The parameters that have to be given, or may be, by position."""
    if signature is None:
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(one.name for one in signature.parameters.values() if one.kind in kinds)


def _to_python(run: Run, value: Value) -> Any:
    """An argument for Python code, which may change what it is given."""

    def look(part: Value) -> Value:
        kind = type(part)
        if kind is list:
            run.spend(len(part))
            return Branch(part, part, list)
        if kind is dict:
            run.spend(len(part))
            return Branch(part, part.values(), lambda made: dict(zip(part, made, strict=True)), part)
        return part

    return rebuild(value, look) if type(value) is list or type(value) is dict else value


# --- from FEEL to Python ---


def call_from_python(function: Function, arguments: Sequence[Any], named: Mapping[str, Any]) -> Value:
    """Call a function of FEEL with values of Python. Null if the arguments do not fit or it fails. Raises FeelError.

    Inside of an evaluation it is part of that; else it is one of its own, with the clock, the random source and the limit of
    the one that made the function.
    """
    run = _CURRENT.get() or _start_run(function)
    given = [to_feel(one) for one in arguments]
    by_name = {key: to_feel(one) for key, one in named.items()}
    if given and by_name:
        raise FeelError(
            "Expected arguments by position or by name, but there are both. Give all of them by name, or none of them."
        )
    try:
        return call_function(run, function, given, by_name)
    except RecursionError:
        raise FeelLimitExceeded(
            "Expected the function to fit on the stack, but it goes too deep. Let fewer functions call each other."
        ) from None


def _start_run(function: Function) -> Run:
    maker = function.made_by
    return Run() if maker is None else Run(None, maker.clock, maker.random, maker.limit, maker.room_limit)
