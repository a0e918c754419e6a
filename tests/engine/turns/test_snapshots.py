"""Snapshots: who is replayed reads only the history behind one, and whatever is wrong with one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import EncodedPayload, Engine, Status, WorkflowHandle, activity
from holdfast.core import codec, snapshots
from holdfast.engine.encoded_store import find_bare_store
from holdfast.errors import StoreUnavailable
from holdfast.store.contract import Store, TurnWrite, UnroutedWrite
from holdfast.store.rows import ExecutionRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.testing import replay_store
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.ledgers import Ledger
from tests.eventually import eventually

WORDS = [f"word {number}" for number in range(30)]


@activity
async def work(name: str) -> str:
    return name


@pytest.fixture(autouse=True)
def short_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a snapshot be due after a few turns."""
    monkeypatch.setattr(snapshots, "SHORTEST", 500)
    monkeypatch.setattr(snapshots, "MOST_BEHIND", 1)


async def send(handle: WorkflowHandle[Any], words: Sequence[str]) -> None:
    for word in words:
        await handle.signal("word", word)


async def begin(engine: Engine, words: Sequence[str] = WORDS) -> WorkflowHandle[Any]:
    handle = await engine.start("ledger", workflow_id="l")
    await send(handle, words)
    return handle


async def find_row(engine: Engine) -> ExecutionRow:
    return await hooks.find_row(engine, "l")


async def find_sequence(engine: Engine) -> int | None:
    return codec.decode_details((await find_row(engine)).details).snapshot


async def find_snapshot(engine: Engine) -> SnapshotRow | None:
    return await find_bare_store(engine.store).load_snapshot((await find_row(engine)).execution_id)


async def replace_snapshot(store: Store, row: ExecutionRow, snapshot: SnapshotRow | None) -> None:
    """Put another in the place of a snapshot, as no engine does: by a turn that changes nothing."""
    details = codec.decode_details(row.details)
    if snapshot is None:
        details.snapshot = None
    changed = replace(row, state_version=row.state_version + 1, details=codec.encode(details))
    transaction = await store.begin()
    write = TurnWrite(row=changed, expected_version=row.state_version, snapshot=snapshot)
    assert await transaction.write([write], UnroutedWrite()) == set()
    await transaction.commit()


async def spoil(engine: Engine, **changes: Any) -> None:
    stored = await find_snapshot(engine)
    assert stored is not None
    await replace_snapshot(find_bare_store(engine.store), await find_row(engine), replace(stored, **changes))


# --- writing and reading ---


async def test_R1_restart_reads_the_snapshot_and_what_is_behind_it(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    snapshot = await find_snapshot(engine)
    assert snapshot is not None
    assert snapshot.sequence == await find_sequence(engine)

    await engine.restart()
    ledger.events_taken = 0
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 1
    assert ledger.events_taken < len(WORDS) / 2


async def test_snapshot_goes_with_the_execution(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), work)
    handle = await begin(engine)

    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]
    assert await find_snapshot(engine) is None
    assert await find_sequence(engine) is None
    assert await engine.query("l", "lines") == [*WORDS, "end"]


async def test_R2_what_is_open_survives_in_a_snapshot(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work, queues=["default"])
    handle = await begin(engine, ["timer", "child", "message 7", "fail", *WORDS])
    await eventually(lambda: has_waits(handle))
    before = await handle.status()

    await engine.restart()
    ledger.events_taken = 0
    after = await handle.status()

    assert ledger.restored == 1
    assert before.pending is not None
    assert after.pending == before.pending
    assert [one.label for one in before.pending.timers] == ["soon"]
    assert [one.name for one in before.pending.subscriptions] == ["paid"]
    assert len(before.pending.children) == 1
    assert [one.element for one in before.pending.incidents] == ["Task_1"]
    await send(handle, ["end"])
    assert await handle.result() == ["timer", "child", "message 7", "fail", *WORDS, "end"]


async def has_waits(handle: WorkflowHandle[Any]) -> bool:
    status = await handle.status()
    return status.pending is not None and bool(status.pending.children)


async def test_history_behind_a_snapshot_is_bounded_by_its_size(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), work)
    handle = await begin(engine, [])
    sequences: list[int | None] = []

    for number in range(60):
        await send(handle, [f"a word that is rather long, number {number}"])
        sequences.append(await find_sequence(engine))

    written = len(set(sequences) - {None})
    assert 3 <= written <= 12  # since each is longer than the one before


async def test_two_nodes_use_the_snapshots_of_each_other(cluster: Cluster) -> None:
    ledger = Ledger()
    first = await cluster.open("first", ledger)
    handle = await begin(first)
    await cluster.kill("first")

    second = await cluster.open("second", ledger)
    ledger.events_taken = 0
    await second.signal_workflow("l", "word", "end")

    assert await second.handle("l").result() == [*WORDS, "end"]
    assert ledger.restored == 1
    assert handle.workflow_id == "l"


async def test_node_that_fell_behind_goes_on_by_a_snapshot_or_its_own_program(cluster: Cluster) -> None:
    one, other = Ledger(), Ledger()
    first = await cluster.open("first", one, replay_ahead=5)
    second = await cluster.open("second", other, replay_ahead=5)
    await begin(first, ["begun"])
    for word in WORDS:
        await second.signal_workflow("l", "word", word)
    one.events_taken = 0

    await first.signal_workflow("l", "word", "end")

    assert await first.handle("l").result() == ["begun", *WORDS, "end"]


