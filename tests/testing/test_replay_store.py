"""Replay of every open execution of a store: what a deployment would meet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import Context, Status, workflow
from holdfast.errors import NonDeterminismError
from holdfast.testing import ReplayReport, TestEngine, replay, replay_store
from tests.testing import flows


@workflow(name="run_and_sleep")
async def changed(ctx: Context) -> str:
    """Does not do first what `run_and_sleep` did."""
    await ctx.sleep(timedelta(days=2))
    return "changed"


async def test_open_executions_are_replayed_and_closed_ones_left_alone(still: TestEngine) -> None:
    await (await still.start(flows.await_signal, 1)).terminate()
    for days in (1, 2):
        await still.start(flows.sleep_for, days)
    await still.clock.advance(days=1)

    report = await replay_store(still.store, flows.WORKFLOWS)

    assert report == ReplayReport(executions=1, events=2)


async def test_every_disagreement_is_reported(still: TestEngine) -> None:
    handles = [await still.start(flows.run_and_sleep, workflow_id=f"run-{number}") for number in range(3)]
    await still.start(flows.sleep_for, 1)
    await still.settle()

    report = await replay_store(still.store, [changed, flows.sleep_for])

    assert (report.executions, report.is_ok) == (4, False)
    assert sorted(one.workflow_id for one in report.disagreements) == ["run-0", "run-1", "run-2"]
    assert {one.execution_id for one in report.disagreements} == {handle.execution_id for handle in handles}
    for one in report.disagreements:
        assert (one.workflow, one.failure) == ("run_and_sleep", "NonDeterminismError")
        assert "to call ctx.run('note') again" in one.message
        assert f"{Path(__file__)}:" in one.message
    with pytest.raises(NonDeterminismError, match="4 executions to replay, but 3 did not") as caught:
        report.check()
    assert caught.value.message.count("\n- ") == 3


async def test_agreement_passes_the_check(still: TestEngine) -> None:
    await still.start(flows.run_and_sleep)

    (await replay_store(still.store, flows.WORKFLOWS)).check()


async def test_workflows_without_code_are_named(still: TestEngine) -> None:
    await still.start(flows.sleep_for, 1)
    await still.start(flows.await_signal, 1)

    report = await replay_store(still.store, [flows.sleep_for])

    assert report == ReplayReport(executions=1, events=2, unknown=("await_signal",))


async def test_orgs_do_not_meet(still: TestEngine) -> None:
    await still.start(flows.sleep_for, 1, org="acme")

    of_default = await replay_store(still.store, flows.WORKFLOWS)
    of_acme = await replay_store(still.store, flows.WORKFLOWS, org="acme")

    assert (of_default.executions, of_acme.executions) == (0, 1)


async def test_blocked_executions_are_tried_with_the_new_code(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)
    await still.settle()
    await still.restart(workflows=[changed])
    await still.clock.advance(days=2)
    status = (await handle.status()).status

    mended = await replay_store(still.store, flows.WORKFLOWS)
    broken = await replay_store(still.store, [changed])

    assert status == Status.BLOCKED
    assert (mended.is_ok, broken.is_ok) == (True, False)
    assert (await handle.status()).status == Status.BLOCKED


async def test_more_executions_than_one_page_holds(engine: TestEngine) -> None:
    for _ in range(450):
        await engine.start(flows.await_signal, 1)

    report = await replay_store(engine.store, flows.WORKFLOWS)

    assert report.executions == 450


async def test_a_store_is_opened_by_its_url_and_closed_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    async with TestEngine(url, workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES) as engine:
        handle = await engine.start(flows.run_and_sleep)
        await engine.settle()
        history = await handle.history()

    first = await replay_store(url, flows.WORKFLOWS)
    second = await replay_store(url, [changed])

    assert first == replay(history, flows.WORKFLOWS)
    assert len(second.disagreements) == 1


async def test_replaying_a_store_changes_nothing(still: TestEngine) -> None:
    handle = await still.start(flows.run_and_sleep)
    await still.settle()
    before = await handle.status()

    await replay_store(still.store, [changed])

    assert await handle.status() == before
    await still.clock.advance(days=2)
    assert await flows.result_now(handle) == "before, after"
