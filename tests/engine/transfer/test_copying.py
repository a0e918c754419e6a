"""Executions are exported and imported one by one, by engines that work meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import Broadcast, Context, Engine, Retry, activity, event, workflow
from holdfast.core import codec
from holdfast.core.envelopes import Signal
from holdfast.core.execution import AttemptState, Details
from holdfast.core.payloads import encode as encode_payload
from holdfast.engine.stores import make_store
from holdfast.engine.transfer.copying import import_executions
from holdfast.engine.transfer.lines import read_line, write_line
from holdfast.errors import (
    CorruptStore,
    ExecutionNotFound,
    InvalidArguments,
    InvalidConfiguration,
    WorkflowAlreadyOpen,
)
from holdfast.store.contract import UnroutedWrite
from holdfast.store.rows import InboxRow
from holdfast.store.transfer import CopyResult, ExecutionCopy
from tests.engine.support.diagrams import make_diagram
from tests.engine.support.held_activities import Door
from tests.engine.transfer.databases import opened
from tests.eventually import eventually
from tests.store.builders import (
    commit,
    id_of,
    make_history,
    make_offer,
    make_offer_timer,
    make_retry,
    make_row,
    make_signal,
    make_timer,
)
from tests.store.everything import open_movable
from tests.store.topics import event as make_event
from tests.store.topics import message as make_message

doors: list[Door] = []
"""The one that the test at hand has put up last."""


@activity(retry=Retry(max_attempts=1))
async def pass_door(who: str) -> str:
    await doors[-1].wait(who)
    return f"{who} passed"


@workflow
async def enter(ctx: Context, who: str) -> str:
    return await ctx.run(pass_door, who)


@workflow
async def collect(ctx: Context, count: int) -> list[str]:
    return [await ctx.wait_for_signal("word", str) for _ in range(count)]


@workflow
async def pass_on(ctx: Context, words: list[str]) -> list[str]:
    """Takes two words, each in a run of its own."""
    words = [*words, await ctx.wait_for_signal("word", str)]
    if len(words) < 2:
        ctx.continue_as(words)
    return words


@workflow
async def nap(ctx: Context, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "slept"


@event
@dataclass
class Receipt:
    number: int


@workflow
async def reach(ctx: Context) -> list[Any]:
    """Waits for a message and a broadcast signal at once, then for an event that was sent to it before."""
    paid, go = await asyncio.gather(ctx.wait_for_message("paid", "k7"), ctx.wait_for_broadcast("go"))
    return [paid, go, await ctx.wait_for_event(Receipt)]


@workflow
async def receive(ctx: Context) -> str:
    return str(await ctx.wait_for_message("paid", "k7"))


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of database to import into."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'target.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def door() -> Door:
    """Where activities wait."""
    doors.append(Door())
    return doors[-1]


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine to export from."""
    async with make_engine(f"sqlite:///{tmp_path / 'source.db'}") as engine:
        yield engine


def make_engine(url: str, **options: Any) -> Engine:
    return Engine(
        url, workflows=[enter, collect, pass_on, nap, reach, receive], activities=[pass_door], shutdown_grace=0.01, **options
    )


async def has_continued(engine: Engine, workflow_id: str, first: str | None) -> bool:
    return (await engine.query_status(workflow_id)).execution_id != first


async def has_waits(engine: Engine, execution_id: str, count: int) -> bool:
    """Whether an execution has so many subscriptions."""
    return len(await engine.store.list_subscriptions("default", execution_id)) == count


def strip_ids(copy: ExecutionCopy) -> ExecutionCopy:
    return replace(
        copy,
        pending=tuple(replace(row, id=0) for row in copy.pending),
        publications=tuple(replace(row, id=0) for row in copy.publications),
    )


async def export(engine: Engine, *targets: str, **options: Any) -> list[bytes]:
    return [line async for line in engine.export_executions(*targets, **options)]


# --- what is open goes on -------------------------------------------------------------------------------------------------


