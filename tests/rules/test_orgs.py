"""I5: organisations never meet."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Context, Status, workflow
from holdfast.errors import ExecutionNotFound, status_code
from tests.rules.world import World


@workflow
async def waiter(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def outcome(ctx: Context, how: str) -> str:
    if how == "wait":
        await ctx.wait_for_signal("never")
    return how


@workflow
async def teller(ctx: Context) -> list[str]:
    return [await ctx.wait_for_signal("tell", str) for _ in range(2)]


async def test_I5_one_id_in_two_orgs_is_two_executions(world: World) -> None:
    engine = await world.open([teller])

    ours, theirs = await asyncio.gather(
        engine.start(teller, workflow_id="order-1", org="ours"), engine.start(teller, workflow_id="order-1", org="theirs")
    )
    for org in ("ours", "theirs"):
        await engine.signal_workflow("order-1", "tell", f"hello {org}", org=org)
        await engine.signal_with_start_workflow("order-1", teller, signal_name="tell", signal_value=f"bye {org}", org=org)

    assert ours.created
    assert theirs.created
    assert await ours.result() == ["hello ours", "bye ours"]
    assert await theirs.result() == ["hello theirs", "bye theirs"]


async def test_I5_start_policies_do_not_look_into_another_org(world: World) -> None:
    engine = await world.open([outcome])
    await engine.start(outcome, "wait", workflow_id="open", org="theirs")
    await (await engine.start(outcome, "return", workflow_id="closed", org="theirs")).result()

    replacing = await engine.start(outcome, "wait", workflow_id="open", org="ours", on_open="terminate_existing")
    failing = await engine.start(outcome, "wait", workflow_id="closed", org="ours", on_open="fail", on_closed="reject")

    assert replacing.created
    assert failing.created
    assert (await engine.query_status("open", org="theirs")).status is Status.SUSPENDED


async def test_I5_keys_of_two_orgs_are_two_keys(world: World) -> None:
    engine = await world.open([teller])

    ours = await engine.start(teller, workflow_id="a", org="ours", idempotency_key="key")
    theirs = await engine.start(teller, workflow_id="a", org="theirs", idempotency_key="key")
    for handle in (ours, theirs):
        await handle.signal("tell", "once", request_id="r")
        await handle.signal("tell", "twice", request_id="r")

    assert theirs.created
    assert ours.execution_id != theirs.execution_id
    for handle in (ours, theirs):
        assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived"]


@pytest.mark.parametrize("by", ["workflow id", "execution id"])
async def test_I5_no_verb_reaches_into_another_org(world: World, by: str) -> None:
    engine = await world.open([waiter])
    theirs = await engine.start(waiter, workflow_id="order-1", org="theirs")
    target = "order-1" if by == "workflow id" else str(theirs.execution_id)
    ours = engine.handle(target, org="ours", workflow=waiter)

    verbs = (ours.status(), ours.history(), ours.result(), ours.signal("go"), ours.cancel(), ours.terminate())
    answers = await asyncio.gather(
        *verbs,
        engine.query_result(target, org="ours"),
        engine.retry_blocked(target, org="ours"),
        engine.pause(target, org="ours"),
        engine.resume(target, org="ours"),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [ExecutionNotFound] * 10
    assert {status_code(answer) for answer in answers if isinstance(answer, ExecutionNotFound)} == {404}
    assert (await theirs.history()).kinds == ["WorkflowStarted"]
    assert await engine.list(org="ours") == []


@pytest.mark.parametrize("is_recent", [True, False])
async def test_I5_the_result_of_a_closed_execution_is_not_told_to_another_org(world: World, is_recent: bool) -> None:
    engine = await world.open([outcome])
    theirs = await engine.start(outcome, "return", org="theirs")
    await theirs.result()
    if not is_recent:
        await engine.restart()

    with pytest.raises(ExecutionNotFound):
        await engine.handle(str(theirs.execution_id), org="ours").result()

    assert await engine.handle(str(theirs.execution_id), org="theirs").result() == "return"


async def test_I5_lists_and_dead_letters_show_one_org_alone(world: World) -> None:
    engine = await world.open([teller])
    for org in ("ours", "theirs"):
        handle = await engine.start(teller, workflow_id="a", org=org)
        await handle.signal("tell", 7)

    ours, theirs = await engine.dead_letters(org="ours"), await engine.dead_letters(org="theirs")
    touched = await engine.discard_dead_letters([letter.id for letter in theirs], org="ours")
    requeued = await engine.requeue_dead_letters([letter.id for letter in theirs], org="ours")

    assert (len(ours), len(theirs)) == (1, 1)
    assert (touched, requeued) == (0, 0)
    assert [letter.id for letter in await engine.dead_letters(org="theirs")] == [letter.id for letter in theirs]
    assert [info.org for info in await engine.list(org="ours")] == ["ours"]


async def test_I5_orgs_stay_apart_after_a_crash(world: World) -> None:
    engine = await world.open([teller])
    for org in ("ours", "theirs"):
        await engine.start(teller, workflow_id="a", org=org)
        await engine.signal_workflow("a", "tell", f"first {org}", org=org)
    await engine.restart()

    for org in ("ours", "theirs"):
        await engine.signal_workflow("a", "tell", f"second {org}", org=org)

    assert await engine.handle("a", org="ours").result() == ["first ours", "second ours"]
    assert await engine.handle("a", org="theirs").result() == ["first theirs", "second theirs"]
