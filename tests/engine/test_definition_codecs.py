"""With a codec, snapshots, records of processes and what start timers give to executions are stored encoded."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast import EncodedPayload
from holdfast.core import codec, payloads, snapshots
from holdfast.core.events import ProcessAdvanced
from holdfast.engine.encoded_store import find_bare_store, put_codec_before
from holdfast.engine.payload_codecs import is_encoded, list_payloads
from holdfast.store.contract import Store
from holdfast.store.incidents import IncidentFilter
from holdfast.store.rows import HistoryRow
from holdfast.store.sqlite.store import SqliteStore
from tests.store.builders import NOW, ORG, commit, id_of, make_row, make_start
from tests.store.definition_builders import deploy, make_definition, make_deployment, make_incident, make_snapshot
from tests.store.schedule_builders import make_schedule


class Base64Codec:
    """Hides values from who only looks."""

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(b64encode(one.data), "base64") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(b64decode(one.data)) for one in payloads]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store behind a codec."""
    store = put_codec_before(SqliteStore(tmp_path / "app.db"), Base64Codec())
    await store.open()
    yield store
    await store.close()


async def test_snapshot_is_stored_as_one_encoded_payload(store: Store) -> None:
    snapshot = make_snapshot(program=b'{"card":"secret"}')

    await commit(store, make_start(make_row(1), snapshot=snapshot))

    bare = await find_bare_store(store).load_snapshot(id_of(1))
    assert bare is not None
    assert is_encoded(snapshots.decode_payload(bare.body))
    assert b"secret" not in bare.body
    assert snapshots.decode(bare.body, bare.schema) is None
    assert await store.load_snapshot(id_of(1)) == snapshot
    transaction = await store.begin()
    assert await transaction.read_snapshots([id_of(1)]) == {id_of(1): snapshot}
    await transaction.rollback()
    assert await store.check() == []


async def test_records_of_a_process_are_stored_encoded(store: Store) -> None:
    event = ProcessAdvanced(records=payloads.encode([["set", 1, {"card": "secret"}]], "records"))
    start = make_start(make_row(1))
    start.history = HistoryRow(id_of(1), 1, 1, NOW, codec.SCHEMA, codec.encode([event]))

    await commit(store, start)

    [bare] = await find_bare_store(store).load_history(id_of(1))
    [stored] = codec.decode_events(bare.body, bare.schema)
    assert [is_encoded(one) for one in list_payloads(stored)] == [True]
    assert b"secret" not in bare.body
    [plain] = await store.load_history(id_of(1))
    assert codec.decode_events(plain.body, plain.schema) == (event,)


async def test_input_of_start_timers_is_stored_encoded(store: Store) -> None:
    details = codec.decode_schedule(make_schedule("s").details)
    start = replace(details.start, input=payloads.encode({"card": "secret"}, "the input"))
    schedule = replace(make_schedule("nightly"), details=codec.encode(replace(details, start=start)))

    await deploy(store, make_deployment(make_definition(), schedules=[schedule]))

    bare = await find_bare_store(store).find_schedule(ORG, "nightly")
    assert bare is not None
    assert b"secret" not in bare.details
    assert await store.find_schedule(ORG, "nightly") == schedule
    assert await store.definitions.find(ORG, "bpmn", "order") is not None


async def test_messages_of_incidents_stay_as_they_are_for_lists(store: Store) -> None:
    await commit(store, make_start(make_row(1), incidents=[make_incident(1)]))

    [row] = await find_bare_store(store).incidents.search(IncidentFilter(ORG))

    assert row == make_incident(1)
    assert await store.incidents.search(IncidentFilter(ORG)) == [row]
