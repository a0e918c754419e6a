"""Bad definitions and options: refused when they are made, before anything runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from holdfast import Context, Engine, Retry, activity, workflow
from holdfast.engine.clock import SystemClock
from holdfast.errors import (
    DuplicateName,
    HoldfastError,
    InvalidConfiguration,
    InvalidDefinition,
    InvalidDuration,
    InvalidIdentifier,
)

LONG = "x" * 256
WORKFLOW = "Expected every workflow given to the engine to be decorated with @workflow, "
ACTIVITY = "Expected every activity given to the engine to be decorated with @activity, "


@activity
async def work(name: str) -> str:
    return name


@workflow
async def order(ctx: Context, item: str) -> str:
    return item


def undecorated() -> None: ...


class Desk:
    @activity
    async def sign(self) -> None: ...


# --- definitions ---

any_workflow: Any = workflow
any_activity: Any = activity
any_work: Any = work


def define_sync_workflow() -> None:
    def sync(ctx: Context) -> None: ...

    any_workflow(sync)


def define_generator_workflow() -> None:
    async def generator(ctx: Context) -> AsyncIterator[int]:
        yield 1

    any_workflow(generator)


def define_workflow_without_context() -> None:
    async def bare() -> None: ...

    any_workflow(bare)


def define_workflow_with_an_argument_in_place_of_the_context() -> None:
    async def forgetful(item: str) -> None: ...

    any_workflow(forgetful)


def define_workflow_of_keywords() -> None:
    async def keywords(ctx: Context, **items: str) -> None: ...

    any_workflow(keywords)


def define_lambda_activity() -> None:
    activity(lambda: None)


def define_nothing() -> None:
    any_workflow(5)


def define_async_in_thread() -> None:
    @activity(executor="thread")
    async def threaded() -> None: ...


def define_sync_in_loop() -> None:
    @activity(executor="loop")
    def looped() -> None: ...


def define_clock_reader() -> None:
    import time

    @workflow
    async def reader(ctx: Context) -> float:
        return time.time()

    Engine("memory://", workflows=[reader])


DEFINITIONS: list[tuple[Callable[[], Any], type[HoldfastError], str]] = [
    (define_sync_workflow, InvalidDefinition, "Expected workflow 'sync' to be `async def`, but it is not an async function"),
    (
        define_generator_workflow,
        InvalidDefinition,
        "Expected workflow 'generator' to be `async def`, but it is an async gen",
    ),
    (
        define_workflow_without_context,
        InvalidDefinition,
        "Expected workflow 'bare' to take the context as its first parameter",
    ),
    (
        define_workflow_with_an_argument_in_place_of_the_context,
        InvalidDefinition,
        "Expected workflow 'forgetful' to take the context as its first parameter, but 'item' is str. Write `async def ",
    ),
    (
        define_workflow_of_keywords,
        InvalidDefinition,
        "Expected workflow 'keywords' to take named parameters that can be given",
    ),
    (define_lambda_activity, InvalidDefinition, "Expected @activity to decorate a function with a name, but got "),
    (define_nothing, InvalidDefinition, "Expected @workflow to decorate a function with a name, but got 5"),
    (
        define_async_in_thread,
        InvalidDefinition,
        "Expected activity 'threaded' to run in a thread, but an async function runs",
    ),
    (define_sync_in_loop, InvalidDefinition, "Expected activity 'looped' to run in a loop, but a sync function needs a"),
    (define_clock_reader, InvalidDefinition, "Expected workflow 'reader' to be deterministic, but its code is not:\n"),
    (lambda: any_workflow(name=""), InvalidIdentifier, "Expected the name of a workflow to be text of 1 to 255 printable"),
    (
        lambda: any_workflow(name="a\n"),
        InvalidIdentifier,
        "Expected the name of a workflow to be text of 1 to 255 printable",
    ),
    (lambda: any_workflow(version=5), InvalidConfiguration, "Expected version=… of a workflow to be text, but it is 5"),
    (
        lambda: any_activity(name=LONG),
        InvalidIdentifier,
        "Expected the name of an activity to be text of 1 to 255 printable",
    ),
    (
        lambda: any_activity(queue=""),
        InvalidIdentifier,
        "Expected the queue of an activity to be text of 1 to 255 printable",
    ),
    (
        lambda: any_activity(executor="cloud"),
        InvalidConfiguration,
        "Expected executor=… of activity 'f' to be 'loop', 'thread' or",
    ),
    (lambda: any_activity(retry=5), InvalidConfiguration, "Expected retry=… to be a Retry(...), but it is 5"),
    (lambda: any_activity(retry=Retry), InvalidConfiguration, "Expected retry=… to be a Retry(...), but it is "),
    (
        lambda: any_activity(max_concurrent=0),
        InvalidConfiguration,
        "Expected max_concurrent=… to be a whole number of at least 1",
    ),
    (
        lambda: any_activity(max_concurrent=True),
        InvalidConfiguration,
        "Expected max_concurrent=… to be a whole number of at",
    ),
    (
        lambda: any_activity(rate_per_second=0),
        InvalidConfiguration,
        "Expected rate_per_second=… to be a positive number, but it",
    ),
    (
        lambda: any_activity(rate_per_second="5"),
        InvalidConfiguration,
        "Expected rate_per_second=… to be a positive number, but",
    ),
    (
        lambda: any_activity(start_to_close=-1),
        InvalidDuration,
        "Expected the start_to_close timeout to be a timedelta or a number",
    ),
    (
        lambda: any_activity(schedule_to_close=timedelta(days=99_999)),
        InvalidDuration,
        "Expected the schedule_to_close timeout to",
    ),
    (
        lambda: any_activity(heartbeat=float("inf")),
        InvalidDuration,
        "Expected the heartbeat timeout to be a timedelta or a number",
    ),
    (
        lambda: any_activity(schedule_to_start="1h"),
        InvalidDuration,
        "Expected the schedule_to_start timeout to be a timedelta or",
    ),
    (lambda: any_work.with_options(retry="no"), InvalidConfiguration, "Expected retry=… to be a Retry(...), but it is 'no'"),
    (lambda: work.with_options(start_to_close=-5), InvalidDuration, "Expected the start_to_close timeout to be a timedelta"),
    (
        lambda: Retry(max_attempts=0),
        InvalidConfiguration,
        "Expected Retry(max_attempts=…) to be a whole number of at least 1",
    ),
]


@pytest.mark.parametrize("number", range(len(DEFINITIONS)), ids=lambda one: DEFINITIONS[one][2][9:50])
def test_definition_that_cannot_work_is_refused(number: int) -> None:
    define, kind, message = DEFINITIONS[number]

    def f() -> None: ...

    with pytest.raises(kind) as refused:
        define()(f)

    assert refused.value.message.startswith(message), refused.value.message
    assert ", but " in refused.value.message


# --- the engine's options ---


@workflow(name="order")
async def another_order(ctx: Context) -> None: ...


@activity(name="work")
async def another_work() -> None: ...


COUNT = "Expected {}=… to be a whole number from 1 to 1,000,000,000, but it is"
SECONDS = "Expected {}=… to be a number of seconds from a microsecond to a hundred years, but it is"
QUEUES = "Expected queue_limits=… to map queues to whole numbers from 1 to 1,000,000,000, but it is"
CLOCK = "Expected clock=… to be an object with now() and call_at(when, callback), but it is"
ENTROPY = "Expected entropy=… to be a function that gives as many random bits as asked for, but it is"

OPTIONS: list[tuple[dict[str, Any], type[HoldfastError], str]] = [
    (
        {"workflows": [order, another_order]},
        DuplicateName,
        "Expected each workflow to have its own name, but two are called 'o",
    ),
    (
        {"activities": [work, another_work]},
        DuplicateName,
        "Expected each activity to have its own name, but two are called 'w",
    ),
    (
        {"workflows": [work]},
        InvalidDefinition,
        WORKFLOW + "but found <activity 'work'>. Pass it in activities=[…].",
    ),
    (
        {"activities": [order]},
        InvalidDefinition,
        ACTIVITY + "but found <workflow 'order'>. Pass it in workflows=[…].",
    ),
    (
        {"activities": [Desk]},
        InvalidDefinition,
        ACTIVITY + "but found the class Desk. Write activities=[*collect(Desk(…))].",
    ),
    (
        {"activities": [undecorated]},
        InvalidDefinition,
        ACTIVITY + "but found 'undecorated'. Add the decorator.",
    ),
    ({"workflows": order}, InvalidDefinition, "Expected workflows=… to be a list, but it is <workflow 'order'>"),
    ({"activities": None}, InvalidDefinition, "Expected activities=… to be a list, but it is None"),
    (
        {"store": "mysql://host"},
        InvalidConfiguration,
        "Expected the store to be 'sqlite:///file.db', 'postgresql://user@host/database' or 'memory://', but it is",
    ),
    (
        {"store": "app.db"},
        InvalidConfiguration,
        "Expected the store to be 'sqlite:///file.db', 'postgresql://user@host/database' or 'memory://', but it is",
    ),
    (
        {"store": Path("app.db")},
        InvalidConfiguration,
        "Expected the store to be 'sqlite:///file.db', 'postgresql://user@host/database' or 'memory://', but it is",
    ),
    (
        {"store": None},
        InvalidConfiguration,
        "Expected the store to be 'sqlite:///file.db', 'postgresql://user@host/database' or 'memory://', but it is None",
    ),
    ({"speed": 5}, InvalidConfiguration, "Expected an option of the engine, but 'speed' is none. The options are: activ"),
    (
        {"workflow": []},
        InvalidConfiguration,
        "Expected an option of the engine, but 'workflow' is none. Did you mean 'workflows'?",
    ),
    ({"max_activities": 0}, InvalidConfiguration, f"{COUNT.format('max_activities')} 0."),
    ({"max_activities": 1.5}, InvalidConfiguration, f"{COUNT.format('max_activities')} 1.5."),
    ({"max_activities": True}, InvalidConfiguration, f"{COUNT.format('max_activities')} True."),
    ({"batch_size": 2**70}, InvalidConfiguration, f"{COUNT.format('batch_size')} 1180591620717411303424."),
    ({"shutdown_grace": -1}, InvalidConfiguration, f"{SECONDS.format('shutdown_grace')} -1."),
    ({"shutdown_grace": float("inf")}, InvalidConfiguration, f"{SECONDS.format('shutdown_grace')} inf."),
    ({"shutdown_grace": float("nan")}, InvalidConfiguration, f"{SECONDS.format('shutdown_grace')} nan."),
    ({"request_ttl": True}, InvalidConfiguration, f"{SECONDS.format('request_ttl')} True."),
    ({"request_ttl": 1e300}, InvalidConfiguration, f"{SECONDS.format('request_ttl')} 1e+300."),
    ({"heartbeat": 1e-9}, InvalidConfiguration, f"{SECONDS.format('heartbeat')} 1e-09."),
    (
        {"payload_limit": "2 MiB"},
        InvalidConfiguration,
        "Expected payload_limit=… to be a whole number from 1 to 536,870,912, but it is '2 MiB'.",
    ),
    (
        {"max_live_bytes": 2**40 + 1},
        InvalidConfiguration,
        "Expected max_live_bytes=… to be a whole number from 1 to 1,099,511,627,776, but it is 1099511627777.",
    ),
    ({"queue_limits": {"slow": 0}}, InvalidConfiguration, f"{QUEUES} {{'slow': 0}}."),
    ({"queue_limits": {"slow": 2**31}}, InvalidConfiguration, f"{QUEUES} {{'slow': 2147483648}}."),
    ({"queue_limits": {"": 1}}, InvalidIdentifier, "Expected the queue in queue_limits=… to be text"),
    ({"queue_limits": 5}, InvalidConfiguration, f"{QUEUES} 5."),
    ({"clock": "x"}, InvalidConfiguration, f"{CLOCK} 'x'."),
    ({"clock": 0}, InvalidConfiguration, f"{CLOCK} 0."),
    ({"clock": datetime}, InvalidConfiguration, f"{CLOCK} <class 'datetime.datetime'>."),
    ({"clock": SystemClock}, InvalidConfiguration, f"{CLOCK} <class 'holdfast.engine.clock.SystemClock'>."),
    ({"entropy": 5}, InvalidConfiguration, f"{ENTROPY} 5."),
    ({"entropy": None}, InvalidConfiguration, f"{ENTROPY} None."),
    ({"node": ""}, InvalidIdentifier, "Expected the name of the node to be text"),
]


@pytest.mark.parametrize("number", range(len(OPTIONS)), ids=lambda one: str(OPTIONS[one][0])[:40])
def test_option_that_cannot_be_right_is_refused(number: int) -> None:
    options, kind, message = OPTIONS[number]

    with pytest.raises(kind) as refused:
        Engine(**{"store": "memory://"} | options)

    assert refused.value.message.startswith(message), refused.value.message
    assert ", but " in refused.value.message


def test_same_definition_twice_is_no_duplicate() -> None:
    Engine("memory://", workflows=[order, order], activities=[work, work.with_options(queue="slow")])


class OwnContext(Protocol):
    def now(self) -> datetime: ...


@pytest.mark.parametrize("hint", [Context, "Context", Context | None, OwnContext, Any, object, TypeVar("T"), None])
def test_first_parameter_may_be_hinted_as_anything_that_is_no_argument(hint: Any) -> None:
    async def flexible(ctx: Any, item: str) -> None: ...

    if hint is None:
        del flexible.__annotations__["ctx"]
    else:
        flexible.__annotations__["ctx"] = hint

    assert any_workflow(flexible).signature.names == ("item",)
