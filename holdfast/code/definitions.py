"""What the decorators make of users' functions: workflows and activities with a name, a signature and options."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

import msgspec

from holdfast.core.ids import check_identifier
from holdfast.core.instants import Duration, to_micros
from holdfast.core.options import ActivityOptions
from holdfast.core.retry import RetryPolicy
from holdfast.core.signatures import Signature
from holdfast.errors import DuplicateName, InvalidConfiguration, InvalidDefinition

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
D = TypeVar("D", "Workflow[..., Any]", "Activity[..., Any]")


class Executor(StrEnum):
    """Where an activity's function runs."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


class Versioning(StrEnum):
    """Which code may go on with an execution that other code began."""

    LATEST = "latest"
    """Whichever there is."""
    PINNED = "pinned"
    """Only the version that began it."""


class Workflow(Generic[P, R_co]):
    """A workflow: an async function whose first parameter is the context."""

    def __init__(
        self, function: Callable[..., Any], name: str, version: str = "", versioning: Versioning = Versioning.LATEST
    ) -> None:
        self.name = check_identifier(name, "the name of a workflow")
        self.version = version
        self.versioning = versioning
        self.function = _check_workflow(function, name)
        self.signature = Signature(function, f"workflow '{name}'", skip=1)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, for unit tests of its logic."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<workflow {self.name!r}>"


class Activity(Generic[P, R_co]):
    """An activity: a function with side effects, sync or async."""

    skipped_parameters = 0
    """How many of the function's first parameters are not given by workflows."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        options: ActivityOptions,
        executor: Executor,
        max_concurrent: int | None = None,
        rate_per_second: float | None = None,
    ) -> None:
        self.name = check_identifier(name, "the name of an activity")
        self.function = function
        self.options = options
        self.executor = executor
        self.max_concurrent = max_concurrent
        self.rate_per_second = rate_per_second
        self.signature = Signature(function, f"activity '{name}'", skip=self.skipped_parameters)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, for unit tests of its logic."""
        return self.function(*args, **kwargs)

    def with_options(
        self,
        *,
        retry: RetryPolicy | None = None,
        queue: str | None = None,
        start_to_close: Duration | None = None,
        schedule_to_start: Duration | None = None,
        schedule_to_close: Duration | None = None,
        heartbeat: Duration | None = None,
    ) -> Self:
        """The same activity with other options, for one call: `ctx.run(charge.with_options(retry=…), order)`."""
        given = make_options(
            retry=retry,
            queue=queue,
            start_to_close=start_to_close,
            schedule_to_start=schedule_to_start,
            schedule_to_close=schedule_to_close,
            heartbeat=heartbeat,
            base=self.options,
        )
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = given
        return other

    def __repr__(self) -> str:
        return f"<activity {self.name!r}>"


class TransactionActivity(Activity[P, R_co]):
    """An activity whose SQL commits together with its result. Its function's first parameter is the connection."""

    skipped_parameters = 1

    def __repr__(self) -> str:
        return f"<transaction {self.name!r}>"


def make_options(
    *,
    retry: RetryPolicy | None = None,
    queue: str | None = None,
    start_to_close: Duration | None = None,
    schedule_to_start: Duration | None = None,
    schedule_to_close: Duration | None = None,
    heartbeat: Duration | None = None,
    base: ActivityOptions | None = None,
) -> ActivityOptions:
    """Options as history records them; what is not given comes from `base`."""
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise InvalidConfiguration(
            f"Expected retry=… to be a Retry(...), but it is {retry!r}. Write for instance Retry(max_attempts=5)."
        )
    changes: dict[str, Any] = {}
    if retry is not None:
        changes["retry"] = retry
    if queue is not None:
        changes["queue"] = check_identifier(queue, "the queue of an activity")
    durations = {
        "start_to_close": start_to_close,
        "schedule_to_start": schedule_to_start,
        "schedule_to_close": schedule_to_close,
        "heartbeat": heartbeat,
    }
    for name, value in durations.items():
        if value is not None:
            changes[f"{name}_us"] = to_micros(value, f"the {name} timeout")
    return msgspec.structs.replace(base or ActivityOptions(), **changes)