async def test_open_executions_go_on_in_an_engine_that_works(source: Engine, target: str, door: Door) -> None:
    await source.start(collect, 2, workflow_id="words", metadata={"by": "ann"})
    await source.signal_workflow("words", "word", "one")
    await source.start(nap, 0.2, workflow_id="nap")
    await source.start(enter, "ann", workflow_id="door")
    await eventually(lambda: door.came == ["ann"], "the activity to begin")
    lines = await export(source)

    async with make_engine(target) as engine:
        report = await engine.import_executions(lines)

        assert (report.imported, report.skipped) == (3, 0)
        await eventually(lambda: door.came == ["ann", "ann"], "the activity to begin anew")
        door.open()
        assert await engine.handle("door").result() == "ann passed"
        assert await engine.handle("nap").result() == "slept"
        await engine.signal_workflow("words", "word", "two")
        assert await engine.handle("words").result() == ["one", "two"]
        assert (await engine.query_status("words")).metadata == {"by": "ann"}
        assert await engine.store.check() == []


async def test_an_activity_begins_anew_though_nodes_have_the_same_names(tmp_path: Path, target: str, door: Door) -> None:
    async with make_engine(f"sqlite:///{tmp_path / 'source.db'}", node="worker") as engine:
        await engine.start(enter, "ann", workflow_id="door")
        await eventually(lambda: door.came == ["ann"], "the activity to begin")
        lines = await export(engine)

    async with make_engine(target, node="worker") as engine:
        await engine.import_executions(lines)
        await eventually(lambda: len(door.came) == 2, "the activity to begin anew")
        door.open()
        assert await engine.handle("door").result() == "ann passed"
        (completed,) = [one.event for one in (await engine.history("door")).events if one.kind == "ActivityCompleted"]

    assert door.came == ["ann", "ann"]
    assert completed.attempt == 2  # type: ignore[union-attr]


async def test_what_is_imported_without_an_engine_goes_on_when_one_opens(source: Engine, target: str, door: Door) -> None:
    await source.start(enter, "ann", workflow_id="door")
    await eventually(lambda: door.came == ["ann"], "the activity to begin")
    lines = await export(source)
    store = make_store(target)
    await store.open()
    await import_executions(store, lines)
    await store.close()
    door.open()

    async with make_engine(target) as engine:
        assert await engine.handle("door").result() == "ann passed"
    assert door.came == ["ann", "ann"]


async def test_what_waits_for_an_execution_comes_with_it(tmp_path: Path, target: str) -> None:
    url = f"sqlite:///{tmp_path / 'source.db'}"
    async with make_engine(url) as engine:
        await engine.start(collect, 3, workflow_id="words")
        await engine.signal_workflow("words", "word", "one")
        execution_id = (await engine.query_status("words")).execution_id
    store = make_store(url)
    await store.open()
    bodies = [codec.encode(Signal(name="word", value=encode_payload(word, "the word"))) for word in ("two", "three")]
    assert await store.deliver([InboxRow("default", execution_id, "", body) for body in bodies]) == [True, True]
    (copy,) = await open_movable(store).read_copies([execution_id])
    await store.close()

    async with make_engine(target) as engine:
        await engine.import_executions([write_line(copy)])
        assert await engine.handle("words").result() == ["one", "two", "three"]


async def test_what_an_execution_waits_for_and_has_published_comes_with_it(tmp_path: Path, target: str) -> None:
    url = f"sqlite:///{tmp_path / 'source.db'}"
    async with make_engine(url) as engine:
        await engine.start(reach, workflow_id="reach")
        execution_id = (await engine.query_status("reach")).execution_id
        await eventually(lambda: has_waits(engine, execution_id, 2))
        kept = await engine.send_event_to("reach", Receipt(8))
    store = make_store(url)
    await store.open()
    outgoing = make_event("answered").row
    await commit(store, loose=UnroutedWrite(publications=[replace(outgoing, origin=execution_id)]))
    (copy,) = await open_movable(store).read_copies([execution_id])
    await store.close()
    assert kept.kept

    line = write_line(copy)
    assert read_line(line) == strip_ids(copy)
    async with make_engine(target) as engine:
        await engine.import_executions([line])
        assert (await engine.send_message("paid", "k7", 5)).delivered
        assert await engine.broadcast_signal("go", 6) == Broadcast(delivered=1)
        assert await engine.handle("reach").result() == [5, 6, {"number": 8}]


