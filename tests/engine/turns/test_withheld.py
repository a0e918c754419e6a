"""D2: an execution that takes no turns costs the others nothing, however much waits for it; and none of that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ChildHandle, Context, Status, WorkflowTerminated, activity, workflow
from holdfast.core import codec, payloads
from holdfast.core.envelopes import Signal, Terminate
from holdfast.engine.stores import make_store
from holdfast.engine.turns.claims import ORDER_PREFIX
from holdfast.engine.use_cases.delivery import LONGEST_REASON
from holdfast.store.contract import LONGEST_ORDER, UnroutedWrite
from holdfast.store.rows import InboxRow
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.counting_store import InboxReads
from tests.eventually import eventually

MENDED: list[bool] = []


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    MENDED.clear()
    yield
    MENDED.clear()


@workflow
async def order(ctx: Context) -> list[str]:
    """Collects words; its code is broken until it is mended."""
    await ctx.wait_for_signal("go")
    if not MENDED:
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)
    words = []
    while (word := await ctx.wait_for_signal("word", str)) != "end":
        words.append(word)
    return words


@workflow
async def parent(ctx: Context) -> None:
    _child: ChildHandle[Any] = ctx.start_child("order", workflow_id="order", parent_close="terminate")
    await ctx.wait_for_signal("close")


@workflow
async def sender(ctx: Context, words: list[str]) -> None:
    await asyncio.gather(*(ctx.signal_external_workflow("order", "word", word) for word in words))


@activity
async def note(word: str) -> str:
    return word


@workflow
async def bystander(ctx: Context) -> str:
    return await ctx.run(note, "fine")


async def open_reading(open_engine: OpenEngine, url: str, **options: Any) -> tuple[TestEngine, InboxReads]:
    store = InboxReads(make_store(url))
    engine = await open_engine(order, parent, sender, bystander, note, store=store, **options)
    return engine, store


async def block(engine: TestEngine, *words: str) -> str:
    """A blocked execution, for which these words wait; its id."""
    await engine.start(order, workflow_id="order")
    await engine.signal_workflow("order", "go")
    for word in words:
        await engine.signal_workflow("order", "word", word)
    await engine.settle()
    info = await engine.query_status("order")
    assert info.status is Status.BLOCKED
    return info.execution_id


async def mend(engine: TestEngine) -> list[str]:
    """The words that the execution takes once its code is mended."""
    MENDED.append(True)
    await engine.retry_blocked("order")
    await engine.signal_workflow("order", "word", "end")
    words: list[str] = await engine.handle("order").result()
    return words


async def list_words(engine: TestEngine) -> list[str]:
    """The words among the dead letters."""
    envelopes = [codec.decode_envelope(letter.body) for letter in await engine.store.list_dead_letters("default")]
    return [payloads.decode(one.value, str, "the word") for one in envelopes if type(one) is Signal and one.name == "word"]


# --- what it costs ---


async def test_D2_signals_to_a_blocked_execution_do_not_read_what_waits_for_it(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url)
    execution_id = await block(engine, "a", "b", "c")
    store.rows = store.looks = 0

    for target in ["order", execution_id] * 5:
        await engine.signal_workflow(target, "word", "more")
        await engine.signal_with_start_workflow("order", order, signal_name="word", signal_value="more")
        await engine.cancel(target)
    await engine.settle()

    assert store.rows == 0
    assert store.looks == 0, "nobody can take what was put into the inbox"


async def test_D2_signals_to_an_execution_on_another_queue_do_not_read_what_waits(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url, queues=["default"])
    await engine.start(order, workflow_id="order", queue="elsewhere")
    await engine.signal_workflow("order", "go")
    await engine.settle()
    execution_id = (await engine.query_status("order")).execution_id
    store.rows = 0

    for target in ["order", execution_id] * 5:
        await engine.signal_workflow(target, "word", "more")
    await engine.settle()

    assert store.rows == 0


async def test_D2_signals_to_an_execution_without_its_code_do_not_read_what_waits(open_engine: OpenEngine, url: str) -> None:
    MENDED.append(True)
    engine, store = await open_reading(open_engine, url)
    await engine.start(order, workflow_id="order")
    execution_id = (await engine.query_status("order")).execution_id
    engine.remove_workflow("order")
    await engine.signal_workflow("order", "go")
    await engine.settle()
    store.rows = 0

    for target, word in [("order", "a"), (execution_id, "b"), ("order", "c"), (execution_id, "end")]:
        await engine.signal_workflow(target, "word", word)
    hooks.unskip(engine)
    await engine.settle()

    assert store.rows == 0
    engine.add_workflow(order)
    assert await engine.handle("order").result() == ["a", "b", "c"]


async def test_D2_signals_to_a_pinned_execution_without_its_version_do_not_read_what_waits(
    open_engine: OpenEngine, url: str
) -> None:
    @workflow(name="pinned", version="1", versioning="pinned")
    async def old(ctx: Context) -> list[str]:
        return [await ctx.wait_for_signal("word", str) for _ in range(3)]

    @workflow(name="pinned", version="2", versioning="pinned")
    async def new(ctx: Context) -> list[str]:
        return []

    engine, store = await open_reading(open_engine, url)
    engine.add_workflow(old)
    await engine.start("pinned", workflow_id="pinned")
    engine.add_workflow(new)
    engine.remove_workflow("pinned", version="1")
    await engine.signal_workflow("pinned", "word", "a")
    await engine.settle()
    store.rows = 0

    for word in ("b", "c"):
        await engine.signal_workflow("pinned", "word", word)
    await engine.settle()

    assert store.rows == 0
    engine.add_workflow(old)
    assert await engine.handle("pinned").result() == ["a", "b", "c"]


async def test_D1_an_execution_without_its_code_is_terminated_with_what_waits(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    await engine.start(order, workflow_id="order")
    engine.remove_workflow("order")
    for word in ("a", "b"):
        await engine.signal_workflow("order", "word", word)

    assert await engine.terminate("order", "given up")
    await engine.settle()

    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert await list_words(engine) == ["a", "b"]
    assert (await engine.store.count()).inbox == 0


async def test_D2_looking_again_at_a_blocked_execution_reads_nothing(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url)
    execution_id = await block(engine, "a", "b", "c")
    before = -1
    while before != store.looks:  # a server's wake-ups for what was done may come late
        before = store.looks
        await asyncio.sleep(0.2)
    store.rows = store.looks = 0

    hooks.unskip(engine)
    await engine.settle()

    assert store.rows == 0
    assert store.looks <= 1 + 2 * store.max_transactions, "each worker finds it once, and finds nothing more after that"
    assert hooks.skipped_by(engine) == {execution_id}


async def test_D2_blocked_executions_do_not_hide_others_that_have_work(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url, batch_size=2)
    for number in range(5):
        await engine.start(order, workflow_id=f"order-{number}")
        await engine.signal_workflow(f"order-{number}", "go")
    late = await engine.start(order, workflow_id="order")
    await engine.settle()
    hooks.unskip(engine)
    execution_id = (await late.status()).execution_id
    await engine.store.deliver([InboxRow("default", execution_id, "", codec.encode(Terminate(reason="enough")))])

    hooks.look_for_work(engine)
    await engine.settle()

    assert (await late.status()).status is Status.TERMINATED


async def test_D2_what_others_send_by_workflow_id_is_read_once(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url)
    await block(engine)
    await engine.start(sender, ["a", "b", "c"])
    await engine.settle()
    store.rows = 0

    await engine.signal_workflow("order", "word", "d")
    hooks.unskip(engine)
    await engine.settle()

    assert store.rows == 0
    assert len((await engine.query_status("order")).inbox) == 5


async def test_requests_beside_a_look_still_find_the_order_to_terminate(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    execution_id = await block(engine, "a")
    order_row = InboxRow("default", execution_id, "", codec.encode(Terminate(reason="enough")))
    await engine.store.deliver([order_row])

    hooks.unskip(engine)
    signals = [asyncio.create_task(engine.signal_workflow(execution_id, "word", "b")) for _ in range(3)]
    await asyncio.gather(*signals, return_exceptions=True)
    await engine.settle()

    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert (await engine.store.count()).inbox == 0


# --- nothing is lost, and all of it is in order ---


async def test_S1_everything_that_waited_is_taken_in_order_after_a_retry(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    execution_id = await block(engine, "a", "b")
    await engine.start(sender, ["c", "d"])
    await engine.settle()
    await engine.signal_workflow(execution_id, "word", "e")
    hooks.unskip(engine)
    await engine.settle()
    await engine.signal_with_start_workflow("order", order, signal_name="word", signal_value="f")

    assert await mend(engine) == ["a", "b", "c", "d", "e", "f"]


async def test_S1_what_waited_for_another_queue_is_taken_in_order(open_engine: OpenEngine, url: str) -> None:
    MENDED.append(True)
    engine, store = await open_reading(open_engine, url, queues=["default"])
    await engine.start(order, workflow_id="order", queue="elsewhere")
    await engine.signal_workflow("order", "go")
    await engine.signal_workflow("order", "word", "a")
    await engine.start(sender, ["b", "c"])
    await engine.settle()
    store.rows = 0
    for word in ("d", "end"):
        await engine.signal_workflow("order", "word", word)
    await engine.settle()
    assert store.rows == 0
    hooks.change_options(engine, queues=["default", "elsewhere"])
    await engine.restart()

    assert await engine.handle("order").result() == ["a", "b", "c", "d"]


async def test_S4_a_request_id_that_is_used_twice_while_blocked_has_one_effect(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    await block(engine)
    for _ in range(3):
        answer = await engine.signal_workflow("order", "word", "once", request_id="r1")
        assert answer.signal_event_sequence is None
    for _ in range(2):
        started = await engine.signal_with_start_workflow(
            "order", order, signal_name="word", signal_value="started once", request_id="r2"
        )
        assert not started.workflow_created
    await engine.signal_workflow("order", "word", "other", request_id="r3")

    words = await mend(engine)

    assert words == ["once", "started once", "other"]


# --- given up ---


async def test_D1_terminating_a_blocked_execution_moves_all_that_waits_to_the_dead_letters(
    open_engine: OpenEngine, url: str
) -> None:
    engine, _ = await open_reading(open_engine, url)
    await block(engine, "a", "b", "c")

    assert await engine.terminate("order", "given up")

    with pytest.raises(WorkflowTerminated):
        await engine.handle("order").result()
    assert await list_words(engine) == ["a", "b", "c"]
    assert (await engine.store.count()).inbox == 0
    assert hooks.skipped_by(engine) == set()


async def test_D1_a_parent_that_closes_terminates_its_blocked_child(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    handle = await engine.start(parent)
    await engine.settle()
    for name, value in [("go", None), ("word", "a"), ("word", "b")]:
        await engine.signal_workflow("order", name, value)
    assert (await engine.query_status("order")).status is Status.BLOCKED

    await handle.signal("close")
    await engine.settle()

    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert await list_words(engine) == ["a", "b"]
    assert (await engine.store.count()).inbox == 0


async def test_D1_an_order_to_terminate_that_another_node_left_is_found(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url)
    execution_id = await block(engine, "a", "b")
    reason = "\x01" * LONGEST_REASON
    assert len(codec.encode(Terminate(reason=reason))) <= LONGEST_ORDER
    await store.deliver([InboxRow("default", execution_id, "", codec.encode(Terminate(reason=reason)))])
    await engine.signal_workflow("order", "word", "c")

    hooks.unskip(engine)
    await engine.settle()

    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert await list_words(engine) == ["a", "b", "c"]


async def test_D1_an_execution_on_another_queue_can_be_terminated_with_what_waits(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url, queues=["default"])
    await engine.start(order, workflow_id="order", queue="elsewhere")
    await engine.signal_workflow("order", "word", "a")
    await engine.signal_workflow("order", "word", "b")

    assert await engine.terminate("order", "given up")
    await engine.settle()

    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert await list_words(engine) == ["a", "b"]
    assert (await engine.store.count()).inbox == 0


async def test_a_start_in_place_of_a_blocked_execution_gives_up_what_waits(open_engine: OpenEngine, url: str) -> None:
    engine, _ = await open_reading(open_engine, url)
    execution_id = await block(engine, "a", "b")

    handle = await engine.start(order, workflow_id="order", on_open="terminate_existing")
    await engine.settle()

    assert handle.execution_id != execution_id
    assert (await engine.query_status(execution_id)).status is Status.TERMINATED
    assert await list_words(engine) == ["a", "b"]
    assert (await engine.store.count()).inbox == 0


async def test_a_damaged_row_for_a_blocked_execution_stays_until_it_goes_on(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_reading(open_engine, url)
    execution_id = await block(engine, "a")
    transaction = await store.begin()
    damaged = InboxRow("default", execution_id, "", b"{broken")
    await transaction.write([], UnroutedWrite(outgoing=[damaged]))
    await transaction.commit()
    hooks.unskip(engine)
    await engine.settle()
    assert await engine.store.list_dead_letters("default") == []

    words = await mend(engine)

    assert words == ["a"]
    assert [letter.body for letter in await engine.store.list_dead_letters("default")] == [b"{broken"]


def test_an_order_to_terminate_begins_with_the_prefix_whatever_its_reason() -> None:
    assert codec.encode(Terminate()).startswith(ORDER_PREFIX)
    assert codec.encode(Terminate(reason='"type":')).startswith(ORDER_PREFIX)


# --- several nodes ---


async def test_D1_another_node_terminates_an_execution_whose_code_is_not_there(cluster: Cluster) -> None:
    first = await cluster.open("a", order, note)
    await first.start(order, workflow_id="order")
    await cluster.shut_down("a")
    second = await cluster.open("b", bystander, note)
    for word in ("a", "b"):
        await second.signal_workflow("order", "word", word)

    assert await second.terminate("order", "given up")

    async def is_terminated() -> bool:
        return (await second.query_status("order")).status is Status.TERMINATED

    await eventually(is_terminated)
    assert (await second.store.count()).inbox == 0
    assert len(await second.store.list_dead_letters("default")) == 2


async def test_S1_signals_by_a_node_without_the_code_are_taken_in_order_by_one_that_has_it(cluster: Cluster) -> None:
    MENDED.append(True)
    first = await cluster.open("a", order, note)
    await first.start(order, workflow_id="order")
    await cluster.shut_down("a")
    second = await cluster.open("b", bystander, sender, note)
    await second.signal_workflow("order", "go")
    words = [f"{number}" for number in range(10)]
    for word in words:
        await second.signal_workflow("order", "word", word)
    await second.signal_workflow("order", "word", "end")

    third = await cluster.open("c", order, note)

    assert await third.handle("order").result() == words
