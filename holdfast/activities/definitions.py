"""What `@activity` and `@transaction` make of functions: activities with a name, a signature and options.

Both kinds of programs call them: workflows as code, and processes as models. So this package knows neither.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from enum import StrEnum
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload

import msgspec

from holdfast.core.ids import check_identifier, check_label
from holdfast.core.instants import Duration, to_micros
from holdfast.core.options import ActivityOptions, Cancellation
from holdfast.core.retry import DEFAULT_RETRY, RetryPolicy
from holdfast.core.signatures import Signature, describe_function
from holdfast.errors import DuplicateName, InvalidConfiguration, InvalidDefinition

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeVar as TypeVarWithDefault

    C_co = TypeVarWithDefault("C_co", covariant=True, default=Any)
else:
    C_co = TypeVar("C_co", covariant=True)

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Executor(StrEnum):
    """Where an activity's function runs: in the engine's loop, in a thread, or in another process."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


class ActivityLimits(msgspec.Struct, frozen=True):
    """How many attempts of an activity may run at once on a node, and how many may begin there per second."""

    max_concurrent: int | None = None
    rate_per_second: float | None = None


NO_LIMITS: Final = ActivityLimits()


class Binding(StrEnum):
    """What the first parameter of an activity's function is bound to when it is looked up in a class or an object."""

    NONE = "none"
    """To nothing: a function, a static method, or a method that is bound already."""
    OBJECT = "object"
    CLASS = "class"


