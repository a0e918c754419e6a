"""N3: old and new code side by side. An execution goes on with whichever there is, or stays with the one it began with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Engine, Status, WorkflowFailed, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.envelopes import Signal
from holdfast.errors import InvalidConfiguration, InvalidIdentifier
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually
from tests.rules.world import Nodes


@activity
async def work(name: str) -> str:
    return name


def define(version: str, versioning: str = "latest") -> Workflow[..., Any]:
    """A workflow whose code tells its version at each step; it fits every other version."""

    @workflow(name="order", version=version, versioning=versioning)
    async def order(ctx: Context) -> list[str]:
        told = [f"{version} {await ctx.run(work, 'begun')}"]
        while (word := await ctx.wait_for_signal("word", str)) != "end":
            told.append(f"{version} {await ctx.run(work, word)}")
        return told

    return order


def define_broken(version: str) -> Workflow[..., Any]:
    """A version that does not fit what the others have recorded."""

    @workflow(name="order", version=version)
    async def order(ctx: Context) -> list[str]:
        await ctx.sleep(1)
        return ["broken"]

    return order


async def has_status(engine: Engine, status: Status, target: str = "o") -> bool:
    return (await engine.query_status(target)).status is status


async def has_begun(engine: Engine, target: str = "o") -> bool:
    return (await engine.query_status(target)).waiting_for == "signal word"


# --- latest ---


async def test_N3_latest_execution_goes_on_with_the_code_that_is_there(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1"), work)
    await old.start("order", workflow_id="o")
    await eventually(lambda: has_begun(old))
    new = await cluster.open("new", define("2"), work)
    await cluster.shut_down("old")
    await new.signal_workflow("o", "word", "next")
    await new.signal_workflow("o", "word", "end")

    assert await new.handle("o").result() == ["2 begun", "2 next"], "replayed and gone on by the new code"
    assert (await new.query_status("o")).code_version == "1", "what it was started with"


async def test_N3_rolling_deploy_completes_what_either_version_began(cluster: Cluster) -> None:
    def define_steps(version: str) -> Workflow[..., Any]:
        @workflow(name="steps", version=version)
        async def steps(ctx: Context) -> list[str]:
            names = [await ctx.run(work, "first")]
            if version == "2" and ctx.patched("checked"):
                names.append(await ctx.run(work, "checked"))
            await ctx.wait_for_signal("go")
            names.append(await ctx.run(work, "last"))
            return names

        return steps

    old = await cluster.open("old", define_steps("1"), work)
    for number in range(10):
        await begin(old, f"s-{number}")
    new = await cluster.open("new", define_steps("2"), work)
    for number in range(10, 20):
        await begin(new, f"s-{number}")
    await cluster.shut_down("old")
    for number in range(20):
        await new.signal_workflow(f"s-{number}", "go")

    results = [await new.handle(f"s-{number}").result() for number in range(20)]
    assert results[:10] == [["first", "last"]] * 10
    assert results[10:] == [["first", "checked", "last"]] * 10


async def begin(engine: Engine, target: str) -> None:
    await engine.start("steps", workflow_id=target)
    await eventually(lambda: has_waited(engine, target))


async def has_waited(engine: Engine, target: str) -> bool:
    return (await engine.query_status(target)).waiting_for == "signal go"


# --- pinned ---


async def test_N3_pinned_execution_stays_with_the_version_it_began_with(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1", "pinned"), work)
    new = await cluster.open("new", define("2", "pinned"), work)
    await old.start("order", workflow_id="o")
    await new.start("order", workflow_id="n")
    for target in ("o", "n"):
        for engine, word in ((old, "next"), (new, "end")):
            await engine.signal_workflow(target, "word", word)

    assert await new.handle("o").result() == ["1 begun", "1 next"]
    assert await old.handle("n").result() == ["2 begun", "2 next"]
    assert [(await old.query_status(target)).code_version for target in ("o", "n")] == ["1", "2"]


async def test_N3_pinned_execution_waits_for_a_node_with_its_version(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1", "pinned"), work)
    await old.start("order", workflow_id="o")
    await eventually(lambda: has_begun(old))
    new = await cluster.open("new", define("2", "pinned"), work)
    await cluster.kill("old")
    await new.signal_workflow("o", "word", "end")
    await eventually(lambda: hooks.is_idle(new))
    assert await has_status(new, Status.SUSPENDED)
    assert hooks.count_programs(new) == 0

    again = await cluster.open("old-again", define("1", "pinned"), work)
    assert await again.handle("o").result() == ["1 begun"]


async def test_N3_child_is_pinned_to_the_code_that_takes_its_first_turn(cluster: Cluster) -> None:
    @workflow
    async def parent(ctx: Context) -> Any:
        return await ctx.run_child("order", workflow_id="child")

    one = await cluster.open("one", parent)
    old = await cluster.open("old", define("1", "pinned"), work)
    handle = await one.start(parent)
    await eventually(lambda: is_there(old, "child"))
    await eventually(lambda: has_begun(old, "child"))
    await cluster.open("new", define("2", "pinned"), work)
    await one.signal_workflow("child", "word", "end")

    assert await handle.result() == ["1 begun"]
    assert (await one.query_status("child")).code_version == "1"


async def is_there(engine: Engine, target: str) -> bool:
    return await hooks.has_row(engine, target)


async def test_N3_pinned_execution_that_was_latest_before_goes_on_as_latest(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1"), work)
    await old.start("order", workflow_id="o")
    await eventually(lambda: has_begun(old))
    await cluster.shut_down("old")
    new = await cluster.open("new", define("2", "pinned"), work)
    await new.signal_workflow("o", "word", "end")

    assert await new.handle("o").result() == ["2 begun"]


async def test_N3_pinned_execution_is_left_alone_in_one_process_too(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1", "pinned"), work)
    await engine.start("order", workflow_id="o")
    await eventually(lambda: has_begun(engine))
    await engine.restart(workflows=[define("2", "pinned")])
    await engine.signal_workflow("o", "word", "end")
    await engine.start("order", workflow_id="n")
    await engine.signal_workflow("n", "word", "end")
    assert await engine.handle("n").result() == ["2 begun"]
    assert await has_status(engine, Status.SUSPENDED)
    await engine.restart(workflows=[define("1", "pinned")])

    assert await engine.handle("o").result() == ["1 begun"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"versioning": "newest"}, r"^Expected versioning=… of a workflow to be 'latest' or 'pinned', but it is 'newest'\."),
        ({"versioning": "pinned"}, r"^Expected a workflow with versioning='pinned' to have a version, but it has none\."),
        ({"versioning": "pinned", "version": "a\tb"}, r"^Expected the version of a pinned workflow to be text"),
        ({"versioning": None}, r"^Expected versioning=… of a workflow to be 'latest' or 'pinned', but it is None\."),
    ],
)
def test_policies_that_cannot_be_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises((InvalidConfiguration, InvalidIdentifier), match=error):
        workflow(**options)


# --- blocked ---


async def test_N3_execution_that_one_version_blocked_is_tried_by_another(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1"), work)
    await old.start("order", workflow_id="o")
    await eventually(lambda: has_begun(old))
    await cluster.shut_down("old")
    new = await cluster.open("new", define_broken("2"), work)
    await new.signal_workflow("o", "word", "next")
    await eventually(lambda: has_status(new, Status.BLOCKED))

    again = await cluster.open("again", define_broken("2"), work)
    assert again.recovery_report is not None
    assert again.recovery_report.blocked == 1
    await eventually(lambda: hooks.is_idle(again))
    assert await has_status(again, Status.BLOCKED), "the same code would fail in the same way"
    await cluster.shut_down("new")
    await cluster.shut_down("again")
    mended = await cluster.open("mended", define("3"), work)
    await mended.signal_workflow("o", "word", "end")
    assert await mended.handle("o").result() == ["3 begun", "3 next"]


async def test_N3_retry_by_name_tries_in_any_case(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1"), work)
    await engine.start("order", workflow_id="o")
    await eventually(lambda: has_begun(engine))
    await engine.restart(workflows=[define_broken("2")])
    await engine.signal_workflow("o", "word", "next")
    version = (await hooks.find_row(engine, "o")).state_version

    await engine.restart(workflows=[define_broken("2")])
    await engine.settle()
    row = await hooks.find_row(engine, "o")
    assert (row.status, row.state_version) == ("blocked", version), "nobody tried"
    assert await engine.retry_blocked("o")
    await engine.settle()
    row = await hooks.find_row(engine, "o")
    assert (row.status, row.state_version) == ("blocked", version + 2), "tried, and blocked again"


async def test_N3_code_without_a_version_is_tried_again_by_each_restart(open_engine: OpenEngine) -> None:
    engine = await open_engine(define(""), work)
    await engine.start("order", workflow_id="o")
    await eventually(lambda: has_begun(engine))
    await engine.restart(workflows=[define_broken("")])
    await engine.signal_workflow("o", "word", "end")
    assert await has_status(engine, Status.BLOCKED)
    await engine.restart(workflows=[define("")])

    assert await engine.handle("o").result() == [" begun"]


async def test_N3_node_that_skips_a_blocked_execution_takes_it_once_another_has_mended_it() -> None:
    nodes = Nodes()
    try:
        broken = await nodes.open("broken", [define("1")], [work])
        await broken.start("order", workflow_id="o")
        await nodes.clock.settle()
        await nodes.kill("broken")
        first = await nodes.open("first", [define_broken("2")], [work])
        await first.signal_workflow("o", "word", "next")
        await nodes.clock.settle()
        assert hooks.skipped_by(first)
        await nodes.open("mended", [define("3")], [work])
        await nodes.clock.settle()
        assert await has_status(first, Status.SUSPENDED)
        await nodes.kill("mended")
        row = await hooks.find_row(first, "o")
        await nodes.put_into_inbox(row.execution_id, Signal(name="word", value=payloads.encode("more", "it")))
        await nodes.clock.advance(seconds=60)
        await nodes.clock.settle()

        assert await has_status(first, Status.BLOCKED), "it took its turn again, with code that does not fit"
    finally:
        await nodes.close()


async def test_blocked_by_a_version_that_nobody_has_any_more_stays_for_whoever_knows_it(cluster: Cluster) -> None:
    old = await cluster.open("old", define("1"), work)
    await old.start("order", workflow_id="o")
    await eventually(lambda: has_begun(old))
    await cluster.shut_down("old")
    new = await cluster.open("new", define_broken("2"), work)
    await new.signal_workflow("o", "word", "next")
    await eventually(lambda: has_status(new, Status.BLOCKED))
    stranger = await cluster.open("stranger", work)

    assert stranger.recovery_report is not None
    await asyncio.sleep(0)
    assert await has_status(stranger, Status.BLOCKED)
    assert await stranger.terminate("o")
    with pytest.raises(Exception, match="terminated"):
        await new.handle("o").result()


async def test_first_turn_of_a_broken_version_fails_and_is_not_blocked(cluster: Cluster) -> None:
    @workflow(name="order", version="1")
    async def wrong(ctx: Context) -> None:
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)

    one = await cluster.open("one", wrong)
    with pytest.raises(WorkflowFailed, match="ForbiddenInWorkflow"):
        await (await one.start(wrong)).result()
