"""Lists of executions, page by page, and counts: what is asked becomes a filter of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict

import msgspec

from holdfast.code.definitions import Workflow
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.instants import from_datetime
from holdfast.core.lifecycle import Status
from holdfast.core.searchable_values import LONGEST_NAME, LONGEST_VALUE
from holdfast.core.shown_values import ShownPage, ShownValue
from holdfast.engine.use_cases.cursors import make_cursor, read_cursor
from holdfast.engine.views import ExecutionInfo
from holdfast.errors import FilterError, InvalidArguments
from holdfast.filters.evaluating import list_fields
from holdfast.filters.parser import parse_filter, parse_order
from holdfast.filters.syntax import Attribute, AttributeKind
from holdfast.store.attributes import is_searchable
from holdfast.store.contract import ExecutionFilter
from holdfast.store.rows import ExecutionPage, StatusCounts

MOST_PER_PAGE: Final = 10_000
MOST_LOOKED_AT: Final = 100_000
"""How many executions one page looks at where no condition has an index."""
MOST_COUNTED: Final = 10_000


class SearchConditions(TypedDict, total=False):
    """Which executions to list or to count: those for which all of these hold."""

    org: str
    status: Status | str | Iterable[Status | str]
    """One status, or several of which any will do."""
    workflow: str | Workflow[..., Any] | None
    workflow_id: str | None
    workflow_id_prefix: str | None
    """How the workflow id begins."""
    parent_execution_id: str | None
    metadata: Mapping[str, str] | None
    """Metadata that the execution has, all of it and with exactly these values."""
    created_after: datetime | None
    """Created at this time or later."""
    created_before: datetime | None
    """Created earlier than this time."""
    closed_after: datetime | None
    closed_before: datetime | None
    where: str | None
    """What else must hold, in the filter language: `"state.amount > 100 AND NOT workflow_id STARTS WITH 'test-'"`."""


class PageOptions(SearchConditions, total=False):
    """Which executions to list, and which page of them."""

    cursor: str | None
    """The `cursor` of the page before."""
    before: str | None
    """The last execution id of the page before, where there is no cursor."""
    order_by: str | None
    """By what to order the list: `created`, `closed`, `state.<key>`, `metadata.<key>`, `reference` or `reference.<part>`,
    with `asc` (the default) or `desc`. What has no such value comes last. Default: newest first."""
    limit: int
    """How many executions a page has at most. Default 100."""


class ExecutionList(ShownPage[ExecutionInfo]):
    """A page of executions in the order of the list. `cursor` leads to the next page; it is None if that was all.

    Where no condition has an index, a page is given up after 100,000 executions: it has fewer than `limit` then, or none,
    and a cursor nevertheless.
    """

    items_name = "executions"


class ExecutionCounts(ShownValue, frozen=True, kw_only=True):
    """How many executions there are, by status. Counting ends at 10,000: `is_exact` is False if there are more.

    Where no condition has an index, counting is given up after 100,000 executions were looked at: `is_exact` is False, too.
    """

    by_status: Mapping[str, int]
    total: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.total:,}" if self.is_exact else f"{self.total:,}+"


def make_page_filter(options: PageOptions, searchable: frozenset[str] | None = None) -> ExecutionFilter:
    """The filter of the store for a page. Raises InvalidArguments that says what is wrong.

    `searchable` are the keys of states by which can be searched; None: all.
    """
    _check_names(options, PageOptions.__optional_keys__, "list")
    limit = options.get("limit", 100)
    if type(limit) is not int or not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidArguments(f"Expected limit to be between 1 and 10,000, but it is {limit!r}.")
    before, cursor, order_by = options.get("before"), options.get("cursor"), options.get("order_by")
    if before is not None and cursor is not None:
        raise InvalidArguments("Expected cursor or before, but both are given. Pass the cursor of the page before.")
    if before is not None and order_by is not None:
        raise InvalidArguments("Expected a cursor with order_by, but before is given. Pass the cursor of the page before.")
    query = make_filter(options, before=before, limit=limit, scan=MOST_LOOKED_AT)
    if order_by is not None:
        query = msgspec.structs.replace(query, order=parse_order(order_by))
    _check_searchable(query, searchable)
    return query if cursor is None else read_cursor(cursor, query)


def make_count_filter(conditions: SearchConditions, searchable: frozenset[str] | None = None) -> ExecutionFilter:
    """The filter of the store for a count, which looks for one more than is counted."""
    _check_names(conditions, SearchConditions.__optional_keys__, "count")
    query = make_filter(conditions, before=None, limit=MOST_COUNTED + 1, scan=MOST_LOOKED_AT)
    _check_searchable(query, searchable)
    return query


def _check_searchable(query: ExecutionFilter, searchable: frozenset[str] | None) -> None:
    if searchable is None:
        return
    for field in [*list_fields(query.where), query.order.field]:
        if isinstance(field, Attribute) and field.kind is AttributeKind.STATE and field.name not in searchable:
            known = ", ".join(sorted(searchable)) or "none"
            raise FilterError(
                f"Expected to search by keys of states that are searchable, but '{field.name}' is not: this engine encodes "
                f"states, or names the keys that are ({known}). Name it in the engine's searchable_state, which stores its "
                "values as plain text."
            )


def _check_names(given: Mapping[str, Any], known: Collection[str], verb: str) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise InvalidArguments(
            f"Expected conditions that {verb} knows, but {unknown[0]!r} is none. They are: {', '.join(sorted(known))}."
        )


def make_filter(conditions: SearchConditions, *, before: str | None, limit: int, scan: int) -> ExecutionFilter:
    """The filter of the store for conditions, each of which is checked."""
    workflow, where = conditions.get("workflow"), conditions.get("where")
    prefix = conditions.get("workflow_id_prefix")
    texts = {name: conditions.get(name) for name in ("workflow_id_prefix", "workflow_id", "parent_execution_id")}
    texts |= {"before": before, "workflow": workflow.name if isinstance(workflow, Workflow) else workflow}
    for name, value in texts.items():
        if value is not None and not (isinstance(value, str) and _is_storable(value)):
            raise InvalidArguments(f"Expected {name} to be text, but it is {value!r}. Pass one name or id.")
    return ExecutionFilter(
        check_identifier(conditions.get("org", DEFAULT_ORG), "the org"),
        _read_statuses(conditions.get("status", ())),
        workflow.name if isinstance(workflow, Workflow) else workflow,
        conditions.get("workflow_id"),
        conditions.get("parent_execution_id"),
        before,
        limit,
        workflow_id_prefix=prefix,
        metadata=_check_metadata(conditions.get("metadata")),
        created_after=_read_time(conditions.get("created_after"), "created_after"),
        created_before=_read_time(conditions.get("created_before"), "created_before"),
        closed_after=_read_time(conditions.get("closed_after"), "closed_after"),
        closed_before=_read_time(conditions.get("closed_before"), "closed_before"),
        where=None if where is None else parse_filter(where),
        scan=scan,
    )


def make_list(infos: Iterable[ExecutionInfo], found: ExecutionPage, query: ExecutionFilter) -> ExecutionList:
    """A page for the caller, and the cursor that leads to the next one."""
    page = ExecutionList(infos)
    page.cursor = make_cursor(found, query)
    return page


def make_counts(counted: StatusCounts) -> ExecutionCounts:
    """What the store counted, for the caller."""
    is_exact = counted.total <= MOST_COUNTED and not counted.is_given_up
    return ExecutionCounts(by_status=counted.by_status, total=min(counted.total, MOST_COUNTED), is_exact=is_exact)


def _read_statuses(status: Status | str | Iterable[Status | str]) -> list[Status]:
    try:
        return [Status(one) for one in ([status] if isinstance(status, str) else status)]
    except (ValueError, TypeError):
        raise InvalidArguments(f"Expected status to be among {', '.join(Status)}, but it is {status!r}.") from None


def _read_time(value: datetime | None, name: str) -> int | None:
    return None if value is None else from_datetime(value, name)


def _is_storable(text: str) -> bool:
    """Whether every database can compare with a text: one with half a surrogate pair or NUL reaches none, or not all."""
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


def _check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    if metadata is None:
        return {}
    try:
        found = msgspec.convert(dict(metadata), dict[str, str])
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidArguments(
            f"Expected metadata to map text to text, but {error}. Pass for instance {{'customer': 'ann'}}."
        ) from None
    for name, value in found.items():
        if not (_is_storable(name) and _is_storable(value)):
            raise InvalidArguments(f"Expected metadata of valid Unicode without NUL, but found {name!r}: {value!r:.60}.")
        if not is_searchable(name, value):
            raise InvalidArguments(
                f"Expected to search for metadata with names of up to {LONGEST_NAME} bytes and values of up to "
                f"{LONGEST_VALUE}, but '{name[:50]}' is longer. Longer ones are kept and shown, but no search finds them."
            )
    return found
