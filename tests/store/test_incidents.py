"""Rows of open incidents: written by the turn that raises or resolves one, gone with their execution."""

from __future__ import annotations

from typing import Any

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.incidents import IncidentFilter
from tests.store.builders import ORG, OTHER, commit, id_of, make_closing, make_row, make_start, make_turn
from tests.store.definition_builders import make_incident


async def search(store: Store, org: str = ORG, **conditions: Any) -> list[tuple[str, int]]:
    return [row.key for row in await store.incidents.search(IncidentFilter(org, **conditions))]


async def test_P10_incident_is_listed_from_the_commit_that_raises_it_to_the_one_that_resolves_it(store: Store) -> None:
    row, incident = make_row(1), make_incident(3, message="Näh: 'x'")
    start = make_start(row, incidents=[incident, make_incident(4)])

    await commit(store, start)
    raised = await store.incidents.search(IncidentFilter(ORG))
    turn = make_turn(row, incidents=[make_incident(7)], ended_incidents=[3])
    await commit(store, turn)
    resolved = await search(store)

    assert raised == [incident, make_incident(4)]
    assert resolved == [(id_of(1), 4), (id_of(1), 7)]
    assert await store.check() == []


async def test_P10_closing_ends_the_incidents_of_its_execution_alone(store: Store) -> None:
    rows = [make_row(number) for number in (1, 2)]
    await commit(store, *(make_start(row, incidents=[make_incident(1, of=of)]) for of, row in enumerate(rows, 1)))

    await commit(store, make_closing(rows[0], incidents=[make_incident(2)]))

    assert await search(store) == [(id_of(2), 1)]
    assert await store.check() == []


async def test_X2_lost_turn_changes_no_incident(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, incidents=[make_incident(1)]))
    await commit(store, make_turn(row))

    lost = await commit(store, make_turn(row, incidents=[make_incident(2)], ended_incidents=[1]))

    assert lost == {id_of(1)}
    assert await search(store) == [(id_of(1), 1)]


async def test_X2_rolled_back_turn_changes_no_incident(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, incidents=[make_incident(1)]))
    transaction = await store.begin()
    await transaction.write([make_turn(row, incidents=[make_incident(2)], ended_incidents=[1])], UnroutedWrite())
    await transaction.rollback()

    assert await search(store) == [(id_of(1), 1)]


async def test_P10_incidents_are_found_by_what_they_are_about(store: Store) -> None:
    first = [make_incident(1), make_incident(2, element="ship", kind="expression")]
    await commit(store, make_start(make_row(1), incidents=first))
    other = make_incident(1, of=2, workflow="invoice")
    await commit(store, make_start(make_row(2, workflow="invoice"), incidents=[other]))
    everything = [(id_of(1), 1), (id_of(1), 2), (id_of(2), 1)]

    assert await search(store) == everything
    assert await search(store, workflow="invoice") == everything[2:]
    assert await search(store, workflow="order", element="ship") == [everything[1]]
    assert await search(store, execution_id=id_of(1)) == everything[:2]
    assert await search(store, execution_id=id_of(1), workflow="invoice") == []
    assert await search(store, workflow_id="order-1", kind="job") == everything[:1]
    assert await search(store, workflow_id="order-2") == everything[2:]
    assert await search(store, element="charge") == [everything[0], everything[2]]
    assert await search(store, kind="expression") == [everything[1]]


async def test_incidents_come_in_pages_and_are_counted_up_to_a_limit(store: Store) -> None:
    for of in (1, 2):
        await commit(store, make_start(make_row(of), incidents=[make_incident(number, of=of) for number in (1, 2, 10)]))

    pages: list[tuple[str, int]] = []
    while page := await search(store, limit=2, after=pages[-1] if pages else None):
        pages += page

    assert pages == [(id_of(of), number) for of in (1, 2) for number in (1, 2, 10)]
    assert await store.incidents.count(IncidentFilter(ORG)) == 6
    assert await store.incidents.count(IncidentFilter(ORG, limit=4, after=pages[4])) == 4
    assert await store.incidents.count(IncidentFilter(ORG, execution_id=id_of(2))) == 3
    assert await store.incidents.count(IncidentFilter(ORG, workflow="none")) == 0


async def test_I5_incidents_of_another_org_are_not_listed(store: Store) -> None:
    await commit(store, make_start(make_row(1), incidents=[make_incident(1)]))
    theirs = make_incident(1, of=2, org=OTHER, workflow_id="order-1")
    await commit(store, make_start(make_row(2, org=OTHER, workflow_id="order-1"), incidents=[theirs]))

    assert await search(store) == [(id_of(1), 1)]
    assert await search(store, OTHER) == [(id_of(2), 1)]
    for condition in ({"execution_id": id_of(2)}, {"workflow_id": "order-2"}, {"workflow": "invoice"}):
        assert await search(store, **condition) == []
    assert await search(store, workflow_id="order-1") == [(id_of(1), 1)]
    assert await store.incidents.count(IncidentFilter(OTHER)) == 1


async def test_incident_of_an_execution_that_others_closed_is_hidden_and_reported(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, incidents=[make_incident(1)]))

    await store.set_status(ORG, id_of(1), 1, make_closing(row, Status.TERMINATED, events=0).row)

    assert await search(store) == []
    assert await search(store, workflow="order") == []
    assert await search(store, workflow_id="order-1") == []
    assert await search(store, execution_id=id_of(1)) == []
    assert await store.incidents.count(IncidentFilter(ORG)) == 0
    assert await store.check() == [f"incident 1 of execution {id_of(1)}: the execution is terminated"]
