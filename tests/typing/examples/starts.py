"""Starts by every entrance: what has `# refused` must be refused by every checker, and nothing else."""

from __future__ import annotations

from typing import Any, assert_type

from holdfast import (
    ActivityInfo,
    BoundWorkflow,
    Client,
    Engine,
    SignalWithStartResponse,
    SyncClient,
    SyncWorkflowHandle,
    TransactionWork,
    Workflow,
    WorkflowHandle,
)
from tests.typing.examples.workflows import Cart, named, order, ping, plain, ship


async def engine_starts(engine: Engine, anything: Any, some: Workflow[..., int]) -> None:
    handle = await engine.start(order, 1, "bob", workflow_id="o-1")
    assert_type(handle, WorkflowHandle[bool])
    assert_type(await handle.result(), bool)
    assert_type(await (await engine.start(ping)).result(), str)
    assert_type(await engine.start(order, 1), WorkflowHandle[bool])
    assert_type(await engine.start(order, 1, queue="q", org="o"), WorkflowHandle[bool])
    assert_type(await engine.start(order, number=1), WorkflowHandle[bool])
    assert_type(await engine.start(order, 1, customer="bob"), WorkflowHandle[bool])
    assert_type(await engine.start(order, workflow_input=1, queue="q"), WorkflowHandle[bool])
    assert_type(await engine.start(ship, Cart("ann"), None, delay=5, metadata={"a": "b"}), WorkflowHandle[Cart])
    assert_type(await engine.start(ship, Cart("ann"), ["Bern"]), WorkflowHandle[Cart])
    assert_type(await engine.start(named.bind(queue="mine", count=2), queue="default"), WorkflowHandle[int])
    assert_type(order.bind(1, customer="bob"), BoundWorkflow[bool])
    assert_type(await engine.start(order.bind(1), connection=anything), WorkflowHandle[bool])
    assert_type(await engine.start(some, 1, "x", queue="q"), WorkflowHandle[int])
    by_name = await engine.start("order", 1, customer="bob", workflow_id="o-1")
    assert_type(by_name, WorkflowHandle[Any])
    assert_type(engine.handle("o-1", workflow=order), WorkflowHandle[bool])
    assert_type(await engine.handle("o-1", workflow=ship).result(), Cart)
    await engine.start(order, anything)

    await engine.start(order, "one")  # refused
    await engine.start(order)  # refused
    await engine.start(order, 1, "bob", 2)  # refused
    await engine.start(order, 1, 2, queue="q")  # refused
    await engine.start(order, number="one")  # refused
    await engine.start(order, 1, wrokflow_id="o-1")  # refused
    await engine.start(order, 1, workflow_id=1)  # refused
    await engine.start(order, 1, org=1)  # refused
    await engine.start(order, workflow_input="one")  # refused
    await engine.start(ship, {"customer": "ann"}, None)  # refused
    await engine.start(ship, Cart("ann"), [1])  # refused
    await engine.start(ping, 1)  # refused
    await engine.start(named)  # refused
    await engine.start(plain, 1)  # refused
    await engine.start(order.bind("one"), queue="q")  # refused
    await engine.start(order.bind(1, name="bob"))  # refused
    await engine.start(order.bind(1), 2)  # refused
    await engine.start(order.bind(1), wrokflow_id="o-1")  # refused
    (await engine.start(order, 1)).created.upper()  # refused
    (await (await engine.start(order, 1)).result()).upper()  # refused


async def client_starts(client: Client) -> None:
    assert_type(await client.start(order, 1, workflow_id="o-1"), WorkflowHandle[bool])
    assert_type(await client.start(order.bind(1, customer="bob"), queue="q"), WorkflowHandle[bool])
    assert_type(await client.start("order", 1, workflow_id="o-1"), WorkflowHandle[Any])
    assert_type(await client.start(order, number=1), WorkflowHandle[bool])
    assert_type(client.handle("o-1", workflow=order), WorkflowHandle[bool])

    await client.start(order, "one")  # refused
    await client.start(order, "one", workflow_id="o-1")  # refused
    await client.start(order, 1, wrokflow_id="o-1")  # refused
    await client.start(plain, 1)  # refused


def sync_starts(client: SyncClient) -> None:
    assert_type(client.start(order, 1, workflow_id="o-1"), SyncWorkflowHandle[bool])
    assert_type(client.start(order.bind(1, customer="bob"), queue="q"), SyncWorkflowHandle[bool])
    assert_type(client.start("order", 1).result(), Any)
    assert_type(client.start(order, number=1).result(), bool)
    assert_type(client.handle("o-1", workflow=order).result(), bool)

    client.start(order, "one")  # refused
    client.start(order, "one", workflow_id="o-1")  # refused
    client.start(order, 1, wrokflow_id="o-1")  # refused


def starts_in_transactions(work: TransactionWork) -> None:
    assert_type(work.start(order, 1, workflow_id="o-1"), WorkflowHandle[bool])
    assert_type(work.start(order.bind(1, customer="bob"), queue="q"), WorkflowHandle[bool])
    work.signal_with_start("o-1", order, 1, signal_name="paid", queue="q")

    work.start(order, "one")  # refused
    work.start(order, 1, wrokflow_id="o-1")  # refused
    work.signal_with_start("o-1", order, "one", signal_name="paid")  # refused


async def signals_with_start(engine: Engine, client: Client, sync: SyncClient) -> None:
    response = await engine.signal_with_start_workflow("o-1", order, 1, signal_name="paid", signal_value=True)
    assert_type(response, SignalWithStartResponse)
    await engine.signal_with_start_workflow("o-1", order, 1, "bob", signal_name="paid", queue="q")
    await engine.signal_with_start_workflow("o-1", order, workflow_input=1, signal_name="paid")
    await engine.signal_with_start_workflow("o-1", "order", 1, customer="bob", signal_name="paid")
    await client.signal_with_start_workflow("o-1", order.bind(1, customer="bob"), signal_name="paid", request_id="r")
    sync.signal_with_start_workflow("o-1", order, 1, signal_name="paid")

    await engine.signal_with_start_workflow("o-1", order, "one", signal_name="paid")  # refused
    await engine.signal_with_start_workflow("o-1", order, signal_name="paid")  # refused
    await engine.signal_with_start_workflow("o-1", order, 1)  # refused
    await engine.signal_with_start_workflow("o-1", order, 1, signal_name="paid", queue=1)  # refused
    await engine.signal_with_start_workflow("o-1", order, workflow_input="one", signal_name="paid")  # refused
    await client.signal_with_start_workflow("o-1", order, "one", signal_name="paid")  # refused
    await client.signal_with_start_workflow("o-1", plain, 1, signal_name="paid")  # refused
    sync.signal_with_start_workflow("o-1", order, "one", signal_name="paid")  # refused


async def starts_in_activities(info: ActivityInfo) -> None:
    assert_type(await info.client.start(order, 1, workflow_id="o-1"), WorkflowHandle[bool])
    assert_type(info.sync_client.start(order, 1, workflow_id="o-1"), SyncWorkflowHandle[bool])

    await info.client.start(order, "one")  # refused
    await info.client.strat(order, 1)  # refused
    info.sync_client.start(order, "one")  # refused
