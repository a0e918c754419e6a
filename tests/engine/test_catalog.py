"""The catalog: versions of one workflow side by side, and definitions that come and go while an engine runs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Engine, Status, WorkflowHandle, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core.envelopes import Start
from holdfast.core.execution import Execution
from holdfast.core.payloads import NULL
from holdfast.engine.catalog import Catalog
from holdfast.errors import DuplicateName, InvalidDefinition, InvalidIdentifier, UnknownWorkflow
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually


@activity
async def work(name: str) -> str:
    return name


def define(version: str = "", versioning: str = "latest", name: str = "order") -> Workflow[..., Any]:
    """A workflow whose code tells its version at each step; it fits every other version."""

    @workflow(name=name, version=version, versioning=versioning)
    async def order(ctx: Context) -> list[str]:
        told = [f"{version} {await ctx.run(work, 'begun')}"]
        while (word := await ctx.wait_for_signal("word", str)) != "end":
            told.append(f"{version} {await ctx.run(work, word)}")
        return told

    return order


def execution_of(version: str, *, pinned: bool) -> Execution:
    start = Start(execution_id="e", workflow_id="w", workflow="order", input=NULL, code_version=version, pinned=pinned)
    return Execution.register("default", start, 0)


async def has_begun(engine: Engine, target: str = "o") -> bool:
    return (await engine.query_status(target)).waiting_for == "signal word"


async def missing(engine: Engine, target: str = "o") -> str | None:
    return (await engine.query_status(target)).missing_definition


# --- what is found ---


def test_the_newest_version_is_the_one_that_was_added_last() -> None:
    old, new = define("1"), define("2")

    assert Catalog([old, new]).find("order") is new
    assert Catalog([new, old]).find("order") is old


def test_adding_a_version_again_makes_it_the_newest() -> None:
    old, new = define("1"), define("2")
    catalog = Catalog([old, new])

    catalog.add(old)

    assert catalog.find("order") is old
    assert catalog.versions == {"order": ["2", "1"]}


def test_removing_the_newest_version_makes_the_one_before_it_the_newest() -> None:
    old, new = define("1"), define("2")
    catalog = Catalog([old, new])

    catalog.remove("order", "2")

    assert catalog.find("order") is old


def test_pinned_execution_is_of_its_version_and_any_other_of_the_newest() -> None:
    old, new = define("1"), define("2")
    catalog = Catalog([old, new])

    assert catalog.find_for(execution_of("1", pinned=True)) is old
    assert catalog.find_for(execution_of("1", pinned=False)) is new
    assert catalog.find_for(execution_of("3", pinned=True)) is None


def test_another_function_of_the_same_name_and_version_is_refused() -> None:
    catalog = Catalog([define("1"), define("2")])

    with pytest.raises(DuplicateName, match=r"two are called 'order' in version '2': .*define.*order.*own version='…'\.$"):
        catalog.add(define("2"))


def test_definition_of_one_org_comes_before_that_of_all() -> None:
    everybodys, own = define("1"), define("7")
    own.org = "acme"  # type: ignore[misc]  # only definitions of other kinds have one
    catalog = Catalog([everybodys])
    catalog.add(own)

    assert catalog.find("order", org="acme") is own
    assert catalog.find("order", org="others") is everybodys
    catalog.remove("order", org="acme")
    assert catalog.find("order", org="acme") is everybodys


def test_unknown_version_is_refused_with_the_versions_there_are() -> None:
    catalog = Catalog([define(""), define("2")])

    with pytest.raises(UnknownWorkflow, match=r"^Expected version '3' of workflow 'order' .* \(known versions: one without"):
        catalog.find("order", "3")
    with pytest.raises(UnknownWorkflow, match="'2'"):
        catalog.make_program(execution_of("1", pinned=True))
    with pytest.raises(UnknownWorkflow, match="'2'"):
        catalog.remove("order", "3")
    with pytest.raises(UnknownWorkflow, match=r"\(known: order\)"):
        catalog.remove("bill")
    with pytest.raises(InvalidIdentifier, match="the version of a workflow"):
        catalog.find("order", "")


def test_what_is_no_workflow_cannot_be_added() -> None:
    engine = Engine("memory://")

    with pytest.raises(InvalidDefinition, match="decorated with @workflow"):
        engine.add_workflow(work)  # type: ignore[arg-type]  # on purpose


# --- versions side by side ---


async def test_N3_versions_side_by_side_each_end_what_they_began(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1", "pinned"), work)
    await engine.start("order", workflow_id="o")
    await eventually(lambda: has_begun(engine))
    await engine.restart(workflows=[define("1", "pinned"), define("2", "pinned")])
    await engine.start("order", workflow_id="n")
    for target in ("o", "n"):
        await engine.signal_workflow(target, "word", "next")
        await engine.signal_workflow(target, "word", "end")

    assert await engine.handle("o").result() == ["1 begun", "1 next"]
    assert await engine.handle("n").result() == ["2 begun", "2 next"]


async def test_start_with_a_version_is_pinned_to_it(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1"), define("2"), work)
    await engine.start("order", workflow_id="o", version="1")
    await engine.signal_with_start_workflow("s", "order", signal_name="word", signal_value="more", version="1")
    await engine.start("order", workflow_id="n")
    await engine.settle()
    await engine.restart()
    for target in ("o", "s", "n"):
        await engine.signal_workflow(target, "word", "end")

    assert await engine.handle("o").result() == ["1 begun"]
    assert await engine.handle("s").result() == ["1 begun", "1 more"]
    assert await engine.handle("n").result() == ["2 begun"]
    assert (await engine.query_status("o")).code_version == "1"


async def test_start_in_a_transaction_may_ask_for_a_version(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1"), define("2"), work)

    def write(_connection: Any, todo: Any) -> None:
        todo.start("order", workflow_id="o", version="1")
        todo.signal_with_start("s", "order", signal_name="word", signal_value="end", version="1")

    async def write_async(connection: Any, todo: Any) -> None:
        write(connection, todo)

    await engine.transaction(write_async if engine.store.__module__.startswith("holdfast.store.postgres") else write)
    await engine.settle()
    await engine.signal_workflow("o", "word", "end")

    assert await engine.handle("o").result() == ["1 begun"]
    assert await engine.handle("s").result() == ["1 begun"]


async def test_start_with_an_unknown_version_is_refused_and_stores_nothing(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1"), define("2"), work)

    with pytest.raises(UnknownWorkflow, match=r"\(known versions: '1', '2'\)"):
        await engine.start("order", version="3")

    assert await engine.list() == []


async def test_child_and_next_run_are_of_the_newest_version(open_engine: OpenEngine) -> None:
    @workflow(version="1")
    async def parent(ctx: Context, runs: int = 2) -> Any:
        if runs > 1:
            ctx.continue_as(runs - 1)
        return await ctx.run_child("order")

    engine = await open_engine(parent, define("1", "pinned"), define("2", "pinned"), work)
    handle = await engine.start(parent, version="1")
    await engine.settle()
    [child] = await engine.list(workflow="order")
    await engine.signal_workflow(child.workflow_id, "word", "end")

    assert await handle.result() == ["2 begun"]


async def test_C5_next_run_of_a_pinned_run_is_of_the_newest_version(open_engine: OpenEngine) -> None:
    def define_chain(version: str) -> Workflow[..., Any]:
        @workflow(name="chain", version=version, versioning="pinned")
        async def chain(ctx: Context, runs: int = 2) -> str:
            await ctx.wait_for_signal("go")
            if runs > 1:
                ctx.continue_as(runs - 1)
            return version

        return chain

    engine = await open_engine(define_chain("1"))
    handle: WorkflowHandle[Any] = await engine.start("chain", workflow_id="chain")
    await engine.settle()
    engine.add_workflow(define_chain("2"))

    await engine.signal_workflow("chain", "go")
    assert (await handle.status()).code_version == "1", "which it was pinned to"
    await engine.signal_workflow("chain", "go")

    assert await engine.handle("chain").result() == "2"


# --- coming and going ---


async def test_added_version_goes_on_with_what_is_not_pinned(open_engine: OpenEngine) -> None:
    engine = await open_engine(define("1"), work)
    for target, version in (("o", None), ("p", "1")):
        await engine.start("order", workflow_id=target, version=version)
    await engine.settle()
    engine.add_workflow(define("2"))
    for target in ("o", "p"):
        await engine.signal_workflow(target, "word", "end")

    assert await engine.handle("o").result() == ["2 begun"], "its program in memory was of the old version"
    assert await engine.handle("p").result() == ["1 begun"]


async def test_D1_execution_of_a_removed_workflow_waits_with_what_arrives(open_engine: OpenEngine) -> None:
    @workflow
    async def nap(ctx: Context) -> list[str]:
        await ctx.sleep(60)
        return ctx.drain_signals("word", str)

    engine = await open_engine(nap)
    await engine.start(nap, workflow_id="o")
    await engine.settle()
    assert await missing(engine) is None
    engine.remove_workflow("nap")
    await engine.signal_workflow("o", "word", "kept")
    await engine.clock.advance(seconds=120)

    info = await engine.query_status("o")
    assert (info.status, info.missing_definition) == (Status.SUSPENDED, "workflow 'nap' is on no living node")
    assert [one.missing_definition for one in await engine.list()] == [info.missing_definition]
    assert await engine.dead_letters() == []
    with pytest.raises(UnknownWorkflow):
        await engine.start("nap")

    engine.add_workflow(nap)
    await engine.settle()
    assert await engine.handle("o").result() == ["kept"]
    assert await missing(engine) is None, "of closed ones nothing is missing"


async def test_pinned_execution_waits_while_its_version_is_removed(open_engine: OpenEngine) -> None:
    old, new = define("1", "pinned"), define("2", "pinned")
    engine = await open_engine(old, work)
    await engine.start("order", workflow_id="o")
    await engine.settle()
    engine.add_workflow(new)
    engine.remove_workflow("order", "1")
    await engine.signal_workflow("o", "word", "end")
    await engine.settle()
    assert await missing(engine) == "workflow 'order' version '1' is on no living node"

    engine.add_workflow(old)
    await engine.settle()
    assert await engine.handle("o").result() == ["1 begun"]


async def test_removed_workflow_can_be_terminated(open_engine: OpenEngine) -> None:
    engine = await open_engine(define(), work)
    await engine.start("order", workflow_id="o")
    await engine.settle()
    engine.remove_workflow("order")

    assert await engine.terminate("o")
    assert (await engine.query_status("o")).status is Status.TERMINATED


async def test_nodes_show_what_was_added_and_removed(open_engine: OpenEngine) -> None:
    engine = await open_engine(define(), work)
    engine.add_workflow(define(name="bill"))
    engine.remove_workflow("order")
    if not engine.store.exclusive:
        await engine.clock.advance(seconds=30_000_000)
    await engine.settle()

    [node] = await engine.nodes()
    assert list(node.workflows) == ["bill"]


async def test_workflows_may_come_and_go_before_the_engine_opens() -> None:
    engine = Engine("memory://", workflows=[define(name="bill")], activities=[work], queues=["default"])
    engine.add_workflow(define("1"))
    engine.remove_workflow("bill")

    assert engine.routes.listed == {"default\torder", "default\torder\t1", "default\tbpmn/1"}


# --- several nodes ---


async def test_node_takes_what_it_was_given_while_it_runs(cluster: Cluster) -> None:
    one = await cluster.open("one", define(), work)
    two = await cluster.open("two", work)
    await one.start("order", workflow_id="o")
    await eventually(lambda: has_begun(one))
    await cluster.shut_down("one")
    await two.signal_workflow("o", "word", "end")
    await eventually(lambda: is_missing(two))

    two.add_workflow(define())
    assert await two.handle("o").result() == [" begun"]


async def test_execution_is_not_missing_what_another_living_node_announces(cluster: Cluster) -> None:
    one = await cluster.open("one", work)
    two = await cluster.open("two", define("1", "pinned"), define("2", "pinned"), work)
    await two.start("order", workflow_id="o", version="1")
    await eventually(lambda: has_begun(one))
    assert await missing(one) is None

    two.remove_workflow("order", "1")
    await eventually(lambda: is_missing(one))
    assert await missing(one) == await missing(two) == "workflow 'order' version '1' is on no living node"

    await two.signal_workflow("o", "word", "end")
    two.add_workflow(define("1", "pinned"))
    assert await one.handle("o").result() == ["1 begun"]


async def test_execution_on_a_queue_that_nobody_serves_says_so(cluster: Cluster) -> None:
    one = await cluster.open("one", define(), work)
    await one.start("order", workflow_id="o", queue="gpu")

    await eventually(lambda: is_missing(one))
    assert await missing(one) == "workflow 'order' is on no living node that serves queue 'gpu'"


async def is_missing(engine: Engine) -> bool:
    return await missing(engine) is not None
