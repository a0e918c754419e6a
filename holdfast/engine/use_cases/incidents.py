"""Open incidents of processes: lists of them, and how many there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core.ids import check_identifier
from holdfast.engine.incident_views import IncidentList, to_incident
from holdfast.errors import InvalidArguments
from holdfast.store.incidents import IncidentFilter, IncidentKey

if TYPE_CHECKING:
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.contract import Store

MOST_PER_PAGE: Final = 10_000
MOST_COUNTED: Final = 10_000
"""Beyond so many they are not counted."""
LONGEST_CONDITION: Final = 1_000
_CURSOR: Final = re.compile(r"i1\.([0-9a-z-]{1,64})\.([0-9]{1,18})")


class IncidentConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Which open incidents somebody asks for; None: whichever."""

    org: str
    workflow: str | None = None
    target: str | None = None
    element: str | None = None
    kind: str | None = None


class IncidentQueries:
    """Asks a store for open incidents."""

    def __init__(self, store: Store, delivery: Delivery) -> None:
        self._store = store
        self._delivery = delivery

    async def list(self, conditions: IncidentConditions, limit: int, cursor: str | None) -> IncidentList:
        """A page of incidents. Raises InvalidArguments, InvalidIdentifier or ExecutionNotFound."""
        if type(limit) is not int or not 1 <= limit <= MOST_PER_PAGE:
            raise InvalidArguments(f"Expected limit to be between 1 and {MOST_PER_PAGE:,}, but it is {limit!r}.")
        after = None if cursor is None else _read_cursor(cursor)
        query = msgspec.structs.replace(await self._make_filter(conditions), after=after, limit=limit + 1)
        rows = await self._store.incidents.search(query)
        page = IncidentList(map(to_incident, rows[:limit]))
        if len(rows) > limit:
            page.cursor = f"i1.{page[-1].execution_id}.{page[-1].number}"
        return page

    async def count(self, conditions: IncidentConditions) -> int:
        """How many incidents there are, up to 10,000. Raises as `list` does."""
        query = msgspec.structs.replace(await self._make_filter(conditions), limit=MOST_COUNTED)
        return await self._store.incidents.count(query)

    async def _make_filter(self, conditions: IncidentConditions) -> IncidentFilter:
        check_identifier(conditions.org, "the org")
        for name in ("workflow", "element", "kind"):
            _check_condition(name, getattr(conditions, name))
        execution_id = None
        if conditions.target is not None:
            check_identifier(conditions.target, "the id of an execution")
            row = await self._delivery.find_or_raise(conditions.org, conditions.target, "list the incidents of")
            execution_id = row.execution_id
        return IncidentFilter(
            org=conditions.org,
            workflow=conditions.workflow,
            execution_id=execution_id,
            element=conditions.element,
            kind=conditions.kind,
        )


def _check_condition(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_CONDITION or "\0" in value:
        raise InvalidArguments(f"Expected {name}=… of a list of incidents to be a name, but it is {value!r:.100}.")


def _read_cursor(cursor: Any) -> IncidentKey:
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None:
        raise InvalidArguments(
            f"Expected a cursor that a list of incidents returned, but it is {cursor!r:.100}. Pass `page.cursor` unchanged."
        )
    return found[1], int(found[2])
