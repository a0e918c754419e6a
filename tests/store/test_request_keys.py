"""Request keys: a transaction that claims one keeps it from others until its end."""

from __future__ import annotations

from holdfast.store.contract import Claim, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    begin_with,
    commit,
    look,
    make_request,
    make_row,
    make_start,
    read_request,
    want,
)

KEY = (ORG, "start", "k")
CLAIM = Claim(request_keys=[KEY])


async def test_a_key_that_nobody_has_is_held(store: Store) -> None:
    keys = [KEY, (ORG, "signal", "k"), (OTHER, "start", "k"), KEY]

    assert (await look(store, Claim(request_keys=keys))).held_keys == set(keys)


async def test_a_claim_without_keys_holds_none(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    assert (await look(store, want(1))).held_keys == set()


async def test_a_key_may_be_claimed_again_by_who_holds_it(store: Store) -> None:
    transaction, first = await begin_with(store, CLAIM)

    again = await transaction.claim(CLAIM)
    await transaction.rollback()

    assert first.held_keys == again.held_keys == {KEY}


async def test_a_key_says_nothing_about_a_workflow_id_of_its_name(store: Store) -> None:
    claimed = await look(store, Claim(request_keys=[(ORG, "", "order-1")], workflow_ids=[(ORG, "order-1")]))

    assert claimed.open_ids == {(ORG, "order-1"): None}
    assert claimed.held_keys == {(ORG, "", "order-1")}


async def test_a_key_is_held_by_one_transaction_at_a_time(left: Store, right: Store) -> None:
    transaction, first = await begin_with(left, CLAIM)

    meanwhile = await look(right, Claim(request_keys=[KEY, (ORG, "start", "other")]))
    await transaction.rollback()
    afterwards = await look(right, CLAIM)

    assert first.held_keys == {KEY}
    assert meanwhile.held_keys == {(ORG, "start", "other")}
    assert afterwards.held_keys == {KEY}


async def test_keys_of_other_kinds_and_orgs_are_other_keys(left: Store, right: Store) -> None:
    others = [(ORG, "signal", "k"), (OTHER, "start", "k"), (ORG, "start", "K")]
    transaction, _ = await begin_with(left, CLAIM)

    meanwhile = await look(right, Claim(request_keys=others))
    await transaction.rollback()

    assert meanwhile.held_keys == set(others)


async def test_who_gets_a_key_sees_what_the_last_holder_remembered_under_it(left: Store, right: Store) -> None:
    transaction, _ = await begin_with(left, CLAIM)
    await transaction.write([make_start(make_row(1), requests=[make_request("k")])], UnroutedWrite())
    await transaction.commit()

    following, claimed = await begin_with(right, CLAIM)
    known = await read_request(following, *KEY, NOW)
    await following.rollback()

    assert claimed.held_keys == {KEY}
    assert known == make_request("k")
