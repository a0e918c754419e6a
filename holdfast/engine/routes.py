"""Who takes what on a shared store: routes, which the store compares and nobody else takes apart.

The route of an execution is made of its queue and its workflow, and of the version of its code where that is pinned. The
route of an activity is made of its queue and its name. A node takes only what goes by a route of its own: it has the code,
and it serves the queue. All else is left to nodes that do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.code.definitions import Versioning
from holdfast.core.ids import DEFAULT_QUEUE, check_identifier
from holdfast.errors import InvalidConfiguration
from holdfast.store.contract import Route

if TYPE_CHECKING:
    from holdfast.code.definitions import Activity, Workflow
    from holdfast.core.envelopes import Start
    from holdfast.core.events import ActivityScheduled
    from holdfast.core.execution import Execution
    from holdfast.engine.registry import Registry

_SEPARATOR: Final = "\t"
"""No identifier has one."""


def make_route(queue: str, name: str) -> Route:
    """The route of an activity, of a start, and of an execution whoever has its workflow may take."""
    return f"{queue}{_SEPARATOR}{name}"


def make_pinned_route(queue: str, workflow: str, version: str) -> Route:
    """The route of an execution that only one version of its code may take."""
    return f"{queue}{_SEPARATOR}{workflow}{_SEPARATOR}{version}"


def find_route(execution: Execution) -> Route:
    """The route of an execution as it now is."""
    if execution.details.pinned:
        return make_pinned_route(execution.queue, execution.workflow, execution.code_version)
    return f"{execution.queue}\t{execution.workflow}"  # as make_route does, once for each turn


class Routes:
    """What one node takes.

    `queues` are those it serves. None: on a store of its own, all; on a shared one the queue 'default', those that its
    activities name, and those in its queue limits.
    """

    def __init__(
        self, registry: Registry, queues: Iterable[str] | None, queue_limits: Mapping[str, int], *, exclusive: bool
    ) -> None:
        self._workflows = registry.workflows
        self._activities = registry.activities
        self._is_exclusive = exclusive
        chosen = None if queues is None else check_queues(queues)
        self.takes_all: Final = exclusive and chosen is None
        served = _find_queues(self._activities.values(), queue_limits) if chosen is None else chosen
        self.queues: Final = served
        takes = frozenset(route for queue in served for one in self._workflows.values() for route in _routes_of(queue, one))
        self.listed: Final = takes
        """The routes by which executions come here, by name."""
        self.takes: Final[frozenset[Route] | None] = None if self.takes_all else takes
        """The same for a claim; None: everything."""
        self.offers: Final = frozenset(make_route(queue, name) for queue in served for name in self._activities)
        """The routes by which activities come here that others offer."""

    # --- executions ---

    def may_take(self, route: Route) -> bool:
        """Whether the turns of executions on a route are this node's to take. One without a route is anybody's."""
        return self.takes is None or not route or route in self.takes

    def may_begin(self, start: Start) -> bool:
        """Whether the first turn of an execution is this node's to take.

        On a store of its own nobody else will have a workflow that is unknown here: it is refused, not left.
        """
        if self._is_exclusive:
            return self.takes_all or start.queue in self.queues
        return start.queue in self.queues and start.workflow in self._workflows

    def fits(self, execution: Execution) -> bool:
        """Whether the code that is here may take its turns, if it is here."""
        if execution.details.pinned and execution.code_version != self.version_of(execution.workflow):
            return False
        return self.takes is None or find_route(execution) in self.takes

    def is_pinned(self, workflow: str) -> bool:
        """Whether the executions that begin here stay with the version of their code."""
        definition = self._workflows.get(workflow)
        return definition is not None and definition.versioning is Versioning.PINNED

    def version_of(self, workflow: str) -> str | None:
        """The version of a workflow's code here, if it is here."""
        definition = self._workflows.get(workflow)
        return None if definition is None else definition.version

    # --- activities ---

    def may_run(self, event: ActivityScheduled) -> bool:
        """Whether an activity can run here."""
        if self._is_exclusive:
            return self.takes_all or event.options.queue in self.queues
        return event.name in self._activities and event.options.queue in self.queues


def check_queues(queues: Iterable[str]) -> frozenset[str]:
    """Queues to serve, given by a user. Raises InvalidConfiguration or InvalidIdentifier."""
    if isinstance(queues, str) or not isinstance(queues, Iterable):
        raise InvalidConfiguration(f"Expected queues=… to be a list, but it is {queues!r}. Write queues=['default'].")
    found = frozenset(check_identifier(queue, "the queue in queues=…") for queue in queues)
    if not found:
        raise InvalidConfiguration(
            "Expected queues=… to name at least one queue, but it is empty. Leave it out, or name what this node serves."
        )
    return found


def _find_queues(activities: Iterable[Activity[..., Any]], limits: Mapping[str, int]) -> frozenset[str]:
    return frozenset({DEFAULT_QUEUE, *(one.options.queue for one in activities), *limits})


def _routes_of(queue: str, workflow: Workflow[..., Any]) -> Iterable[Route]:
    """Also a pinned workflow is begun by whoever has it: it is pinned from its first turn on."""
    yield make_route(queue, workflow.name)
    if workflow.versioning is Versioning.PINNED:
        yield make_pinned_route(queue, workflow.name, workflow.version)
