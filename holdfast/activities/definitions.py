"""What `@activity` and `@transaction` make of functions: activities with a name, a signature and options.

Both kinds of programs call them: workflows as code, and processes as models. So this package knows neither.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

import msgspec

from holdfast.core.ids import check_identifier, check_label
from holdfast.core.instants import Duration, to_micros
from holdfast.core.options import ActivityOptions, Cancellation
from holdfast.core.retry import DEFAULT_RETRY, RetryPolicy
from holdfast.core.signatures import Signature, describe_function
from holdfast.errors import DuplicateName, InvalidConfiguration, InvalidDefinition

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Executor(StrEnum):
    """Where an activity's function runs: in the engine's loop, in a thread, or in another process."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


class Activity(Generic[P, R_co]):
    """An activity: a function with side effects, sync or async."""

    label: str = ""
    """What people call one call of it: `with_options(name=…)`."""
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
        at_most_once: bool | None = None,
        cancellation: str | None = None,
        name: str | None = None,
    ) -> Self:
        """The same activity with other options, for one call: `ctx.run(charge.with_options(retry=…), order)`.

        `name` is what history and `holdfast history` call this call, beside the activity's own name.
        """
        given = make_options(
            retry=retry,
            queue=queue,
            start_to_close=start_to_close,
            schedule_to_start=schedule_to_start,
            schedule_to_close=schedule_to_close,
            heartbeat=heartbeat,
            at_most_once=at_most_once,
            cancellation=cancellation,
            base=self.options,
        )
        self.check_options(given)
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = given
        if name is not None:
            other.label = check_label(name, "a call")
        return other

    def check_options(self, options: ActivityOptions) -> None:
        """Raises InvalidConfiguration if activities of this kind cannot have these options; of this one, all can."""

    def __repr__(self) -> str:
        return f"<activity {self.name!r}>"


class TransactionActivity(Activity[P, R_co]):
    """An activity whose SQL commits together with its result. Its function's first parameter is the connection."""

    skipped_parameters = 1

    def check_options(self, options: ActivityOptions) -> None:
        """Raises InvalidConfiguration for what does not go together with a commit that happens once anyway."""
        if options.at_most_once or options.cancellation is not Cancellation.ABANDON:
            raise InvalidConfiguration(
                f"Expected transaction '{self.name}' to have neither at_most_once nor cancellation='wait', but it has. "
                "Leave them out: its SQL is committed exactly once, or not at all."
            )

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
    at_most_once: bool | None = None,
    cancellation: str | None = None,
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
    if cancellation is not None:
        changes["cancellation"] = _check_cancellation(cancellation)
    if at_most_once is not None:
        if not isinstance(at_most_once, bool):
            raise InvalidConfiguration(f"Expected at_most_once=… to be True or False, but it is {at_most_once!r}.")
        changes["at_most_once"] = at_most_once
    base = base or ActivityOptions()
    if changes.get("at_most_once", base.at_most_once):
        _check_single_attempt(changes, base)
    return msgspec.structs.replace(base, **changes)


def _check_cancellation(value: Any) -> Cancellation:
    try:
        return Cancellation(value)
    except ValueError:
        raise InvalidConfiguration(f"Expected cancellation=… to be 'abandon' or 'wait', but it is {value!r}.") from None


def _check_single_attempt(changes: dict[str, Any], base: ActivityOptions) -> None:
    """What is run at most once has one attempt; a policy with more contradicts it."""
    policy: RetryPolicy = changes.get("retry", base.retry)
    if policy == DEFAULT_RETRY:
        changes["retry"] = msgspec.structs.replace(policy, max_attempts=1)
    elif policy.max_attempts != 1:
        raise InvalidConfiguration(
            "Expected an activity with at_most_once=True to have one attempt, but its retry allows "
            f"{policy.max_attempts or 'any number'}. Leave retry out; let the workflow decide what follows from a failure."
        )


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


def index_activities(activities: Iterable[Activity[..., Any]]) -> dict[str, Activity[..., Any]]:
    """Activities by name, as an engine takes them. Raises DuplicateName, or InvalidDefinition for what is no activity.

    Copies of one activity with other options count once: the first is taken.
    """
    given: object = activities
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidDefinition(f"Expected activities=… to be a list, but it is {activities!r}. Write activities=[…].")
    found: dict[str, Activity[..., Any]] = {}
    for activity in activities:
        if not isinstance(activity, Activity):
            raise InvalidDefinition(
                f"Expected every activity given to the engine to be decorated with @activity, "
                f"but found {getattr(activity, '__name__', activity)!r}. Add the decorator."
            )
        other = found.setdefault(activity.name, activity)
        if other.function is not activity.function:
            raise DuplicateName(
                f"Expected each activity to have its own name, but two are called '{activity.name}': "
                f"{describe_function(other.function)} and {describe_function(activity.function)}. "
                "Rename one: @activity(name='…')."
            )
    return found