async def test_a_wait_that_the_history_does_not_know_is_refused(source: Engine, target: str) -> None:
    await source.start(reach, workflow_id="reach")
    execution_id = (await source.query_status("reach")).execution_id
    await eventually(lambda: has_waits(source, execution_id, 2))
    (exported,) = await export(source, "reach")
    line = json.loads(exported)
    line["subscriptions"][0]["name"] = "other"

    async with make_engine(target) as engine:
        with pytest.raises(InvalidArguments, match=r"does not leave it waiting for that - at `\$\.subscriptions\[0\]`"):
            await engine.import_executions([json.dumps(line)])


async def test_the_next_run_of_a_workflow_id_is_the_newest_there_too(source: Engine, target: str) -> None:
    for count in (0, 0, 1):
        await source.start(collect, count, workflow_id="words")
        if not count:
            await source.handle("words").result()
    listed = [one.execution_id for one in await source.list()]

    async with make_engine(target) as engine:
        await engine.import_executions(await export(source))

        assert [one.execution_id for one in await engine.list()] == listed
        await engine.signal_workflow("words", "word", "hello")
        assert await engine.handle("words").result() == ["hello"]


async def test_request_ids_of_runs_that_were_removed_come_with_the_open_run(urls: tuple[str, str]) -> None:
    async with make_engine(urls[0]) as source:
        first = await source.start(pass_on, [], workflow_id="words", idempotency_key="k")
        answer = await source.signal_workflow("words", "word", "one", request_id="r")
        await eventually(lambda: has_continued(source, "words", first.execution_id))
        assert await source.store.purge(source.clock.now() + 1, 10) == 1
        lines = await export(source)

    async with make_engine(urls[1]) as engine:
        await engine.import_executions(lines)
        assert await engine.signal_workflow("words", "word", "one", request_id="r") == answer
        again = await engine.start(pass_on, [], idempotency_key="k")
        assert again.workflow_id == "words"
        await engine.signal_workflow("words", "word", "two")
        assert await again.result() == ["one", "two"]


# --- refusals -------------------------------------------------------------------------------------------------------------


async def test_what_exists_is_refused_or_skipped_and_stays_as_it_is(source: Engine) -> None:
    await source.start(collect, 1, workflow_id="words")
    lines = await export(source)
    before = (await source.query_status("words"), (await source.history("words")).to_json())

    with pytest.raises(InvalidArguments, match=r"^Expected line 1 .*exists"):
        await source.import_executions(lines)
    report = await source.import_executions([*lines, b"\n", lines[0].decode()], skip_existing=True)

    assert (report.imported, report.skipped) == (0, 2)
    assert (await source.query_status("words"), (await source.history("words")).to_json()) == before


async def test_an_execution_does_not_come_in_beside_an_open_one_of_its_workflow_id(source: Engine, target: str) -> None:
    await source.start(collect, 0, workflow_id="words")
    await source.handle("words").result()
    lines = await export(source)

    async with make_engine(target) as engine:
        await engine.start(collect, 1, workflow_id="words")
        with pytest.raises(WorkflowAlreadyOpen, match="is open under its workflow id 'words'"):
            await engine.import_executions(lines)
        await engine.signal_workflow("words", "word", "x")
        await engine.handle("words").result()
        assert (await engine.import_executions(lines)).imported == 1


async def test_a_bad_line_leaves_those_before_it_and_changes_nothing_itself(source: Engine, target: str) -> None:
    for number in range(3):
        await source.start(collect, 1, workflow_id=f"words-{number}")
    lines = await export(source)
    bad = json.loads(lines[1])
    bad["history"][0]["type"] = "dreamt"

    async with make_engine(target) as engine:
        with pytest.raises(InvalidArguments, match=r"^Expected line 2 .*`\$\.history`"):
            await engine.import_executions([lines[0], json.dumps(bad), lines[2]])

        assert [one.workflow_id for one in await engine.list()] == ["words-0"]


