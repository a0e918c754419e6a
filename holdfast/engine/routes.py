"""Who takes what on a shared store: the routes that one node claims by, which follow its catalog.

A node takes only what goes by a route of its own: it has the definition, and it serves the queue. All else is left to nodes
that do. What a route is made of says `holdfast.core.routes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.ids import DEFAULT_QUEUE, check_identifier
from holdfast.core.routes import PROCESS_ROUTE_NAME, find_route, make_pinned_route, make_route
from holdfast.errors import InvalidConfiguration

if TYPE_CHECKING:
    from holdfast.activities.definitions import Activity
    from holdfast.core.envelopes import Start
    from holdfast.core.events import ActivityScheduled
    from holdfast.core.execution import Execution
    from holdfast.engine.catalog import Catalog
    from holdfast.store.rows import ExecutionRow, Route

__all__ = ["Routes", "check_queues", "find_route", "make_route"]


class Routes:
    """What one node takes.

    `queues` are those it serves. None: on a store of its own, all; on a shared one the queue 'default', those that its
    activities name, and those in its queue limits.
    """

    def __init__(
        self, catalog: Catalog, queues: Iterable[str] | None, queue_limits: Mapping[str, int], *, exclusive: bool
    ) -> None:
        self._catalog = catalog
        self._activities = catalog.activities
        self._is_exclusive = exclusive
        chosen = None if queues is None else check_queues(queues)
        self.takes_all: Final = exclusive and chosen is None
        self.queues: Final = _find_queues(self._activities.values(), queue_limits) if chosen is None else chosen
        self.offer_routes: Final = frozenset(make_route(queue, name) for queue in self.queues for name in self._activities)
        """The routes by which activities come here that others offer."""
        self.listed: frozenset[Route] = frozenset()
        """The routes by which executions come here, each by name; another thread may read this."""
        self.takes: frozenset[Route] | None = None
        """The routes by which this node claims executions; None: every route."""
        self.refresh()

    def refresh(self) -> None:
        """Follow the catalog, after definitions were added or removed."""
        names = self._catalog.route_names
        processes = (make_route(queue, name) for queue in self.queues for name in names)
        code = (route for queue in self.queues for one in self._catalog for route in one.routes(queue))
        self.listed = frozenset(chain(code, processes))
        self.takes = None if self.takes_all else self.listed

    # --- executions ---

    def may_take(self, route: Route) -> bool:
        """Whether the turns of executions on a route are this node's to take. One without a route is anybody's."""
        return self.takes is None or not route or route in self.takes

    def may_begin(self, start: Start, org: str) -> bool:
        """Whether the first turn of an execution is this node's to take.

        On a store of its own nobody else will have a workflow that is unknown here: it is refused, not left. Nor will others
        know a process that is unknown here, once this node has read what is deployed.
        """
        if self._is_exclusive:
            return self.takes_all or start.queue in self.queues
        if start.route_name:
            return start.route_name in self._catalog.route_names and self.serves(start.queue)
        if start.pinned:
            found = self._catalog.find_version(start.workflow, start.code_version, org)
        else:
            found = self._catalog.find_newest(start.workflow, org)
        return found is not None and self.serves(start.queue)

    def fits(self, execution: Execution) -> bool:
        """Whether the definitions that are here may take an execution's turns, if any of them is its own."""
        if execution.details.pinned and self._catalog.find_for(execution) is None:
            return False
        return self.takes is None or find_route(execution) in self.takes

    def has_definition(self, execution: Execution) -> bool:
        """Whether the definition that takes an execution's turns is here, whatever its queue."""
        return self._catalog.find_for(execution) is not None

    def has_code(self, row: ExecutionRow) -> bool:
        """Whether the definition that takes an execution's turns is here, by its row alone."""
        if row.route == make_route(row.queue, PROCESS_ROUTE_NAME):
            return bool(self._catalog.route_names) and self._has_process(row)
        if row.route == make_pinned_route(row.queue, row.workflow, row.code_version):
            return self._catalog.find_version(row.workflow, row.code_version, row.org) is not None
        return self._catalog.find_newest(row.workflow, row.org) is not None

    def _has_process(self, row: ExecutionRow) -> bool:
        """Whether a process is known here: by the version that its execution has, or that it gets when it begins."""
        known = self._catalog.find_version(row.workflow, row.code_version, row.org)
        return known is not None or self._catalog.find_newest(row.workflow, row.org) is not None

    def serves(self, queue: str) -> bool:
        """Whether this node takes work from a queue."""
        return self.takes_all or queue in self.queues

    def version_of(self, workflow: str, org: str) -> str | None:
        """The newest version of a workflow here; None if the workflow is not here."""
        definition = self._catalog.find_newest(workflow, org)
        return None if definition is None else definition.version

    def version_for(self, execution: Execution) -> str | None:
        """The version of the definition that takes an execution's turns here; None if it is not here."""
        definition = self._catalog.find_for(execution)
        return None if definition is None else definition.version

    # --- activities ---

    def may_run(self, event: ActivityScheduled) -> bool:
        """Whether an activity can run here.

        On a store of its own nobody else will have one that is unknown here: it is refused, not left. But the job of a
        process, whose diagram may come before the code, waits for it.
        """
        if self._is_exclusive:
            return self.serves(event.options.queue) and (event.options.job is None or event.name in self._activities)
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
