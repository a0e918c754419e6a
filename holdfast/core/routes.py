"""Routes: texts that say who may take something. Stores compare them whole; only people are told the queue in one.

The route of an execution is made of its queue and its workflow, and of the version of its code where it is pinned to that.
Any node that can interpret a process takes it, whatever its name: the name of the interpreter stands for the workflow there.
The route of an activity is made of its queue and its name. Queues and names are identifiers, which have no tab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from holdfast.core.envelopes import Start
    from holdfast.core.execution import Execution

_SEPARATOR: Final = "\t"
PROCESS_ROUTE_NAME: Final = "bpmn/1"
"""What stands for the workflow in the routes of deployed processes: the interpreter, and the generation of its records."""


def make_route(queue: str, name: str) -> str:
    """The route of an activity, or of a start or execution that every version of its workflow may take."""
    return f"{queue}{_SEPARATOR}{name}"


def make_pinned_route(queue: str, workflow: str, version: str) -> str:
    """The route of a start or execution that only one version of its workflow may take."""
    return f"{queue}{_SEPARATOR}{workflow}{_SEPARATOR}{version}"


def find_route(execution: Execution) -> str:
    """The route of an execution as it now is."""
    details = execution.details
    if details.route_name:
        return make_route(execution.queue, details.route_name)
    if details.pinned:
        return make_pinned_route(execution.queue, execution.workflow, execution.code_version)
    return f"{execution.queue}\t{execution.workflow}"  # as make_route does, once for each turn


def find_start_route(start: Start) -> str:
    """The route on which a start waits for whoever takes the first turn."""
    if start.route_name:
        return make_route(start.queue, start.route_name)
    if start.pinned:
        return make_pinned_route(start.queue, start.workflow, start.code_version)
    return make_route(start.queue, start.workflow)


def find_queue(route: str) -> str:
    """The queue in a route, for people; empty where anybody may take it."""
    return route.partition(_SEPARATOR)[0]


class RouteParts(NamedTuple):
    """What a route is made of, for people."""

    queue: str
    name: str
    version: str | None
    """The one version that may take it; None if every version may, or it is the route of an activity."""


def split_route(route: str) -> RouteParts:
    """What a route is made of. To be asked of those that are not empty."""
    queue, _, rest = route.partition(_SEPARATOR)
    name, separator, version = rest.partition(_SEPARATOR)
    return RouteParts(queue, name, version if separator else None)