class Activity(Generic[P, R_co, C_co]):
    """An activity: a function with side effects, sync or async. Or a method: then objects of its class have it bound.

    Type checkers see its parameters, its result, and what calling it gives: a coroutine, or the result. The last may be left
    out.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: Any) -> Any:
            """Type checkers know that the last has a default."""
            is_short = isinstance(types, tuple) and len(types) == 2
            return super().__class_getitem__((*types, Any) if is_short else types)

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
        limits: ActivityLimits = NO_LIMITS,
        errors: Sequence[type[Exception]] = (),
    ) -> None:
        self.name = check_identifier(name, "the name of an activity")
        self.binding = Binding.CLASS if isinstance(function, classmethod) else Binding.NONE
        self._is_static = isinstance(function, staticmethod)
        self.function = function = unwrap_method(function)
        self.options = options
        self.executor = executor
        self.max_concurrent = limits.max_concurrent
        self.rate_per_second = limits.rate_per_second
        self.errors = check_errors(errors, name)
        """The exceptions that workflows catch by their class although the function's module has no such name."""
        self.signature = self._read_signature()
        self.__doc__ = function.__doc__

    def _read_signature(self) -> Signature:
        skip = self.skipped_parameters + (self.binding is not Binding.NONE)
        return Signature(self.function, f"activity '{self.name}'", skip=skip, takes_extra=True)

    @property
    def parameters(self) -> frozenset[str] | None:
        """The names of what it takes, as variables of a process are looked up; None if it takes all of them."""
        return None if self.signature.extra is not None else frozenset(self.signature.names)

    def __set_name__(self, owner: type, name: str) -> None:
        """Called by the body of a class: the function is a method, unless it came from elsewhere and has no `self`."""
        if self._is_static or self.binding is not Binding.NONE or isinstance(self.function, MethodType):
            return
        qualname = getattr(self.function, "__qualname__", "")
        first = next(iter(inspect.signature(self.function).parameters), "")
        if first == "self" or qualname.rpartition(".")[0] == owner.__qualname__:
            self.binding = Binding.OBJECT
            self.signature = self._read_signature()

    @overload
    def __get__(
        self: Activity[Concatenate[S, Q], R_co, C_co], instance: S | None, owner: type[S]
    ) -> Activity[Q, R_co, C_co]: ...
    @overload
    def __get__(
        self: Activity[Concatenate[type[S], Q], R_co, C_co], instance: S | None, owner: type[S]
    ) -> Activity[Q, R_co, C_co]: ...
    @overload
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Self: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Activity[..., Any]:
        """The activity as it is looked up in an object or a class: bound to it, if it is a method of that kind."""
        if self.binding is Binding.CLASS:
            return self._bind(type(instance) if owner is None else owner)
        return self._bind(instance) if self.binding is Binding.OBJECT and instance is not None else self

    def _bind(self, target: Any) -> Self:
        bound = type(self).__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.binding = Binding.NONE
        bound.function = MethodType(self.function, target)
        return bound

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function itself, for unit tests of its logic."""
        called: C_co = self.function(*args, **kwargs)
        return called

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


class TransactionActivity(Activity[P, R_co, C_co]):
    """An activity whose SQL commits together with its result. Its function's first parameter is the connection."""

    skipped_parameters = 1

    if TYPE_CHECKING:

        def __call__(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> C_co: ...  # type: ignore[override]

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
    """What is run at most once has one attempt; a policy with more contradicts it, the default one too if it is given."""
    policy: RetryPolicy = changes.get("retry", base.retry)
    if "retry" not in changes and policy == DEFAULT_RETRY:
        changes["retry"] = msgspec.structs.replace(policy, max_attempts=1)
    elif policy.max_attempts != 1:
        raise InvalidConfiguration(
            "Expected an activity with at_most_once=True to have one attempt, but its retry allows "
            f"{policy.max_attempts or 'any number'}. Leave retry out; let the workflow decide what follows from a failure."
        )


def check_errors(errors: Sequence[type[Exception]], name: str) -> tuple[type[Exception], ...]:
    """What an activity was given as `errors=[…]`. Raises InvalidDefinition for what is no class of exceptions."""
    given: Any = errors
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    for one in found:
        if not (isinstance(one, type) and issubclass(one, Exception)):
            raise InvalidDefinition(
                f"Expected errors=[…] of activity '{name}' to hold classes of exceptions, but found {one!r}. "
                "Write for instance errors=[CardDeclined]."
            )
    return found


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
    if chosen is Executor.PROCESS:
        check_processable(function, name)
    if chosen is Executor.PROCESS and "<locals>" in getattr(function, "__qualname__", "<locals>"):
        raise InvalidDefinition(
            f"Expected activity '{name}' to run in a process, but it is defined inside of a function, where another process "
            "cannot find it. Move it to the level of its module."
        )
    return chosen


def unwrap_method(function: Any) -> Any:
    """The function in a classmethod or staticmethod; any other as it is."""
    return function.__func__ if isinstance(function, classmethod | staticmethod) else function


def check_processable(function: Callable[..., Any], name: str) -> None:
    """Raises InvalidDefinition for a method of an object: another process has no such object."""
    if isinstance(function, MethodType) and not isinstance(function.__self__, type):
        raise InvalidDefinition(
            f"Expected activity '{name}' to run in a process, but it is a method, whose object is in this process alone. "
            "Make it a function at the level of its module or a static method, or leave executor='process' out."
        )


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
            raise _explain_stranger(activity)
        if activity.binding is Binding.OBJECT:
            cls = describe_function(activity.function).partition(" ")[0].rpartition(".")[0]
            raise InvalidDefinition(
                "Expected every activity given to the engine to be a function or to have its object, but "
                f"'{activity.name}' is a method of {cls} without one. Write activities=[*collect({cls}(…))]."
            )
        if activity.executor is Executor.PROCESS:
            check_processable(activity.function, activity.name)
        other = found.setdefault(activity.name, activity)
        if other.function != activity.function:  # methods are equal if they are of the same object
            raise DuplicateName(
                f"Expected each activity to have its own name, but two are called '{activity.name}': "
                f"{describe_function(other.function)} and {describe_function(activity.function)}. "
                "Rename one: @activity(name='…')."
            )
    return found


def _explain_stranger(given: Any) -> InvalidDefinition:
    """Why something that was given to an engine as an activity is none, and what to do."""
    expected = "Expected every activity given to the engine to be decorated with @activity, "
    if isinstance(getattr(given, "__func__", None), Activity):
        name = given.__func__.name
        return InvalidDefinition(
            f"{expected}but @classmethod stands above it at '{name}'. Write @activity above @classmethod."
        )
    if _has_activities(type(given)):
        name = type(given).__name__
        return InvalidDefinition(f"{expected}but found an object of {name}. Write activities=[*collect({name.lower()})].")
    if isinstance(given, type) and _has_activities(given):
        name = given.__name__
        return InvalidDefinition(f"{expected}but found the class {name}. Write activities=[*collect({name}(…))].")
    if getattr(given, "kind", None) == "code":  # a workflow, whose class is above this package
        return InvalidDefinition(f"{expected}but found {given!r}. Pass it in workflows=[…].")
    return InvalidDefinition(f"{expected}but found {getattr(given, '__name__', given)!r}. Add the decorator.")


def _has_activities(cls: type[Any]) -> bool:
    return any(isinstance(one, Activity) for base in cls.__mro__ for one in vars(base).values())
