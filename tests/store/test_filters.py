"""Filters and orders: every store selects and orders as the model does, page by page."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.execution import Details
from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.core.references import BusinessReference
from holdfast.core.searchable_values import find_searchable
from holdfast.filters.parser import parse_filter, parse_order
from holdfast.filters.syntax import NEWEST_FIRST, Order
from holdfast.store import listing
from holdfast.store.attributes import list_changes
from holdfast.store.contract import ExecutionFilter, Store, TurnWrite
from holdfast.store.rows import ExecutionRow
from tests.store.builders import NOW, ORG, OTHER, commit, id_of, make_row, make_start, make_turn
from tests.store.conftest import BACKENDS, Place

STATES = st.dictionaries(
    st.sampled_from(["amount", "step", "a key"]),
    st.sampled_from(
        [0, 1, 2.5, 100, -3, 10**30, True, False, "paid", "pay", "", "2026-01-01", "2026-01-01T02:00:00+02:00", "é"]
    ),
    max_size=3,
)
VALUES = ["0", "1", "2.5", "-3", "1e30", "true", "'paid'", "'pa'", "''", "'2026-01-01'", "'2026-01-01T00:00:00Z'", "'é'"]
TESTS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["state.amount", "state.step", 'state."a key"']),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.sampled_from(VALUES),
    ),
    st.builds("state.{} IN ({}, {})".format, st.sampled_from(["amount", "step"]), *[st.sampled_from(VALUES)] * 2),
    st.sampled_from(
        [
            "HAS state.amount",
            "HAS closed",
            "state.step STARTS WITH 'pa'",
            "state.step STARTS WITH '2026'",
            "status = 'completed'",
            "status IN ('running', 'failed')",
            "status != 'running'",
            "workflow = 'bill'",
            "workflow_id STARTS WITH 'order-1'",
            "workflow_id = 'order-2'",
            "workflow_id IN ('order-1', 'order-3')",
            f"execution_id IN ('{id_of(2)}', '{id_of(4)}', 'none')",
            "parent_execution_id IN ('p', 'q')",
            "state.amount > 0 AND state.amount <= 100",
            "metadata.by NOT IN ('bob')",
            f"execution_id = '{id_of(3)}'",
            "queue = 'default'",
            "parent_execution_id = 'p'",
            "HAS parent_execution_id",
            "metadata.by = 'ann'",
            "metadata.by > 'ann'",
            "reference = 'R1'",
            "reference >= 'R2'",
            "reference.policy = 'P'",
            "HAS reference.policy",
            f"created >= '{'2026-01-01'}'",
            "closed < '2100-01-01'",
        ]
    ),
)
FILTERS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT {}".format, inner),
        st.builds("{} AND {}".format, TESTS, TESTS),
    ),
    max_leaves=5,
)
ORDERS = st.one_of(
    st.none(),
    st.builds(
        "{} {}".format,
        st.sampled_from(["created", "closed", "state.amount", "state.step", "metadata.by", "reference", "reference.policy"]),
        st.sampled_from(["asc", "desc"]),
    ),
)
ROWS = st.fixed_dictionaries(
    {
        "state": STATES,
        "changed": st.one_of(st.none(), STATES),
        "by": st.sampled_from([None, "ann", "bob"]),
        "reference": st.sampled_from([None, ("R1", {}), ("R2", {"policy": "P"}), ("R3", {"policy": "Q", "x": ""})]),
        "columns": st.fixed_dictionaries(
            {
                "workflow": st.sampled_from(["order", "bill"]),
                "status": st.sampled_from([Status.RUNNING, Status.COMPLETED, Status.FAILED]),
                "parent_id": st.sampled_from([None, "p"]),
                "org": st.sampled_from([ORG, ORG, ORG, OTHER]),
            }
        ),
    }
)


def make_details(spec: dict[str, Any], state: dict[str, Any]) -> bytes:
    reference = spec["reference"]
    return codec.encode(
        Details(
            metadata={} if spec["by"] is None else {"by": spec["by"]},
            searchable=find_searchable(state, None),
            reference=None if reference is None else BusinessReference(*reference),
        )
    )


def make_turns(number: int, spec: dict[str, Any]) -> list[TurnWrite]:
    """The start of an execution, which may close at once, and a turn that changes its state."""
    columns, closed_at = dict(spec["columns"]), None
    if columns["status"] is not Status.RUNNING:
        closed_at = NOW + number % 3 * SECOND
    row = make_row(number, **columns, closed_at=closed_at, details=make_details(spec, spec["state"]))
    turns = [make_start(row)]
    if spec["changed"] is not None and closed_at is None:
        turn = make_turn(row)
        turn.row = replace(turn.row, details=make_details(spec, spec["changed"]))
        turn.attributes = list_changes(find_searchable(spec["state"], None), find_searchable(spec["changed"], None))
        turns.append(turn)
    return turns


async def read_pages(store: Store, query: ExecutionFilter) -> list[str]:
    """The execution ids of all pages."""
    found: list[str] = []
    for _ in range(50):
        page = await store.search_executions(query)
        found += [row.execution_id for row in page.rows]
        if page.end is None:
            return found
        query = replace(query, before=page.end, before_value=page.end_value)
    raise AssertionError("the pages do not end")


async def compare(specs: list[dict[str, Any]], asked: list[tuple[str, str | None]], place: Place) -> None:
    backends = [BACKENDS[name](place) for name in ("memory", "sqlite", "postgres")]
    try:
        stores = [await backend.connect() for backend in backends]
        for number, spec in enumerate(specs, 1):
            for turn in make_turns(number, spec):
                for store in stores:
                    await commit(store, turn)
        for where, order_by in asked:
            order = NEWEST_FIRST if order_by is None else parse_order(order_by)
            query = ExecutionFilter(ORG, where=parse_filter(where), order=order, limit=2, scan=100)
            told = [await read_pages(store, query) for store in stores]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(listing, "FEW", 0)  # what many executions have is walked through
                told += [await read_pages(store, query) for store in stores[1:]]
            assert all(one == told[0] for one in told), (where, order_by)
            whole = [await read_pages(store, replace(query, limit=100, scan=1)) for store in stores]
            assert all(set(one) == set(told[0]) and len(one) == len(told[0]) for one in whole), (where, order_by)
            counts = [await store.count_executions(replace(query, limit=100, order=Order())) for store in stores]
            assert counts[0] == counts[1] == counts[2]
            assert counts[0].total == len(told[0])
            assert not counts[0].is_given_up
    finally:
        for backend in backends:
            await backend.close()


@given(
    specs=st.lists(ROWS, min_size=3, max_size=12),
    asked=st.lists(st.tuples(FILTERS, ORDERS), min_size=10, max_size=20),
)
@settings(deadline=None, max_examples=12)
def test_L3_every_store_selects_and_orders_alike(
    find_server: Callable[[], str], specs: list[dict[str, Any]], asked: list[tuple[str, str | None]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(specs, asked, Place(Path(folder), find_server)))


# --- by example -----------------------------------------------------------------------------------------------------------


def make_stated(number: int, **state: Any) -> ExecutionRow:
    return make_row(number, details=codec.encode(Details(searchable=find_searchable(state, None))))


async def ask(store: Store, where: str | None, order_by: str | None = None, **options: Any) -> list[int]:
    order = NEWEST_FIRST if order_by is None else parse_order(order_by)
    query = ExecutionFilter(ORG, where=None if where is None else parse_filter(where), order=order, **options)
    return [int(row.execution_id[-12:], 16) for row in await store.list_executions(query)]


async def test_L1_state_is_found_as_the_turn_left_it(store: Store) -> None:
    row = make_stated(1, step="new", amount=5)
    await commit(store, make_start(row))
    turn = make_turn(row)
    after = make_stated(1, step="paid")
    turn.row = replace(turn.row, details=after.details)
    turn.attributes = list_changes(find_searchable({"step": "new", "amount": 5}, None), {"step": "spaid"})

    await commit(store, turn)

    assert await ask(store, "state.step = 'paid'") == [1]
    assert await ask(store, "state.step = 'new'") == []
    assert await ask(store, "HAS state.amount") == []


async def test_L1_a_lost_turn_changes_no_state(store: Store) -> None:
    row = make_stated(1, step="new")
    await commit(store, make_start(row))
    turn = make_turn(replace(row, state_version=7))
    turn.attributes = list_changes({"step": "snew"}, {"step": "slost"})

    lost = await commit(store, turn)

    assert lost == {row.execution_id}
    assert await ask(store, "state.step = 'new'") == [1]
    assert await ask(store, "state.step = 'lost'") == []


async def test_I5_states_and_references_of_other_orgs_are_not_found(store: Store) -> None:
    reference = codec.encode(Details(reference=BusinessReference("R1", {"p": "1"}), searchable={"step": "spaid"}))
    await commit(store, make_start(make_row(1, details=reference)), make_start(make_row(2, org=OTHER, details=reference)))

    for where in ("reference = 'R1'", "reference.p = '1'", "state.step = 'paid'"):
        assert await ask(store, where) == [1]
        assert await ask(store, f"HAS {where.split(' ')[0]}", "state.step") == [1]


async def test_L2_pages_neither_repeat_nor_skip_while_others_come(store: Store) -> None:
    await commit(store, *[make_start(make_stated(number, amount=number % 3)) for number in range(10, 20)])
    query = ExecutionFilter(ORG, order=parse_order("state.amount"), limit=4)
    first = await store.search_executions(query)

    await commit(store, *[make_start(make_stated(number, amount=number % 3)) for number in (1, 2, 3, 30, 31, 32)])

    rest = await read_pages(store, replace(query, before=first.end, before_value=first.end_value))
    seen = [row.execution_id for row in first.rows] + rest
    assert len(seen) == len(set(seen))
    assert {id_of(number) for number in range(10, 20)} <= set(seen)


async def test_text_that_looks_like_sql_is_only_a_value(store: Store) -> None:
    evil = "x' OR '1'='1"
    await commit(store, make_start(make_stated(1, name=evil)), make_start(make_stated(2, name="x")))

    assert await ask(store, "state.name = '" + evil.replace("'", "''") + "'") == [1]
    assert await ask(store, 'state."a"" OR 1=1 --" = 1') == []


@pytest.mark.parametrize(
    ("prefix", "numbers"),
    [
        ("2026-11-18T09:30:00Z", [3, 1]),
        ("2026-11-18 09:30", [3, 1]),
        ("2026-11-18T10:30:00+01:00", [3, 1]),
        ("2026-11-18T09:30:00", [4, 3, 1]),
        ("2026-11-18T09", [4, 3, 1]),
        ("2026-11-18", [5, 4, 3, 1]),
        ("2026-11-18T00:30:00+01:00", [2]),
        ("2026-11-17T23:30:00Z", [2]),
        ("2026-11-18 09", []),
        ("2026-11-18 ", [5]),
    ],
)
async def test_instant_starts_with_itself_and_with_the_beginning_of_its_full_form(
    store: Store, prefix: str, numbers: list[int]
) -> None:
    at = [
        "2026-11-18T09:30:00Z",
        "2026-11-18T00:30:00+01:00",
        "2026-11-18 09:30",
        "2026-11-18T09:30:00.5Z",
        "2026-11-18 noon",
    ]
    await commit(store, *[make_start(make_stated(number, at=text)) for number, text in enumerate(at, 1)])

    assert await ask(store, f"state.at STARTS WITH '{prefix}'") == numbers
    assert await ask(store, f"NOT state.at STARTS WITH '{prefix}'") == [one for one in range(5, 0, -1) if one not in numbers]
