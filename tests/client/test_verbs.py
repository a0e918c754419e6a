"""Every verb, by every way to reach a database: in process, on PostgreSQL, by the owner's socket, on a file alone."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import InvalidRequest, WorkflowFailed, WorkflowHandle, WorkflowTerminated
from holdfast.core.lifecycle import Status
from holdfast.errors import (
    EncodingError,
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    InvalidIdentifier,
    WorkflowAlreadyOpen,
)
from tests.client.conftest import Way
from tests.client.workflows import Item, collect, order

AT = datetime(2030, 1, 2, tzinfo=UTC)


async def test_U1_a_start_by_name_and_a_signal_lead_to_a_result(way: Way) -> None:
    verbs = way.verbs

    handle: WorkflowHandle[Any] = await verbs.start("collect", 2, workflow_id="c", metadata={"channel": "web"})
    again: WorkflowHandle[Any] = await verbs.start("collect", 2, workflow_id="c")
    await verbs.signal_workflow("c", "value", {"n": [1, 2.5, None]})
    await handle.signal("value", "two", request_id="r")
    await handle.signal("value", "two", request_id="r")
    await way.work("c")

    assert (handle.created, again.created) == (True, False)
    assert again.execution_id == handle.execution_id
    assert await handle.result() == [{"n": [1, 2.5, None]}, "two"]
    assert await verbs.query_result("c") == [{"n": [1, 2.5, None]}, "two"]
    assert (await verbs.query_status("c")).metadata == {"channel": "web"}


async def test_U1_a_start_by_function_checks_arguments_and_types_the_result(way: Way) -> None:
    handle: WorkflowHandle[Item] = await way.verbs.start(order, Item("tea", AT), 3, workflow_id="o")
    await way.verbs.signal_workflow("o", "paid", "yes")
    await way.work("o")

    assert await handle.result() == Item("tea*3", AT)
    assert await way.verbs.handle("o", workflow=order).result() == Item("tea*3", AT)
    with pytest.raises(InvalidArguments, match="item"):
        await way.verbs.start(order, "tea", workflow_id="o")  # type: ignore[arg-type]
    with pytest.raises(EncodingError):
        await way.verbs.start("collect", object())


async def test_U1_signal_with_start_takes_the_keywords_of_other_engines(way: Way) -> None:
    first = await way.verbs.signal_with_start_workflow(
        "c", "collect", workflow_input=2, signal_name="value", signal_value=1, request_id="r"
    )
    second = await way.verbs.signal_with_start_workflow("c", collect, 2, signal_name="value", signal_value=2)
    await way.work("c")

    assert (first.workflow_created, second.workflow_created) == (True, False)
    assert first.workflow_execution_id == second.workflow_execution_id
    assert await way.verbs.handle(first.workflow_execution_id).result() == [1, 2]


async def test_S1_signals_of_one_client_arrive_in_the_order_in_which_they_were_sent(way: Way) -> None:
    count = 200
    handle: WorkflowHandle[Any] = await way.verbs.start("collect", count, workflow_id="c")

    await asyncio.gather(*(way.verbs.signal_workflow("c", "value", number) for number in range(count)))
    await way.work("c")

    assert await handle.result() == list(range(count))


async def test_U1_executions_are_cancelled_and_terminated(way: Way) -> None:
    one: WorkflowHandle[Any] = await way.verbs.start("collect", 1)
    two: WorkflowHandle[Any] = await way.verbs.start("collect", 1)

    assert await one.terminate("enough")
    assert await way.verbs.cancel(str(two.execution_id))
    with pytest.raises(WorkflowTerminated, match="enough"):
        await one.result()
    assert not await one.terminate("enough")
    with pytest.raises(ExecutionClosed):
        await one.signal("value", 1)
    assert (await one.status()).status is Status.TERMINATED


async def test_U1_errors_have_their_types_and_fields(way: Way) -> None:
    handle: WorkflowHandle[Any] = await way.verbs.start("fails", workflow_id="f")
    with contextlib.suppress(WorkflowFailed):
        await way.work("f")
    with pytest.raises(WorkflowFailed) as failed:
        await handle.result()
    with pytest.raises(WorkflowFailed):
        await way.verbs.query_result("f")
    await way.verbs.start("collect", 1, workflow_id="c")

    assert (failed.value.type, failed.value.details) == ("OutOfStock", {"left": 0})
    assert failed.value.execution_id == handle.execution_id
    with pytest.raises(WorkflowAlreadyOpen):
        await way.verbs.start("collect", 1, workflow_id="c", on_open="fail")
    with pytest.raises(ExecutionNotFound):
        await way.verbs.query_status("nobody")
    with pytest.raises(ExecutionNotFound):
        await way.verbs.handle("nobody").result()
    with pytest.raises(InvalidIdentifier):
        await way.verbs.signal_workflow("c", "")


async def test_U1_what_there_is_can_be_listed_and_read(way: Way) -> None:
    handle: WorkflowHandle[Any] = await way.verbs.start(
        "collect", 1, workflow_id="c", idempotency_key="k", idempotency_ttl=timedelta(hours=1)
    )
    repeated: WorkflowHandle[Any] = await way.verbs.start("collect", 1, workflow_id="other", idempotency_key="k")
    await way.verbs.start("collect", 1, workflow_id="d")
    await way.verbs.signal_workflow("c", "value", 1)
    await way.work("c")
    await handle.result()

    listed = await way.verbs.list(workflow=collect, status=[Status.COMPLETED])
    assert repeated.execution_id == handle.execution_id
    assert [info.workflow_id for info in listed] == ["c"]
    assert len(await way.verbs.list(limit=1)) == 1
    with pytest.raises(InvalidArguments):
        await way.verbs.list(limit=0)
    assert (await way.verbs.history("c")).kinds[-1] == "WorkflowCompleted"
    assert len(await way.verbs.nodes()) >= 1


async def test_U1_orgs_do_not_see_each_other(way: Way) -> None:
    await way.verbs.start("collect", 1, workflow_id="c", org="blue")

    assert await way.verbs.list(org="red") == []
    with pytest.raises(ExecutionNotFound):
        await way.verbs.signal_workflow("c", "value", 1, org="red")
    with pytest.raises(ExecutionNotFound):
        await way.verbs.query_status("c", org="red")
    assert (await way.verbs.query_status("c", org="blue")).org == "blue"


async def test_U1_dead_letters_are_listed_requeued_and_discarded(way: Way) -> None:
    assert await way.verbs.dead_letters() == []
    assert await way.verbs.requeue_dead_letters([1]) == 0
    assert await way.verbs.discard_dead_letters([1]) == 0
    await way.verbs.start("collect", 1, workflow_id="c")
    assert not await way.verbs.retry_blocked("c")


async def test_U1_a_client_is_no_node(way: Way) -> None:
    await way.verbs.start("collect", 1)

    assert len(await way.verbs.nodes()) == 1


async def test_U1_text_that_is_not_valid_unicode_is_refused_by_every_way(way: Way) -> None:
    await way.verbs.start(collect, 1, workflow_id="c")
    for call in (
        way.verbs.start(collect, 1, workflow_id="\ud800"),
        way.verbs.signal_workflow("c", "value", 1, request_id="\ud800"),
        way.verbs.cancel("c", "\ud800"),
        way.verbs.query_status("\ud800"),
        way.verbs.list(workflow_id_prefix="\ud800"),
    ):
        with pytest.raises(InvalidRequest):
            await call