async def test_export_refuses_what_is_not_there(source: Engine) -> None:
    with pytest.raises(ExecutionNotFound, match="'nobody'"):
        await export(source, "nobody")
    with pytest.raises(InvalidArguments, match="Expected status to be among"):
        await export(source, status="asleep")
    assert await export(source, status=["running", "failed"]) == []


async def test_export_tells_which_execution_cannot_be_read(source: Engine) -> None:
    row = make_row(1)
    damaged = replace(make_history(row.execution_id), body=b"no json")
    assert await open_movable(source.store).put_copy(ExecutionCopy(row, [damaged])) is CopyResult.DONE

    with pytest.raises(CorruptStore, match=f"Expected to export execution {row.execution_id}, but "):
        await export(source)


async def test_a_store_in_memory_exports_nothing() -> None:
    async with Engine("memory://") as engine:
        with pytest.raises(InvalidConfiguration, match="in memory"):
            await export(engine)


# --- lines ----------------------------------------------------------------------------------------------------------------


async def test_a_line_holds_all_of_an_execution(source: Engine) -> None:
    await source.start(nap, 60, workflow_id="nap", idempotency_key="key")
    await source.start(collect, 0, workflow_id="words")
    await source.handle("words").result()
    execution_ids = [one.execution_id for one in await source.list()]
    copies = await open_movable(source.store).read_copies(execution_ids)

    for copy in copies:
        assert read_line(write_line(copy)) == copy
    assert [len(copy.requests) for copy in copies] == [1, 0]


