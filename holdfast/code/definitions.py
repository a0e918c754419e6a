"""What `@workflow` makes of an async function: a workflow with a name, a version, a signature and its checks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

import msgspec

from holdfast.activities.definitions import Activity
from holdfast.code import deterministic_asyncio, guard
from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.core.ids import DEFAULT_QUEUE, check_identifier
from holdfast.core.input_schemas import InputSchema, make_input_schema
from holdfast.core.payloads import Payload, Strictness, describe_hint
from holdfast.core.routes import make_pinned_route, make_route
from holdfast.core.signatures import Signature, describe_function, is_payload_hint
from holdfast.errors import InvalidConfiguration, InvalidDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holdfast.code.context import Context
    from holdfast.code.program import CodeProgram
    from holdfast.core.definition import Definition
    from holdfast.core.execution import Execution
    from holdfast.core.program_limits import ProgramLimits
    from holdfast.core.publications import StartTrigger
    from holdfast.core.retry import RetryPolicy

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Versioning(StrEnum):
    """Which version of a workflow may go on with an execution that another version began."""

    LATEST = "latest"
    """The newest version that the node has which takes the turn."""
    PINNED = "pinned"
    """Only the version that took the execution's first turn."""


class StartedWith(msgspec.Struct, frozen=True, gc=False):
    """What an execution was started with that its first event need not tell."""

    queue: str = DEFAULT_QUEUE
    metadata: Mapping[str, str] = MappingProxyType({})


NOTHING_SPECIAL: Final = StartedWith()


class Decorated:
    """Nothing is one: it tells type checkers a `Workflow` from a function that was not decorated."""


class Workflow(Generic[P, R_co]):
    """One version of a workflow that is written as an async function, whose first parameter is the context.

    It is a `holdfast.core.definition.Definition`.
    """

    kind: Final = "code"
    org: Final[str | None] = None
    route_name: Final = ""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        version: str = "",
        versioning: Versioning = Versioning.LATEST,
        retry: RetryPolicy | None = None,
        starts_on: Sequence[StartTrigger] = (),
    ) -> None:
        self.name = check_identifier(name, "the name of a workflow")
        self.version = version
        self.versioning = versioning
        self.is_pinned = versioning is Versioning.PINNED
        """Whether executions that this version begins stay with it."""
        self.retry = retry
        """How failed runs are retried, where a start does not say; None: they are not."""
        self.starts_on = tuple(starts_on)
        """The messages and broadcast signals that start it."""
        self.function = _check_workflow(function, name)
        self.signature = Signature(function, f"workflow '{name}'", skip=1)
        _check_context(self.signature, name)
        self.__doc__ = function.__doc__

    if TYPE_CHECKING:  # so that the guard says what is wrong with a call without a context, not Python

        def __call__(self, ctx: Context | Decorated, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Call the function itself, for unit tests of its logic; or as a part of another workflow, with its context."""
            if guard.is_active() and not any(isinstance(one, _find_context_class()) for one in (*args, *kwargs.values())):
                guard.check_direct_call(f"workflow '{self.name}'", f"Write `await ctx.run_child({self.name}, …)`.")
            return self.function(*args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundWorkflow[R_co]:
        """The workflow with its arguments, for whatever starts it: `engine.start(order.bind(1, customer="ann"), queue="q")`.

        So arguments by name and options can be given together, also where they have the same names, and type checkers see
        all of them. Raises InvalidArguments if these are not the workflow's parameters.
        """
        self.signature.check_names(args, kwargs)
        return BoundWorkflow(self, args, kwargs)

    @property
    def result_hint(self) -> Any:
        """The type of the result, by the function's return hint."""
        return self.signature.result_hint

    @property
    def parameters(self) -> Sequence[str]:
        """The names of the arguments that a start takes."""
        return self.signature.names

    @property
    def input_schema(self) -> InputSchema:
        """What a start takes, for callers without the code."""
        return make_input_schema(self.signature)

    def routes(self, queue: str) -> Sequence[str]:
        """Every route by which starts and executions on a queue come to a node that has this version.

        Also a pinned workflow may begin with any version; a start may ask for one whether the workflow is pinned or not.
        """
        if not self.version:
            return (make_route(queue, self.name),)
        return make_route(queue, self.name), make_pinned_route(queue, self.name, self.version)

    def prepare(self) -> None:
        """Guard this process against non-deterministic workflow code, and look for some. Raises InvalidDefinition."""
        guard.install()
        deterministic_asyncio.install()
        found = guard.scan(self.function)
        if found:
            listing = "\n  ".join(found)
            raise InvalidDefinition(
                f"Expected workflow '{self.name}' to be deterministic, but its code is not:\n  {listing}"
            )

    def is_same_as(self, other: Definition) -> bool:
        """Whether another definition is of the same function."""
        return isinstance(other, Workflow) and other.function is self.function

    def encode_input(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int, *, strictness: Strictness = Strictness.STRICT
    ) -> Payload:
        """The arguments of a start as history records them. Raises InvalidArguments, EncodingError or PayloadTooLarge."""
        encoded = self.signature.encode_arguments(args, kwargs, limit, strictness=strictness)
        self.signature.check_arguments(encoded)
        return encoded

    def make_program(self, execution: Execution, limits: ProgramLimits) -> CodeProgram:
        """The program of an execution before its first event, which keeps within these limits."""
        return _find_program_class()(
            self, execution.org, execution.execution_id, limits, StartedWith(execution.queue, execution.details.metadata)
        )

    def describe(self) -> str:
        """The function's qualified name, with its file and line."""
        return describe_function(self.function)

    def __repr__(self) -> str:
        return f"<workflow {self.name!r}>"


@functools.cache
def _find_program_class() -> type[CodeProgram]:
    """The class of programs: found when the first is made, since it imports the context, which imports this module."""
    from holdfast.code.program import CodeProgram  # noqa: PLC0415

    return CodeProgram


@functools.cache
def _find_context_class() -> type[Any]:
    """The class of contexts: found when it is needed, for the same reason."""
    from holdfast.code.context import Context  # noqa: PLC0415

    return Context


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


def check_workflows(workflows: Iterable[Workflow[..., Any]]) -> Iterator[Workflow[..., Any]]:
    """What an engine was given as its workflows, one by one. Raises InvalidDefinition for what is no workflow."""
    given: object = workflows
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidDefinition(f"Expected workflows=… to be a list, but it is {given!r}. Write workflows=[…].")
    return map(check_workflow, workflows)


def check_workflow(workflow: Workflow[..., Any]) -> Workflow[..., Any]:
    """What an engine was given as a workflow. Raises InvalidDefinition if it is none."""
    given: object = workflow
    if not isinstance(given, Workflow):
        remedy = "Pass it in activities=[…]." if isinstance(given, Activity) else "Add the decorator."
        raise InvalidDefinition(
            "Expected every workflow given to the engine to be decorated with @workflow, "
            f"but found {getattr(given, '__name__', given)!r}. {remedy}"
        )
    return workflow


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


def _check_context(signature: Signature, name: str) -> None:
    """See that the context was not forgotten: the first parameter has no hint of an argument. Raises InvalidDefinition."""
    [(first, hint)] = signature.skipped
    if is_payload_hint(hint):
        shown = describe_hint(hint)
        raise InvalidDefinition(
            f"Expected workflow '{name}' to take the context as its first parameter, but '{first}' is {shown}. "
            f"Write `async def {name}(ctx: Context, {first}: {shown}, …)`."
        )
