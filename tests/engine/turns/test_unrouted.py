"""What becomes of inbox rows that no execution takes."""

from __future__ import annotations

import pytest

from holdfast import Context, workflow
from holdfast.core import codec, payloads
from holdfast.core.envelopes import AnyEnvelope, Signal, Start, TaskCancelled, Update
from holdfast.core.replies import read_replied
from holdfast.core.request_keys import RequestKey
from holdfast.engine.turns.unrouted import DeadLetterRules, UnroutedWrites
from holdfast.errors import UpdateFailed
from holdfast.store.rows import InboxRow
from tests.engine.conftest import OpenEngine
from tests.engine.turns.test_dead_letters import find_letters, leave


def make_row(envelope: AnyEnvelope) -> InboxRow:
    return InboxRow("default", "e", "w", codec.encode(envelope), route="", at=1)


def test_U8_an_update_that_becomes_a_dead_letter_answers_its_caller() -> None:
    unrouted = UnroutedWrites(DeadLetterRules("a", 5, 3))
    update = Update(name="add", value=payloads.NULL, request=RequestKey("update", "r", 100))

    unrouted.dead_letter(make_row(update), "handling it failed 3 times")
    unrouted.dead_letter(make_row(Signal(name="go", value=payloads.NULL)), "nobody")

    assert len(unrouted.write.dead_letters) == 2
    (kept,) = unrouted.write.requests
    reply = read_replied(kept.answer)
    assert (kept.kind, kept.key) == ("update", "r")
    assert reply is not None
    assert reply.failure is not None
    assert reply.failure.type == "UpdateFailed"
    assert "handling it failed 3 times" in reply.failure.message


def test_what_cannot_be_read_becomes_a_dead_letter_without_an_answer() -> None:
    unrouted = UnroutedWrites(DeadLetterRules("a", 5, 3))

    unrouted.dead_letter(InboxRow("default", "e", "w", b"no envelope", route="", at=1), "damaged")

    assert len(unrouted.write.dead_letters) == 1
    assert unrouted.write.requests == []


LONG = 10**17
KEY = RequestKey("update_with_start", "odd\nr", LONG)
UPDATE = Update(name="add", value=payloads.encode(1, "a number"), request=KEY)


@workflow
async def sums(ctx: Context) -> int:
    total = 0

    @ctx.on_update
    def add(number: int) -> int:
        nonlocal total
        total += number
        return total

    await ctx.wait_for_signal("end")
    return total


@pytest.mark.parametrize(
    ("envelope", "told"),
    [
        (TaskCancelled(number=1, task_id="t-1", by="ann", request=KEY), "a step of task t-1"),
        (
            Start(execution_id="e", workflow_id="w", workflow="sums", input=payloads.NULL, signal=UPDATE),
            "update 'add'",
        ),
    ],
    ids=["task step", "update with start"],
)
def test_D1_all_that_is_answered_is_answered_as_a_dead_letter(envelope: AnyEnvelope, told: str) -> None:
    unrouted = UnroutedWrites(DeadLetterRules("a", 5, 3))

    unrouted.dead_letter(make_row(envelope), "handling it failed 3 times")

    (kept,) = unrouted.write.requests
    reply = read_replied(kept.answer)
    assert (kept.kind, kept.key) == (KEY.kind, KEY.key)
    assert reply is not None
    assert reply.failure is not None
    assert f"Expected {told} to be handled" in reply.failure.message


async def test_D1_caller_of_an_update_with_start_that_is_a_dead_letter_is_told(open_engine: OpenEngine) -> None:
    engine = await open_engine(sums, max_attempts=3)
    start = Start(execution_id="this is no id", workflow_id="odd", workflow="sums", input=payloads.NULL, signal=UPDATE)
    await leave(engine, codec.encode(start), workflow_id="odd")
    await find_letters(engine)

    with pytest.raises(UpdateFailed, match="it is a dead letter: handling it failed 3 times"):
        await engine.update_with_start("odd", sums, update_name="add", update_value=1, request_id="r", timeout=60)


async def test_D1_requeued_update_is_handled_though_its_caller_was_told_of_the_dead_letter(open_engine: OpenEngine) -> None:
    engine = await open_engine(sums)
    handle = await engine.start(sums, workflow_id="w")
    unrouted = UnroutedWrites(DeadLetterRules("a", 5, 3))
    update = Update(name="add", value=UPDATE.value, request=RequestKey("update", "w\nr", LONG))
    unrouted.dead_letter(InboxRow("default", handle.execution_id or "", "", codec.encode(update)), "it failed")
    transaction = await engine.store.begin()
    await transaction.write([], unrouted.write)
    await transaction.commit()
    with pytest.raises(UpdateFailed, match="it is a dead letter: it failed"):
        await engine.update("w", "add", 1, request_id="r")

    (letter,) = await engine.dead_letters()
    await engine.requeue_dead_letters([letter.id])
    await engine.settle()

    assert await engine.update("w", "add", 5, request_id="r") == 1
    await handle.signal("end")
    assert await handle.result() == 1
