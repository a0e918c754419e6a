"""Bad input: each is a typed error that says what was expected and found, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.errors import (
    EncodingError,
    ExecutionClosed,
    ExecutionNotFound,
    HoldfastError,
    InvalidArguments,
    InvalidConfiguration,
    InvalidDuration,
    InvalidIdentifier,
    PayloadTooLarge,
    UnknownWorkflow,
    WorkflowAlreadyOpen,
    status_code,
)

ROOT = Path(__file__).parents[1]


@activity
async def work(name: str) -> str:
    return name


@workflow
async def order(ctx: Context, item: str, count: int = 1) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def unregistered(ctx: Context) -> None: ...


@pytest.fixture(params=["memory", "sqlite"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'app.db'}"
    async with Engine(url, workflows=[order], activities=[work]) as engine:
        await engine.start(order, "tea", workflow_id="open")
        await engine.start(order, "tea", workflow_id="closed")
        await engine.terminate("closed")
        yield engine


async def look(engine: Engine) -> object:
    """Everything that a refused request must leave as it is."""
    found = await engine.list(limit=1_000)
    histories = [(await engine.history(one.execution_id)).to_json() for one in found]
    return found, histories, await engine.store.count(), await engine.dead_letters()


def surrogate() -> str:
    return "\ud800"


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


Call = Callable[[Any], Awaitable[Any]]
LONG = "x" * 256
HUGE = "x" * (2 * 1024 * 1024)

CALLS: dict[str, tuple[Call, type[HoldfastError], str]] = {
    # names
    "unknown workflow": (lambda e: e.start("nobody"), UnknownWorkflow, "Expected workflow 'nobody' to be registered"),
    "unregistered workflow": (lambda e: e.start(unregistered), UnknownWorkflow, "Expected workflow 'unregistered' to be"),
    "plain function": (lambda e: e.start(look), UnknownWorkflow, "Expected workflow 'look' to be registered"),
    "no workflow": (lambda e: e.start(None), UnknownWorkflow, "Expected workflow None to be registered"),
    # arguments
    "argument type": (
        lambda e: e.start(order, 5),
        InvalidArguments,
        "Expected parameter 'item' of workflow 'order' to be str",
    ),
    "second argument": (
        lambda e: e.start(order, "a", "b"),
        InvalidArguments,
        "Expected parameter 'count' of workflow 'order'",
    ),
    "too few": (lambda e: e.start(order), InvalidArguments, "Expected workflow 'order' to be called with (item: str, count"),
    "too many": (lambda e: e.start(order, "a", 1, 2), InvalidArguments, "Expected workflow 'order' to be called with"),
    "not JSON": (
        lambda e: e.start(order, object()),
        EncodingError,
        "Expected parameter 'item' of workflow 'order' (a object)",
    ),
    "not a number": (lambda e: e.start(order, float("nan")), EncodingError, "Expected parameter 'item' of workflow 'order'"),
    "cycle": (lambda e: e.start(order, cyclic()), EncodingError, "Expected parameter 'item' of workflow 'order' (a list)"),
    "surrogate": (
        lambda e: e.start(order, surrogate()),
        EncodingError,
        "Expected parameter 'item' of workflow 'order' (a str)",
    ),
    "too large": (lambda e: e.start(order, HUGE), PayloadTooLarge, "Expected workflow 'order' to be at most 2097152 bytes"),
    # workflow ids, orgs, queues, keys
    "empty id": (
        lambda e: e.start(order, "a", workflow_id=""),
        InvalidIdentifier,
        "Expected the workflow id to be text of 1",
    ),
    "long id": (
        lambda e: e.start(order, "a", workflow_id=LONG),
        InvalidIdentifier,
        "Expected the workflow id to be text of 1",
    ),
    "control id": (
        lambda e: e.start(order, "a", workflow_id="a\nb"),
        InvalidIdentifier,
        "Expected the workflow id to be text",
    ),
    "id with a null": (
        lambda e: e.start(order, "a", workflow_id="a\0"),
        InvalidIdentifier,
        "Expected the workflow id to be",
    ),
    "surrogate id": (lambda e: e.start(order, "a", workflow_id=surrogate()), InvalidIdentifier, "Expected the workflow id"),
    "number as id": (lambda e: e.start(order, "a", workflow_id=5), InvalidIdentifier, "Expected the workflow id to be"),
    "empty org": (lambda e: e.start(order, "a", org=""), InvalidIdentifier, "Expected the org to be text"),
    "empty queue": (lambda e: e.start(order, "a", queue=""), InvalidIdentifier, "Expected the queue to be text"),
    "empty key": (
        lambda e: e.start(order, "a", idempotency_key=""),
        InvalidIdentifier,
        "Expected the idempotency key to be",
    ),
    "key's time": (
        lambda e: e.start(order, "a", idempotency_key="k", idempotency_ttl=-1),
        InvalidDuration,
        "Expected the idempotency key's time-to-live to be a timedelta",
    ),
    "time without a key": (
        lambda e: e.start(order, "a", idempotency_ttl=5),
        InvalidArguments,
        "Expected an idempotency key with its time-to-live, but there is none",
    ),
    # policies and metadata
    "on_open": (lambda e: e.start(order, "a", on_open="never"), InvalidConfiguration, "Expected on_open=… to be one of "),
    "on_closed": (lambda e: e.start(order, "a", on_closed=""), InvalidConfiguration, "Expected on_closed=… to be one of "),
    "metadata": (
        lambda e: e.start(order, "a", metadata={"a": "b", "n": 3}),
        InvalidArguments,
        "Expected metadata to map text to text, but the value of 'n' is of type int. Pass for instance",
    ),
    "metadata key": (
        lambda e: e.start(order, "a", metadata={3: "n"}),
        InvalidArguments,
        "Expected metadata to map text to text, but the key 3 is of type int. Pass for instance",
    ),
    "headers": (
        lambda e: e.start(order, "a", headers={"traceparent": b"00"}),
        InvalidArguments,
        "Expected headers to map text to text, but the value of 'traceparent' is of type bytes. Pass for instance",
    ),
    "headers in pairs": (
        lambda e: e.start(order, "a", headers=[("a", "b"), ("a", "c")]),
        InvalidArguments,
        "Expected headers to map text to text, but it is of type list. Pass for instance",
    ),
    "headers of a signal in pairs": (
        lambda e: e.signal_workflow("w", "s", headers=[("a", "b")]),
        InvalidArguments,
        "Expected headers to map text to text, but it is of type list. Pass for instance",
    ),
    "metadata list": (lambda e: e.start(order, "a", metadata=[1]), InvalidArguments, "Expected metadata to map text"),
    "metadata text": (
        lambda e: e.start(order, "a", metadata={"a": surrogate()}),
        InvalidArguments,
        "Expected metadata to map",
    ),
    "large metadata": (lambda e: e.start(order, "a", metadata={"a": HUGE}), InvalidArguments, "Expected metadata to "),
    "already open": (
        lambda e: e.start(order, "a", workflow_id="open", on_open="fail"),
        WorkflowAlreadyOpen,
        "Expected to start workflow id 'open', but execution ",
    ),
    # signals
    "nobody": (
        lambda e: e.signal_workflow("nobody", "go"),
        ExecutionNotFound,
        "Expected to signal 'nobody', but org 'default'",
    ),
    "other org": (
        lambda e: e.signal_workflow("open", "go", org="b"),
        ExecutionNotFound,
        "Expected to signal 'open', but org 'b'",
    ),
    "closed": (lambda e: e.signal_workflow("closed", "go"), ExecutionClosed, "Expected to signal execution 'closed'"),
    "empty signal": (lambda e: e.signal_workflow("open", ""), InvalidIdentifier, "Expected the name of a signal to be text"),
    "empty target": (lambda e: e.signal_workflow("", "go"), InvalidIdentifier, "Expected the id of an execution to be text"),
    "signal value": (
        lambda e: e.signal_workflow("open", "go", object()),
        EncodingError,
        "Expected the value of signal 'go'",
    ),
    "large signal": (
        lambda e: e.signal_workflow("open", "go", HUGE),
        PayloadTooLarge,
        "Expected the value of signal 'go' to",
    ),
    "request id": (
        lambda e: e.signal_workflow("open", "go", request_id="\t"),
        InvalidIdentifier,
        "Expected the request id to",
    ),
    "start by signal": (
        lambda e: e.signal_with_start_workflow("new", order, 5, signal_name="go"),
        InvalidArguments,
        "Expected parameter 'item' of workflow 'order' to be str",
    ),
    "start by bad signal": (
        lambda e: e.signal_with_start_workflow("new", order, "a", signal_name="go", signal_value=object()),
        EncodingError,
        "Expected the value of signal 'go' to be a value that JSON can hold",
    ),
    "start by no id": (
        lambda e: e.signal_with_start_workflow("", order, "a", signal_name="go"),
        InvalidIdentifier,
        "Expected the workflow id to be text",
    ),
    # the rest
    "cancel nobody": (
        lambda e: e.cancel("nobody"),
        ExecutionNotFound,
        "Expected to cancel 'nobody', but org 'default' has no",
    ),
    "cancel reason": (lambda e: e.cancel("open", surrogate()), InvalidArguments, "Expected the reason to be text"),
    "cancel reason with NUL": (
        lambda e: e.cancel("open", "a\0b"),
        InvalidArguments,
        "Expected the reason to be text of at most",
    ),
    "terminate nobody": (
        lambda e: e.terminate("nobody"),
        ExecutionNotFound,
        "Expected to terminate 'nobody', but org 'default'",
    ),
    "terminate reason": (lambda e: e.terminate("open", 5), InvalidArguments, "Expected the reason to be text"),
    "query nobody": (
        lambda e: e.query_status("nobody"),
        ExecutionNotFound,
        "Expected to query 'nobody', but org 'default' has",
    ),
    "result of nobody": (lambda e: e.handle("nobody").result(), ExecutionNotFound, "Expected to wait for 'nobody', but org"),
    "history of nobody": (lambda e: e.history("nobody"), ExecutionNotFound, "Expected to read the history of 'nobody', but"),
    "list limit": (lambda e: e.list(limit=0), InvalidArguments, "Expected limit to be between 1 and 10,000, but it is 0"),
    "list status": (lambda e: e.list(status="asleep"), InvalidArguments, "Expected status to be among running, suspended, "),
}


@pytest.mark.parametrize("name", CALLS)
async def test_refused_request_says_why_and_stores_nothing(engine: Engine, name: str) -> None:
    call, kind, message = CALLS[name]
    before = await look(engine)

    with pytest.raises(kind) as refused:
        await call(engine)

    assert refused.value.message.startswith(message), refused.value.message
    assert ", but " in refused.value.message
    assert refused.value.message.endswith(".")
    assert 400 <= status_code(refused.value) < 500
    assert await look(engine) == before
    await engine.signal_workflow("open", "go", "still works")
    assert await engine.handle("open").result() == "still works"


def test_handle_without_an_id_is_refused() -> None:
    with pytest.raises(InvalidIdentifier, match=r"^Expected the id of an execution to be text"):
        Engine("memory://").handle("")


# --- times, inside a workflow ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ctx: ctx.sleep(-1), "InvalidDuration: Expected the length of a sleep to be"),
        (lambda ctx: ctx.sleep(1e20), "InvalidDuration: Expected the length of a sleep to be"),
        (lambda ctx: ctx.sleep_until(datetime(2030, 1, 1)), "InvalidTime: Expected the end of a sleep to have a time"),  # noqa: DTZ001
        (lambda ctx: ctx.sleep_until(date(2030, 1, 1)), "InvalidTime: Expected the end of a sleep to be a datetime"),
        (lambda ctx: ctx.wait_for_signal("a", timeout=timedelta(-1)), "InvalidDuration: Expected the timeout of wait_for"),
    ],
)
async def test_time_that_cannot_be_meant_fails_the_workflow(call: Callable[[Context], Any], message: str) -> None:
    @workflow
    async def sleepy(ctx: Context) -> None:
        await call(ctx)

    async with Engine("memory://", workflows=[sleepy]) as engine:
        handle = await engine.start(sleepy)
        with pytest.raises(HoldfastError, match=message):
            await handle.result()
        assert (await handle.history()).kinds == ["WorkflowStarted", "WorkflowFailed"]
