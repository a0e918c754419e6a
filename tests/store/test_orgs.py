"""Organisations never meet: one id, name or key in two of them is two things, whatever is asked."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, ExecutionFilter, Store
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_letter,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_request,
    read_row,
    want,
)

ours, theirs = make_row(1, workflow_id="order"), make_row(2, workflow_id="order", org=OTHER)


@pytest.fixture
async def twins(store: Store) -> Store:
    """A store with the same workflow id, envelopes, keys and letters in two orgs."""
    await commit(
        store,
        make_start(ours, timers=[make_timer(1, due=1)], requests=[make_request("key", expires=10)]),
        make_start(theirs, timers=[make_timer(1, due=2, of=2, org=OTHER)], requests=[make_request("key", org=OTHER)]),
    )
    await commit_unrouted(
        store,
        make_signal("ours", None, workflow_id="order"),
        make_signal("theirs", None, org=OTHER, workflow_id="order"),
        dead_letters=[make_letter("ours"), make_letter("theirs", 2, org=OTHER)],
    )
    return store


async def test_an_execution_is_found_in_its_own_org_only(twins: Store) -> None:
    found = [await twins.find_execution(org, id_of(number)) for org in (ORG, OTHER) for number in (1, 2)]

    assert found == [ours, None, None, theirs]


async def test_the_latest_of_a_workflow_id_is_that_of_the_org(twins: Store) -> None:
    transaction = await twins.begin()
    read = [await transaction.read_latest(org, "order") for org in (ORG, OTHER, "third")]
    await transaction.rollback()

    found = [await twins.find_latest(org, "order") for org in (ORG, OTHER, "third")]

    assert found == read == [ours, theirs, None]


async def test_listings_show_one_org(twins: Store) -> None:
    listed = [await twins.list_executions(ExecutionFilter(org, workflow_id="order")) for org in (ORG, OTHER, "third")]

    assert listed == [[ours], [theirs], []]


async def test_workflow_ids_resolve_within_their_org(twins: Store) -> None:
    claimed = await look(twins, Claim(workflow_ids=[(OTHER, "order")]))

    assert claimed.open_ids == {(OTHER, "order"): id_of(2)}
    assert claimed.held == {id_of(2)}
    assert names_of(claimed.inbox) == ["theirs"]


async def test_closing_in_one_org_frees_nothing_in_the_other(twins: Store) -> None:
    await commit(twins, make_closing(ours, Status.TERMINATED))

    again = make_row(3, workflow_id="order"), make_row(4, workflow_id="order", org=OTHER)
    lost = await commit(twins, *[make_start(row) for row in again])

    assert lost == {id_of(4)}


async def test_wanting_under_the_wrong_org_holds_nothing(twins: Store) -> None:
    claimed = await look(twins, want(1, org=OTHER))

    assert (claimed.held, claimed.rows, claimed.inbox) == (set(), {}, [])


async def test_an_envelope_under_the_wrong_org_is_for_nobody(twins: Store) -> None:
    await commit_unrouted(twins, make_signal("lost", 1, org=OTHER))

    claimed = await look(twins, want(1))
    lost = await commit(twins, make_closing(ours, Status.TERMINATED))

    assert "lost" not in names_of(claimed.inbox)
    assert lost == set()


async def test_keyed_requests_are_those_of_the_org(twins: Store) -> None:
    transaction = await twins.begin()
    read = [await read_request(transaction, org, "start", "key", NOW) for org in (ORG, OTHER, "third")]
    await transaction.rollback()

    assert read == [make_request("key", expires=10), make_request("key", org=OTHER), None]


async def test_dead_letters_are_those_of_the_org(twins: Store) -> None:
    listed = [names_of(await twins.list_dead_letters(org)) for org in (ORG, OTHER, "third")]

    assert listed == [["ours"], ["theirs"], []]


async def test_a_status_is_set_within_the_org_only(twins: Store) -> None:
    changed = await twins.set_status(OTHER, id_of(1), 1, make_turn(ours).row)

    assert changed is False
    assert await read_row(twins) == ours


async def test_the_store_holds_no_contradiction(twins: Store) -> None:
    problems = await twins.check()

    assert problems == []
