"""The decorators that turn functions into workflows and activities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, overload

from holdfast.activities.definitions import (
    Activity,
    ActivityLimits,
    Executor,
    TransactionActivity,
    check_transaction,
    choose_executor,
    make_options,
    unwrap_method,
)
from holdfast.code.context import Context
from holdfast.code.definitions import Versioning, Workflow, check_versioning
from holdfast.code.start_triggers import check_triggers
from holdfast.core.instants import Duration
from holdfast.core.publications import StartTrigger
from holdfast.core.retry import RetryPolicy
from holdfast.core.start_checks import check_retry
from holdfast.errors import InvalidConfiguration, InvalidDefinition

P = ParamSpec("P")
R = TypeVar("R")
Coro: TypeAlias = Coroutine[Any, Any, R]


@overload
def workflow(function: Callable[Concatenate[Context, P], Awaitable[R]], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *,
    name: str | None = None,
    version: str = "",
    versioning: str = Versioning.LATEST,
    retry: RetryPolicy | None = None,
    starts_on: StartTrigger | Sequence[StartTrigger] | None = None,
) -> Callable[[Callable[Concatenate[Context, P], Awaitable[R]]], Workflow[P, R]]: ...
def workflow(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    version: str = "",
    versioning: str = Versioning.LATEST,
    retry: RetryPolicy | None = None,
    starts_on: StartTrigger | Sequence[StartTrigger] | None = None,
) -> Any:
    """Make an `async def` function a workflow. Its first parameter is the Context; the others are its input.

    `name` is how histories and other programs refer to it (default: the function's name); `version` is recorded at each
    start. With `versioning='latest'` whoever has the workflow takes its turns, with the version that was given to that
    engine last; with 'pinned' an execution stays with the version that took its first turn. An engine may have several
    versions of one name: `Engine(…, workflows=[order_v1, order_v2])`.

    With `retry`, a run that fails is followed by another with the same input, unless its start gives a policy of its own.

    With `starts_on=Message('order')` a message that nobody waits for starts it: the correlation key becomes the workflow id,
    the value its input. With `BroadcastSignal('…')` each broadcast signal of that name does. That holds while an engine that
    has the workflow runs. Several can be given as a list.
    """
    triggers = check_triggers(starts_on)
    check_retry(retry)
    if not isinstance(version, str):
        raise InvalidConfiguration(f"Expected version=… of a workflow to be text, but it is {version!r}. Write version='2'.")
    policy = check_versioning(versioning, version)

    def decorate(function: Any) -> Workflow[..., Any]:
        chosen = _name_of(function, "workflow") if name is None else name
        return Workflow(function, chosen, version, policy, retry, triggers)

    return decorate if function is None else decorate(function)


@overload
def activity(function: Callable[P, Awaitable[R]], /) -> Activity[P, R, Coro[R]]: ...
@overload
def activity(function: Callable[P, R], /) -> Activity[P, R, R]: ...
@overload
def activity(
    function: str | None = None,
    /,
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat: Duration | None = None,
    at_most_once: bool = False,
    cancellation: str | None = None,
    executor: str | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
    errors: Sequence[type[Exception]] = (),
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
    at_most_once: bool = False,
    cancellation: str | None = None,
    executor: str | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
    errors: Sequence[type[Exception]] = (),
) -> Any:
    """Make a function an activity: it may do anything, runs at least once, and its recorded result counts once.

    `@activity("charge-card")` names it, as `name=…` does: tasks of processes ask for it by that job type, and it gets the
    variables that it has parameters for.

    Async functions run in the loop, sync ones in threads; `executor='process'` runs a sync function in a process. The
    default retry is without end, with growing pauses: give `Retry(max_attempts=…)` to bound it. Workflows can catch what it
    raises by its class: built-in ones, those that its module or the workflow's knows by name, and those in `errors`.
    In the body of a class it makes a method an activity: `Engine(…, activities=[*collect(an_object)])`.

    Four timeouts, in seconds or as timedeltas, none by default: `start_to_close` for one attempt, `heartbeat` between two
    calls of `heartbeat()`, both retried; `schedule_to_start` until a node begins an attempt, `schedule_to_close` for all
    attempts with their pauses, both final. `max_concurrent` attempts run at once on a node, and `rate_per_second` begin
    there. Nodes that serve its `queue` run it; by default that is 'default', whatever the workflow's is.

    With `at_most_once=True` the function is called at most once, whatever ends the process: the beginning is committed
    before the call, which costs one commit more, and if the end is never reported the workflow gets ActivityLost. There is
    one attempt: what the function raises fails the activity.

    `cancellation` says what happens when the workflow cancels the activity: with "abandon" (default) its code goes on at
    once, with "wait" only when the function has ended, clean-up and all; then CancelledError is raised, however it ended.
    """
    if isinstance(function, str):
        if name is not None:
            raise InvalidDefinition(f"Expected one name of an activity, but there are {function!r} and {name!r}. Give one.")
        function, name = None, function
    options = make_options(
        retry=retry,
        queue=queue,
        start_to_close=start_to_close,
        schedule_to_start=schedule_to_start,
        schedule_to_close=schedule_to_close,
        heartbeat=heartbeat,
        at_most_once=at_most_once,
        cancellation=cancellation,
    )
    _check_limits(max_concurrent, rate_per_second)

    def decorate(function: Any) -> Activity[..., Any]:
        chosen = _name_of(function, "activity") if name is None else name
        limits = ActivityLimits(max_concurrent, rate_per_second)
        place = choose_executor(unwrap_method(function), executor, chosen)
        return Activity(function, chosen, options, place, limits, errors)

    return decorate if function is None else decorate(function)


@overload
def transaction(function: Callable[Concatenate[Any, P], Awaitable[R]], /) -> TransactionActivity[P, R, Coro[R]]: ...
@overload
def transaction(function: Callable[Concatenate[Any, P], R], /) -> TransactionActivity[P, R, R]: ...
@overload
def transaction(
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
    errors: Sequence[type[Exception]] = (),
) -> _TransactionDecorator: ...
def transaction(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    max_concurrent: int | None = None,
    rate_per_second: float | None = None,
    errors: Sequence[type[Exception]] = (),
) -> Any:
    """Make a function an activity whose SQL commits together with its result, for `ctx.transaction`.

    Its first parameter is a connection to the engine's own database, in a transaction that is committed when the function
    returns and undone when it raises. On SQLite that is a `sqlite3.Connection` and the function a plain `def`, during which
    nothing else happens in the process: keep it short. On PostgreSQL it is an asyncpg connection and the function
    `async def`. It is given to the engine among its activities.
    """
    options = make_options(
        retry=retry,
        queue=queue,
        start_to_close=start_to_close,
        schedule_to_start=schedule_to_start,
        schedule_to_close=schedule_to_close,
    )
    _check_limits(max_concurrent, rate_per_second)

    def decorate(function: Any) -> TransactionActivity[..., Any]:
        chosen = _name_of(function, "transaction") if name is None else name
        check_transaction(unwrap_method(function), chosen)
        limits = ActivityLimits(max_concurrent, rate_per_second)
        return TransactionActivity(function, chosen, options, Executor.LOOP, limits, errors)

    return decorate if function is None else decorate(function)


class _ActivityDecorator:
    """The type of `activity(...)` with options: keeps the signature of async and sync functions alike."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> Activity[P, R, Coro[R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Activity[P, R, R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Make an activity of the function that is decorated."""
        raise NotImplementedError  # only for type checkers: `activity` returns a plain function


class _TransactionDecorator:
    """The type of `transaction(...)` with options: keeps the signature of async and sync functions alike."""

    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], Awaitable[R]], /) -> TransactionActivity[P, R, Coro[R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> TransactionActivity[P, R, R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Make a transaction of the function that is decorated."""
        raise NotImplementedError  # only for type checkers: `transaction` returns a plain function


def _check_limits(max_concurrent: Any, rate_per_second: Any) -> None:
    if max_concurrent is not None and (type(max_concurrent) is not int or max_concurrent < 1):
        raise InvalidConfiguration(
            f"Expected max_concurrent=… to be a whole number of at least 1, but it is {max_concurrent!r}."
        )
    is_rate = isinstance(rate_per_second, int | float) and not isinstance(rate_per_second, bool)
    if rate_per_second is not None and not (is_rate and 0 < rate_per_second < float("inf")):
        raise InvalidConfiguration(f"Expected rate_per_second=… to be a positive number, but it is {rate_per_second!r}.")


def _name_of(function: Any, what: str) -> str:
    if isinstance(function, Activity | Workflow):
        raise InvalidDefinition(
            f"Expected @{what} to decorate a function, but {function!r} is decorated already. Use it as it is."
        )
    function = unwrap_method(function)
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None or name == "<lambda>":
        raise InvalidDefinition(
            f"Expected @{what} to decorate a function with a name, but got {function!r}. Write a `def`, or give name='…'."
        )
    return str(name)