# --- what is wrong with a snapshot ---


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 99},
        {"body": b"\x00damaged"},
        {"body": b'{"data":{"sequence":1}}'},
        {"body": b'{"data":"AAAA","encoding":"secret","key":"lost"}'},
        {"sequence": 2},
    ],
    ids=["schema", "bytes", "shape", "codec", "sequence"],
)
async def test_R1_snapshot_of_no_use_leads_to_the_whole_history(open_engine: OpenEngine, changes: dict[str, Any]) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    await spoil(engine, **changes)

    await engine.restart()
    ledger.events_taken = 0
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 0
    assert ledger.events_taken > len(WORDS)


async def test_missing_snapshot_leads_to_the_whole_history(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    row = await find_row(engine)
    await replace_snapshot(engine.store, row, None)

    await engine.restart()
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 0


async def test_snapshot_of_another_past_leads_to_the_whole_history(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    stored = await find_snapshot(engine)
    assert stored is not None
    found = snapshots.decode(stored.body, stored.schema)
    assert found is not None
    found.last_turn = (found.last_turn[0], found.last_turn[1] - 1)
    await spoil(engine, body=snapshots.encode(found))

    await engine.restart()
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 0


async def test_program_that_takes_no_snapshot_takes_the_whole_history(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    ledger.refuses_snapshots = True

    await engine.restart()
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]


async def test_useless_snapshot_of_a_long_history_is_replayed_before_the_lock(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work, replay_ahead=5)
    handle = await begin(engine)
    ledger.refuses_snapshots = True

    await engine.restart()
    await send(handle, ["end"])

    assert await handle.result() == [*WORDS, "end"]


async def test_history_that_does_not_fit_blocks_with_and_without_a_snapshot(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    handle = await begin(engine)
    ledger.refused = WORDS[3]

    await engine.restart()
    await send(handle, ["more"])

    assert (await handle.status()).status is Status.BLOCKED
    ledger.refused = ""
    await engine.recover()
    await send(handle, ["end"])
    assert await handle.result() == [*WORDS, "more", "end"]


async def test_snapshot_that_cannot_be_taken_is_left_out(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger()
    ledger.fails_to_take = True
    engine = await open_engine(ledger, work)

    handle = await begin(engine)

    assert await find_snapshot(engine) is None
    assert {getattr(one, "event", "") for one in caplog.records} == {"snapshot_failed"}
    await send(handle, ["end"])
    assert await handle.result() == [*WORDS, "end"]


async def test_program_cache_counts_what_programs_weigh(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work, max_live_bytes=3_000)
    first = await begin(engine)
    other = await engine.start("ledger", workflow_id="other")
    ledger.restored = ledger.events_taken = 0

    await send(first, ["end"])
    await send(other, ["end"])

    assert (ledger.restored, ledger.events_taken) == (0, 2)  # both were in memory, though the history has more bytes


async def test_R1_replay_compares_snapshots_with_the_whole_history(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work)
    await begin(engine, ["timer", "job", *WORDS])
    assert (await replay_store(engine.store, [ledger])).is_ok
    stored = await find_snapshot(engine)
    assert stored is not None
    found = snapshots.decode(stored.body, stored.schema)
    assert found is not None

    found.program = found.program.replace(b"word 3", b"word 4")
    await spoil(engine, body=snapshots.encode(found))
    [program] = (await replay_store(engine.store, [ledger])).disagreements
    found.open.timers = {}
    await spoil(engine, body=snapshots.encode(found))
    [timers] = (await replay_store(engine.store, [ledger])).disagreements

    assert (program.failure, timers.failure) == ("SnapshotDiffers", "SnapshotDiffers")
    assert "the variables and tokens of its program differ" in program.message
    assert "the open timers differ" in timers.message


# --- codecs ---


class Reversing:
    """A codec that reverses bytes; it can be out of order."""

    def __init__(self) -> None:
        self.is_down = False

    async def encode(self, payloads: Sequence[EncodedPayload], _org: str) -> list[EncodedPayload]:
        self._check()
        return [EncodedPayload(one.data[::-1], "reversed", "1") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        self._check()
        return [EncodedPayload(one.data[::-1]) for one in payloads]

    def _check(self) -> None:
        if self.is_down:
            raise ConnectionError("no keys today")


async def test_snapshot_is_as_secret_as_the_history(open_engine: OpenEngine) -> None:
    ledger = Ledger()
    engine = await open_engine(ledger, work, codec=Reversing())
    handle = await begin(engine)

    stored = await find_snapshot(engine)

    assert stored is not None
    assert b"word" not in stored.body
    assert b"reversed" in stored.body
    await engine.restart()
    await send(handle, ["end"])
    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 1


async def test_outage_of_the_codec_only_delays(open_engine: OpenEngine) -> None:
    ledger, reversing = Ledger(), Reversing()
    engine = await open_engine(ledger, work, codec=reversing)
    handle = await begin(engine)
    await engine.restart()

    reversing.is_down = True
    with pytest.raises(StoreUnavailable, match="no keys today"):
        await send(handle, ["lost"])
    reversing.is_down = False
    sending = asyncio.create_task(send(handle, ["end"]))
    await engine.clock.advance(minutes=1)
    await sending

    assert await handle.result() == [*WORDS, "end"]
    assert ledger.restored == 1
