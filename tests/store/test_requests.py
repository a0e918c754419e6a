"""Keyed requests: what was answered is remembered until it expires."""

from __future__ import annotations

import msgspec

from holdfast.core.instants import SECOND, Instant
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.rows import RequestRow
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_request,
    make_row,
    make_start,
    make_turn,
    read_request,
)


async def read(store: Store, key: str, *, org: str = ORG, kind: str = "start", now: Instant = NOW) -> RequestRow | None:
    transaction = await store.begin()
    row = await read_request(transaction, org, kind, key, now)
    await transaction.rollback()
    return row


async def test_a_request_is_remembered_with_its_turn(store: Store) -> None:
    request = make_request("key")

    await commit(store, make_start(make_row(1), requests=[request]))

    assert await read(store, "key") == request


async def test_a_request_is_remembered_without_a_turn(store: Store) -> None:
    request = msgspec.structs.replace(make_request("key"), sequence=None)

    await commit_unrouted(store, requests=[request])

    assert await read(store, "key") == request


async def test_a_request_is_forgotten_when_it_expires(store: Store) -> None:
    await commit(store, make_start(make_row(1), requests=[make_request("key", expires=60)]))

    just_before = await read(store, "key", now=NOW + 60 * SECOND - 1)
    after = await read(store, "key", now=NOW + 60 * SECOND + 1)

    assert just_before == make_request("key", expires=60)
    assert after is None


async def test_an_expired_key_can_be_used_again(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, requests=[make_request("key", expires=1)]))

    renewed = msgspec.structs.replace(make_request("key", expires=90), execution_id=id_of(2))
    lost = await commit(store, make_turn(row, requests=[renewed]))

    assert lost == set()
    assert await read(store, "key", now=NOW + 30 * SECOND) == renewed


async def test_keys_of_other_kinds_and_orgs_are_other_keys(store: Store) -> None:
    start, signal = make_request("key", kind="start"), make_request("key", kind="signal")
    elsewhere = make_request("key", org=OTHER, expires=5)

    await commit_unrouted(store, requests=[start, signal, elsewhere])

    assert await read(store, "key", kind="start") == start
    assert await read(store, "key", kind="signal") == signal
    assert await read(store, "key", org=OTHER) == elsewhere
    assert await read(store, "key", org=OTHER, kind="signal") is None


async def test_a_request_of_a_rolled_back_transaction_never_was(store: Store) -> None:
    transaction = await store.begin()
    await transaction.write([], UnroutedWrite(requests=[make_request("key")]))

    await transaction.rollback()

    assert await read(store, "key") is None
