"""In-flight marks: whoever takes an execution next learns which process ended in the middle of its turn."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.core.ids import make_execution_id
from holdfast.errors import StoreError
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.nodes import InFlightMark
from tests.store.builders import NOW, begin_with, commit, id_of, make_row, make_start, make_turn, read_row, want
from tests.store.conftest import Backend


async def mark(store: Store, process: str, versions: Mapping[str, int], slot: int = 0) -> dict[str, str]:
    """Mark executions in a transaction that is given up, as that of a process which ended."""
    transaction = await store.begin()
    found = await transaction.mark_in_flight(process, slot, versions)
    await transaction.rollback()
    return {execution_id: marks[-1].process for execution_id, marks in found.items()}


async def test_what_nobody_marked_is_not_suspect(store: Store) -> None:
    assert await mark(store, "one", {id_of(1): 1, id_of(2): 0}) == {}


async def test_what_another_process_marked_at_the_same_version_is_suspect(store: Store) -> None:
    await mark(store, "one", {id_of(1): 4, id_of(2): 0, id_of(3): 7})

    assert await mark(store, "other", {id_of(2): 0, id_of(3): 7, id_of(4): 1}) == {id_of(2): "one", id_of(3): "one"}


async def test_a_mark_at_another_version_says_nothing(store: Store) -> None:
    await mark(store, "one", {id_of(1): 4, id_of(2): 5})

    assert await mark(store, "other", {id_of(1): 5, id_of(2): 4}) == {}


async def test_a_process_does_not_suspect_itself(store: Store) -> None:
    await mark(store, "one", {id_of(1): 4})

    assert await mark(store, "one", {id_of(1): 4}) == {}
    assert await mark(store, "one", {id_of(1): 4}, slot=1) == {}


async def test_a_mark_replaces_the_last_one_of_its_slot_and_no_other(store: Store) -> None:
    await mark(store, "one", {id_of(1): 1}, slot=0)
    await mark(store, "one", {id_of(2): 2}, slot=1)

    await mark(store, "one", {id_of(3): 3}, slot=0)

    assert await mark(store, "other", {id_of(number): number for number in (1, 2, 3)}) == {id_of(2): "one", id_of(3): "one"}


async def test_every_process_that_marked_an_execution_is_told_with_its_slot(store: Store) -> None:
    await mark(store, "one", {id_of(1): 4}, slot=3)
    await mark(store, "two", {id_of(1): 4, id_of(2): 1}, slot=1_000)

    transaction = await store.begin()
    found = await transaction.mark_in_flight("three", 0, {id_of(1): 4})
    await transaction.rollback()

    assert found == {id_of(1): [InFlightMark("one", 3), InFlightMark("two", 1_000)]}


async def test_a_slot_can_be_emptied(store: Store) -> None:
    await mark(store, "one", {id_of(1): 1})

    await mark(store, "one", {})

    assert await mark(store, "other", {id_of(1): 1}) == {}


async def test_a_committed_turn_makes_its_mark_stale(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction, _ = await begin_with(store, want(1))
    await transaction.mark_in_flight("one", 0, {id_of(1): row.state_version})
    await transaction.write([make_turn(row)], UnroutedWrite())
    await transaction.commit()

    assert await mark(store, "other", {id_of(1): (await read_row(store)).state_version}) == {}


async def test_a_mark_changes_nothing_about_its_transaction(store: Store) -> None:
    transaction = await store.begin()
    await transaction.mark_in_flight("one", 0, {id_of(1): 0})
    await transaction.write([make_start(make_row(1))], UnroutedWrite())
    await transaction.mark_in_flight("one", 0, {id_of(1): 1})
    await transaction.commit()

    assert await read_row(store) == make_row(1)
    assert await store.check() == []


async def test_a_transaction_that_has_ended_marks_nothing(store: Store) -> None:
    transaction = await store.begin()
    await transaction.commit()

    with pytest.raises(StoreError, match="it has ended"):
        await transaction.mark_in_flight("one", 0, {id_of(1): 1})

    assert await mark(store, "other", {id_of(1): 1}) == {}


async def test_the_marks_of_a_process_are_forgotten_on_request(store: Store) -> None:
    await mark(store, "one", {id_of(1): 1}, slot=0)
    await mark(store, "one", {id_of(2): 2}, slot=1)
    await mark(store, "two", {id_of(3): 3})

    await store.forget_processes(["one", "never seen"])
    await store.forget_processes([])

    assert await mark(store, "other", {id_of(number): number for number in (1, 2, 3)}) == {id_of(3): "two"}


async def test_marks_stay_when_nodes_are_removed(store: Store) -> None:
    await mark(store, "one", {id_of(1): 1})

    await store.remove_nodes(["one"])

    assert await mark(store, "other", {id_of(1): 1}) == {id_of(1): "one"}


async def test_a_large_batch_is_marked_as_a_whole(store: Store) -> None:
    many = {make_execution_id(NOW, number): number for number in range(2_000)}
    await mark(store, "one", many)

    suspects = await mark(store, "other", many)

    assert suspects == dict.fromkeys(many, "one")


async def test_nodes_see_the_marks_of_transactions_that_are_still_open(shared: Backend, left: Store, right: Store) -> None:
    transaction = await left.begin()
    await transaction.mark_in_flight("left", 0, {id_of(1): 1})

    suspects = await mark(right, "right", {id_of(1): 1})
    await transaction.rollback()

    assert suspects == {id_of(1): "left"}
