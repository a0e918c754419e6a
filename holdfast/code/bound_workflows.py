"""A workflow with its arguments, as one value: what `Workflow.bind` gives to whatever starts executions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from holdfast.core.ids import DEFAULT_ORG
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow

R_co = TypeVar("R_co", covariant=True)


class BoundWorkflow(Generic[R_co]):
    """A workflow with its arguments, made by `order.bind(1, customer="ann")`. Everything that starts a workflow takes it.

    It stands for the workflow and all its arguments, so that options beside it are options only, whatever the parameters of
    the workflow are called, and type checkers see both. Holdfast itself makes it of a name too, where options cannot
    be meant as arguments: on the command line, and for callers that have bound them.
    """

    __slots__ = ("args", "kwargs", "workflow")

    def __init__(self, workflow: Workflow[..., R_co] | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.workflow = workflow
        self.args = tuple(args)
        self.kwargs = dict(kwargs)

    def __repr__(self) -> str:
        named = [f"{name}={value!r}" for name, value in self.kwargs.items()]
        name = self.workflow if isinstance(self.workflow, str) else self.workflow.name
        return f"<workflow {name}({', '.join([*map(repr, self.args), *named])})>"


class Call(NamedTuple):
    """A workflow and its arguments, each for itself."""

    workflow: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


def unbind(workflow: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """The workflow and the arguments of a call that may have been given as one. Raises InvalidArguments if they are both."""
    if not isinstance(workflow, BoundWorkflow):
        return Call(workflow, args, kwargs)
    if args or kwargs:
        extra = f"{len(args)} more by position" if args else f"{sorted(kwargs)} too"
        raise InvalidArguments(
            f"Expected no arguments beside those of {workflow!r}, but got {extra}. Pass all of them to bind(…)."
        )
    return Call(workflow.workflow, workflow.args, workflow.kwargs)


def list_options(call: Call, workflow: Any, options: Collection[str], org: str) -> Collection[str]:
    """The names of the options of a call that may be meant as arguments: none beside a bound workflow."""
    if call.workflow is not workflow:
        return ()
    return options if org == DEFAULT_ORG else [*options, "org"]


def check_call(call: Call, options: Collection[str]) -> None:
    """Refuse what may be misunderstood in a call of a workflow by its function; `options`: the names of those given.

    Raises InvalidArguments for arguments by position that can be given by name only, and as `check_options`.
    """
    signature = getattr(call.workflow, "signature", None)
    if signature is not None:
        if len(call.args) > signature.most_positional:
            signature.refuse_positions(call.args)
        check_options(signature.what, signature.names[len(call.args) :], options)


def check_options(what: str, parameters: Sequence[str], options: Collection[str], *, can_bind: bool = True) -> None:
    """Raises InvalidArguments for an option that may be meant as the argument of a parameter, which is not given so far.

    Calls with a bound workflow have no such parameters: it has all its arguments. A name alone cannot be bound.
    """
    for name in parameters:
        if name in options and name != "workflow_input":  # an argument either way
            binding = (
                f"Bind the arguments: with bind({name}=…) it is the argument, and beside bind(…) the option. An argument "
                "can also be given by position."
            )
            remedy = binding if can_bind else "Give the argument by position: then the keyword is the option."
            raise InvalidArguments(
                f"Expected {name}=… to be an argument of {what} or an option of the call, but it may be either. {remedy}"
            )