@workflow(name="changing")
async def before_change(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow(name="changing")
async def after_change(ctx: Context) -> None:
    await ctx.sleep(3600)


async def test_I2_a_retry_is_still_known_by_its_request_id_after_an_import(tmp_path: Path, target: str) -> None:
    url = f"sqlite:///{tmp_path / 'retried.db'}"
    async with Engine(url, workflows=[before_change]) as engine:
        await engine.start("changing", workflow_id="c")
    async with Engine(url, workflows=[after_change]) as engine:

        async def find_if_blocked() -> bool:
            return (await engine.query_status("c")).status == "blocked"

        await engine.signal_workflow("c", "go")
        await eventually(find_if_blocked)
        assert await engine.retry_blocked("c", request_id="r")
        await eventually(find_if_blocked)
        lines = await export(engine, "c")

    async with Engine(target, workflows=[before_change]) as engine:
        await engine.import_executions(lines)

        assert await engine.retry_blocked("c", request_id="r"), "the stored answer"
        assert (await engine.query_status("c")).status == "blocked", "and no second effect"
        assert await engine.retry_blocked("c", request_id="another")
        await engine.handle("c").result()


def test_what_cannot_be_read_in_an_inbox_is_kept_as_it_came() -> None:
    poison = InboxRow("default", id_of(1), "", b"\x00 no JSON \xff")
    inbox = [poison, make_signal("x"), replace(make_signal("y"), at=1_700_000_000_123_456)]

    line = write_line(ExecutionCopy(make_row(1), [make_history(id_of(1))], inbox=inbox, activities=[make_offer(1)]))

    again = read_line(line)
    assert again.inbox == inbox
    assert again.activities == [make_offer(1)]


def test_an_envelope_of_several_lines_becomes_one_line() -> None:
    spaced = b'{\n "type": "signal",\n "name": "x",\n "value": {"data": null}\n}'
    inbox = [InboxRow("default", id_of(1), "", spaced)]

    line = write_line(ExecutionCopy(make_row(1), [make_history(id_of(1))], inbox=inbox))

    assert b"\n" not in line
    (row,) = read_line(line).inbox
    assert codec.decode_envelope(row.body) == codec.decode_envelope(spaced)


def test_a_line_of_the_first_version_is_read_as_it_was_meant() -> None:
    row = make_row(
        1, nodes=("one", "two"), details=codec.encode(Details(attempts={7: AttemptState(attempt=2, offered=True)}))
    )
    timers = [make_timer(1, due=1), make_retry(2, due=2, attempt=3), make_offer_timer(3, due=3, attempt=2)]
    copy = ExecutionCopy(row, [make_history(row.execution_id)], timers, [], [], [])
    line = json.loads(write_line(copy))
    line["version"] = 1
    del line["row"]["nodes"]
    line["row"]["node"] = "one,two"
    for timer, attempt in zip(line["timers"], (0, 3, -2), strict=True):
        del timer["kind"]
        timer["attempt"] = attempt
    line["details"]["attempts"]["7"] = {"attempt": 2, "node": ",offered"}

    assert read_line(json.dumps(line).encode()) == copy


@pytest.mark.parametrize("damage", ['"attempt": "x"', '"attempt": null'])
def test_a_damaged_line_of_the_first_version_is_refused(damage: str) -> None:
    line = json.loads(write_line(ExecutionCopy(make_row(1), [make_history(id_of(1))], [make_timer(1, due=1)])))
    line["version"] = 1
    del line["timers"][0]["kind"]

    with pytest.raises(ValueError, match=r"\$\.timers"):
        read_line(json.dumps(line).replace('"attempt": 0', damage).encode())


async def test_a_paused_execution_stays_paused_where_it_is_imported(source: Engine, target: str) -> None:
    handle = await source.start(collect, 1, workflow_id="w")
    await handle.pause("audit", "ann")
    await handle.signal("word", "kept")

    lines = await export(source, "w")

    async with make_engine(target) as engine:
        await engine.import_executions(lines)
        status = await engine.query_status("w")
        assert (status.status, [(one.by, one.reason) for one in status.pauses]) == ("paused", [("ann", "audit")])
        assert await engine.resume("w")
        assert await engine.handle("w").result() == ["kept"]


async def make_line_with_outbox(source: Engine) -> bytes:
    """An exported execution that has just published a message, which is still in the outbox."""
    handle = await source.start(collect, 1, workflow_id="sender")
    (copy,) = await open_movable(source.store).read_copies([str(handle.execution_id)])
    row = replace(make_message("m1", "k7").row, origin=copy.row.execution_id, number=99)
    return write_line(replace(copy, publications=[row]))


async def test_what_an_imported_execution_has_to_publish_waits_for_no_heartbeat(source: Engine, target: str) -> None:
    line = await make_line_with_outbox(source)

    async with make_engine(target, heartbeat=300, lease=900) as engine:
        handle = await engine.start(receive, workflow_id="receiver")
        await eventually(lambda: has_waits(engine, str(handle.execution_id), 1), "it waits")
        await engine.import_executions([line])

        assert await handle.result(timeout=30) == "m1"


async def test_what_is_imported_beside_an_engine_is_published_by_it_at_once(source: Engine, postgres_url: str) -> None:
    line = await make_line_with_outbox(source)

    async with make_engine(postgres_url, heartbeat=300, lease=900) as engine:
        handle = await engine.start(receive, workflow_id="receiver")
        await eventually(lambda: has_waits(engine, str(handle.execution_id), 1), "it waits")
        async with opened(postgres_url) as store:
            await import_executions(store, [line])

            assert await handle.result(timeout=30) == "m1"


async def test_a_process_at_a_user_task_goes_on_where_it_is_imported(source: Engine, target: str) -> None:
    task = (
        '<bpmn:userTask id="work"><bpmn:extensionElements><zeebe:userTask/></bpmn:extensionElements>'
        "<bpmn:incoming>in</bpmn:incoming><bpmn:outgoing>out</bpmn:outgoing></bpmn:userTask>"
    )
    await source.deploy({"order.bpmn": make_diagram(work=task)})
    handle = await source.start("order", {}, workflow_id="w")
    await handle.wait_for(lambda status: status.active_task_id)

    lines = await export(source, "w")

    async with make_engine(target) as engine:
        await engine.import_executions(lines)
        [found] = await engine.tasks(queue="default")
        await engine.claim_task(found.task_id, by="ann")
        await engine.complete_task(found.task_id, {"done": 1}, by="ann")
        assert await engine.handle("w").result() == {"done": 1}