def choose_executor(function: Callable[..., Any], executor: str | None, name: str) -> Executor:
    """Async functions run in the loop, sync ones in threads, others in processes when asked."""
    is_async = inspect.iscoroutinefunction(function)
    if executor is None:
        return Executor.LOOP if is_async else Executor.THREAD
    try:
        chosen = Executor(executor)
    except ValueError:
        raise InvalidConfiguration(
            f"Expected executor=… of activity '{name}' to be 'loop', 'thread' or 'process', but it is {executor!r}."
        ) from None
    if is_async != (chosen is Executor.LOOP):
        kind = "an async function runs in the loop" if is_async else "a sync function needs a thread or a process"
        raise InvalidDefinition(f"Expected activity '{name}' to run in a {chosen}, but {kind}. Leave executor out.")
    if chosen is Executor.PROCESS and "<locals>" in getattr(function, "__qualname__", "<locals>"):
        raise InvalidDefinition(
            f"Expected activity '{name}' to run in a process, but it is defined inside of a function, where another process "
            "cannot find it. Move it to the level of its module."
        )
    return chosen


def check_versioning(versioning: str, version: str) -> Versioning:
    """A policy that fits the version. Raises InvalidConfiguration or InvalidIdentifier."""
    try:
        policy = Versioning(versioning)
    except ValueError:
        raise InvalidConfiguration(
            f"Expected versioning=… of a workflow to be 'latest' or 'pinned', but it is {versioning!r}."
        ) from None
    if policy is Versioning.PINNED and not version:
        raise InvalidConfiguration(
            "Expected a workflow with versioning='pinned' to have a version, but it has none. Write version='1'."
        )
    if policy is Versioning.PINNED:
        check_identifier(version, "the version of a pinned workflow")
    return policy


def index_by_name(definitions: Iterable[D], what: str) -> dict[str, D]:
    """Definitions by name. Raises DuplicateName, or InvalidDefinition for what is not a `what`."""
    found: dict[str, D] = {}
    wanted = Workflow if what == "workflow" else Activity
    if isinstance(definitions, str) or not isinstance(definitions, Iterable):
        plural = "workflows" if what == "workflow" else "activities"
        raise InvalidDefinition(f"Expected {plural}=… to be a list, but it is {definitions!r}. Write {plural}=[…].")
    for definition in definitions:
        if not isinstance(definition, wanted):
            raise InvalidDefinition(
                f"Expected every {what} given to the engine to be decorated with @{what}, "
                f"but found {getattr(definition, '__name__', definition)!r}. Add the decorator."
            )
        other = found.setdefault(definition.name, definition)
        if other is not definition and other.function is not definition.function:
            raise DuplicateName(
                f"Expected each {what} to have its own name, but two are called '{definition.name}': "
                f"{_place(other)} and {_place(definition)}. Rename one: @{what}(name='…')."
            )
    return found


def _check_workflow(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):
        kind = "an async generator" if inspect.isasyncgenfunction(function) else "not an async function"
        raise InvalidDefinition(
            f"Expected workflow '{name}' to be `async def`, but it is {kind}. Write `async def {name}(ctx, …)`."
        )
    parameters = list(inspect.signature(function).parameters)
    if not parameters:
        raise InvalidDefinition(
            f"Expected workflow '{name}' to take the context as its first parameter, but it takes none. "
            f"Write `async def {name}(ctx: Context, …)`."
        )
    return function


def check_transaction(function: Callable[..., Any], name: str) -> None:
    """Raises InvalidDefinition if the function cannot take a connection."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise InvalidDefinition(
            f"Expected transaction '{name}' to be a function that returns, but it is a generator. Return a list instead."
        )
    if not inspect.signature(function).parameters:
        raise InvalidDefinition(
            f"Expected transaction '{name}' to take the connection as its first parameter, but it takes none. "
            f"Write `{name}(connection, …)`."
        )


def _place(definition: Workflow[..., Any] | Activity[..., Any]) -> str:
    code = getattr(definition.function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "unknown place"
    return f"{getattr(definition.function, '__qualname__', definition.function)} ({where})"
