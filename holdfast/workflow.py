"""The decorators that turn functions into workflows and activities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from holdfast.code.context import Context
from holdfast.code.definitions import Activity, Workflow, choose_executor, make_options
from holdfast.core.instants import Duration
from holdfast.core.retry import RetryPolicy
from holdfast.errors import InvalidConfiguration, InvalidDefinition

P = ParamSpec("P")
R = TypeVar("R")


@overload
def workflow(function: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *, name: str | None = None, version: str = ""
) -> Callable[[Callable[Concatenate[Context, P], Awaitable[R]]], Workflow[P, R]]: ...
def workflow(function: Any = None, /, *, name: str | None = None, version: str = "") -> Any:
    """Make an `async def` function a workflow. Its first parameter is the Context; the others are its input.

    `name` is how histories and other programs refer to it (default: the function's name); `version` is recorded at each
    start.
    """
    if not isinstance(version, str):
        raise InvalidConfiguration(f"Expected version=… of a workflow to be text, but it is {version!r}. Write version='2'.")

    def decorate(function: Any) -> Workflow[..., Any]:
        return Workflow(function, _name_of(function, "workflow") if name is None else name, version)

    return decorate if function is None else decorate(function)


@overload
def activity(function: Callable[P, Awaitable[R]], /) -> Activity[P, R]: ...
@overload
def activity(function: Callable[P, R], /) -> Activity[P, R]: ...
@overload
def activity(
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat: Duration | None = None,
    executor: str | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
) -> _ActivityDecorator: ...
def activity(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat: Duration | None = None,
    executor: str | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
) -> Any:
    """Make a function an activity: it may do anything, runs at least once, and its recorded result counts once.

    Async functions run in the loop, sync ones in threads; `executor='process'` runs a sync function in a process. The
    default retry is without end, with growing pauses: give `Retry(max_attempts=…)` to bound it.
    """
    options = make_options(
        retry=retry,
        queue=queue,
        start_to_close=start_to_close,
        schedule_to_start=schedule_to_start,
        schedule_to_close=schedule_to_close,
        heartbeat=heartbeat,
    )
    if max_concurrent is not None and (type(max_concurrent) is not int or max_concurrent < 1):
        raise InvalidConfiguration(
            f"Expected max_concurrent=… to be a whole number of at least 1, but it is {max_concurrent!r}."
        )
    is_rate = isinstance(rate_per_second, int | float) and not isinstance(rate_per_second, bool)
    if rate_per_second is not None and not (is_rate and 0 < rate_per_second < float("inf")):
        raise InvalidConfiguration(f"Expected rate_per_second=… to be a positive number, but it is {rate_per_second!r}.")

    def decorate(function: Any) -> Activity[..., Any]:
        chosen = _name_of(function, "activity") if name is None else name
        return Activity(
            function, chosen, options, choose_executor(function, executor, chosen), max_concurrent, rate_per_second
        )

    return decorate if function is None else decorate(function)


class _ActivityDecorator:
    """The type of `activity(...)` with options: keeps the signature of async and sync functions alike."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Activity[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Activity[P, R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Decorate the function."""
        raise NotImplementedError  # only for type checkers: `activity` returns a plain function


def _name_of(function: Any, what: str) -> str:
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None or name == "<lambda>":
        raise InvalidDefinition(
            f"Expected @{what} to decorate a function with a name, but got {function!r}. Write a `def`, or give name='…'."
        )
    return str(name)
