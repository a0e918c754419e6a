"""D2: what cannot be handled is put aside whole, with its reason, and nobody else waits for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.core import codec, envelopes
from holdfast.core.payloads import Payload
from holdfast.engine.views import DeadLetter
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.rows import HistoryRow, InboxRow
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine
from tests.eventually import eventually


@activity
async def work(name: str) -> str:
    return name


@workflow
async def conversation(ctx: Context) -> list[int]:
    found: list[int] = []
    while len(found) < 2:
        found.append(await ctx.wait_for_signal("number", int))
    return found


@workflow
async def bystander(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


async def leave(engine: TestEngine, body: bytes, execution_id: str = "", workflow_id: str = "") -> None:
    """Put something into the inbox, as another hand would, and let the engine look."""
    transaction = await engine.store.begin()
    await transaction.write([], UnroutedWrite(outgoing=[InboxRow("default", execution_id, workflow_id, body)]))
    await transaction.commit()
    await engine.recover()


async def find_letters(engine: TestEngine) -> list[DeadLetter]:
    letters: list[DeadLetter] = await eventually(engine.dead_letters, "a dead letter to be there")
    return letters


async def assert_works(engine: TestEngine) -> None:
    """Other executions start, run and end."""
    handle = await engine.start(bystander, "fine")
    assert await handle.result() == "fine"


# --- what cannot be decoded ---

GARBAGE = [b"", b"garbage", b"{}", b'{"type":"unheard_of"', b'{"type":"signal","name":5}', b"\xff\xfe", b"[" * 10_000]


@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
async def test_D1_row_that_cannot_be_decoded_becomes_a_dead_letter(open_engine: OpenEngine, body: bytes) -> None:
    engine = await open_engine(conversation, bystander, work)
    handle = await engine.start(conversation, workflow_id="c")
    await leave(engine, body, handle.execution_id or "")

    (letter,) = await find_letters(engine)
    assert letter.reason.startswith("Expected to decode an envelope, but ")
    assert (letter.org, letter.execution_id, letter.node) == ("default", handle.execution_id, engine.node)
    assert (await engine.store.count()).inbox == 0
    await assert_works(engine)
    await handle.signal("number", 1)
    await handle.signal("number", 2)
    assert await handle.result() == [1, 2]


async def test_D1_dead_letter_keeps_the_envelope_as_it_came(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation)
    await engine.start(conversation, workflow_id="c")
    await leave(engine, b'{"type":"signal","name":5,"value":[1,2]}', workflow_id="c")

    (letter,) = await find_letters(engine)
    assert letter.envelope == {"type": "signal", "name": 5, "value": [1, 2]}
    assert letter.workflow_id == "c"


# --- signals that do not fit ---


async def test_D1_signal_of_a_wrong_type_is_put_aside_with_the_reason(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation, bystander, work)
    handle = await engine.start(conversation, workflow_id="c")
    await handle.signal("number", "one")
    await handle.signal("number", 1)

    (letter,) = await engine.dead_letters()
    assert letter.reason.startswith(
        "Expected the value of signal 'number' to be int, but expected `int`, got `str` in \"one\""
    )
    assert letter.envelope == {"type": "signal", "name": "number", "value": {"data": "one"}}
    assert (letter.execution_id, letter.workflow_id) == (handle.execution_id, "c")
    assert (await handle.status()).status is Status.SUSPENDED
    await handle.signal("number", 2)
    assert await handle.result() == [1, 2]


async def test_D1_requeued_signal_wakes_its_execution(open_engine: OpenEngine) -> None:
    @workflow
    async def choosy(ctx: Context) -> list[Any]:
        first = await ctx.wait_for_signal("value", int)
        return [first, await ctx.wait_for_signal("value", str)]

    engine = await open_engine(choosy)
    handle = await engine.start(choosy)
    await handle.signal("value", "text")
    await handle.signal("value", 1)
    (letter,) = await engine.dead_letters()

    assert await engine.requeue_dead_letters([letter.id]) == 1
    assert await handle.result() == [1, "text"]
    assert await engine.dead_letters() == []
    assert await engine.requeue_dead_letters([letter.id]) == 0


async def test_D1_requeued_signal_that_still_does_not_fit_comes_back(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation)
    handle = await engine.start(conversation)
    await handle.signal("number", "one")
    (first,) = await engine.dead_letters()
    await engine.requeue_dead_letters([first.id])

    (second,) = await find_letters(engine)
    assert second.id > first.id
    assert second.envelope == first.envelope


async def test_D1_requeued_signal_for_a_closed_execution_comes_back_with_that_reason(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation)
    handle = await engine.start(conversation, workflow_id="c")
    await handle.signal("number", "one")
    (letter,) = await engine.dead_letters()
    await handle.terminate()
    await engine.requeue_dead_letters([letter.id])

    (again,) = await find_letters(engine)
    assert again.reason.startswith("Expected to signal execution 'c'")
    assert "but it is terminated" in again.reason


async def test_D1_dead_letters_can_be_discarded_and_belong_to_their_org(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation)
    for org in ("default", "other"):
        await engine.start(conversation, workflow_id="c", org=org)
        for value in ("a", "b", "c"):
            await engine.signal_workflow("c", "number", value, org=org)
    ids = [letter.id for letter in await engine.dead_letters()]

    assert len(ids) == 3
    assert await engine.discard_dead_letters(ids, org="other") == 0
    assert await engine.discard_dead_letters(ids[:2]) == 2
    assert [letter.id for letter in await engine.dead_letters()] == ids[2:]
    assert len(await engine.dead_letters(org="other")) == 3
    assert len(await engine.dead_letters(org="other", limit=2)) == 2


# --- what fails again and again ---


async def test_D2_envelope_that_cannot_be_handled_is_tried_some_times_and_delays_nobody(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation, bystander, work, max_attempts=3)
    start = envelopes.Start(
        execution_id="this is no id", workflow_id="odd", workflow="conversation", input=Payload(msgspec.Raw(b"[]"))
    )
    await leave(engine, codec.encode(start), workflow_id="odd")

    (letter,) = await find_letters(engine)
    await assert_works(engine)
    assert letter.reason.startswith("handling it failed 3 times")
    assert "ValueError" in letter.reason
    assert letter.attempts == 3
    assert (await engine.store.count()).inbox == 0


async def test_D2_execution_whose_row_is_damaged_delays_nobody(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation, bystander, work, max_live_programs=1)
    handle = await engine.start(conversation, workflow_id="damaged")
    execution_id = handle.execution_id or ""
    await assert_works(engine)
    row = await engine.store.find_execution("default", execution_id)
    assert row is not None
    damaged = msgspec.structs.replace(row, details=b"{", state_version=row.state_version + 1)
    assert await engine.store.set_status("default", execution_id, row.state_version, damaged)
    await engine.restart()

    await leave(engine, codec.encode(envelopes.Signal(name="number", value=Payload(msgspec.Raw(b"1")))), execution_id)
    await assert_works(engine)
    await assert_works(engine)
    shown = {one.workflow_id: one for one in await engine.list()}
    assert str(shown["damaged"].last_error).startswith("CorruptStore: Expected to decode an execution's details, but ")


async def test_D2_execution_whose_history_is_damaged_is_blocked_and_delays_nobody(open_engine: OpenEngine) -> None:
    engine = await open_engine(conversation, bystander, work)
    handle = await engine.start(conversation, workflow_id="damaged")
    execution_id = handle.execution_id or ""
    row = await engine.store.find_execution("default", execution_id)
    assert row is not None
    transaction = await engine.store.begin()
    garbage = HistoryRow(execution_id, row.sequence + 1, 1, row.updated_at, codec.SCHEMA, b"garbage")
    changed = msgspec.structs.replace(row, sequence=row.sequence + 1, state_version=row.state_version + 1)
    assert not await transaction.write(
        [TurnWrite(row=changed, expected_version=row.state_version, history=garbage)], UnroutedWrite()
    )
    await transaction.commit()
    await engine.restart()

    await engine.signal_workflow("damaged", "number", 1)
    await assert_works(engine)
    info = await engine.query_status("damaged")
    assert info.status is Status.BLOCKED
    assert info.last_error is not None
    assert str(info.last_error).startswith("CorruptStore: Expected to decode a turn's events")


async def test_D2_timer_of_a_damaged_execution_does_not_make_the_engine_spin(open_engine: OpenEngine) -> None:
    @workflow
    async def sleepy(ctx: Context) -> None:
        await ctx.sleep(60)

    engine = await open_engine(sleepy, bystander, work)
    handle = await engine.start(sleepy, workflow_id="damaged")
    row = await engine.store.find_execution("default", handle.execution_id or "")
    assert row is not None
    damaged = msgspec.structs.replace(row, details=b"{", state_version=row.state_version + 1)
    await engine.store.set_status("default", row.execution_id, row.state_version, damaged)
    await engine.restart()
    await engine.clock.advance(60)

    await assert_works(engine)
    await engine.settle()
    assert engine.is_at_rest()


async def test_D2_poison_does_not_fail_the_requests_beside_it(open_engine: OpenEngine) -> None:
    import asyncio

    engine = await open_engine(conversation, bystander, work)
    handles = [await engine.start(conversation) for _ in range(20)]
    for handle in handles[:5]:
        transaction = await engine.store.begin()
        await transaction.write([], UnroutedWrite(outgoing=[InboxRow("default", handle.execution_id or "", "", b"poison")]))
        await transaction.commit()

    answers = await asyncio.gather(*(handle.signal("number", 1) for handle in handles), engine.recover())

    assert len(answers) == 21
    assert len(await find_letters(engine)) == 5
    for handle in handles:
        await handle.signal("number", 2)
        assert await handle.result() == [1, 2]
