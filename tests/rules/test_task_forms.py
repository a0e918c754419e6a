"""H1: a human task is completed with a form that its workflow can read, or not at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field

from holdfast import Context, workflow
from holdfast.errors import AnswerTimedOut, InvalidArguments, TaskFormMismatch, WorkflowFailed, status_code
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.world import Nodes, World


@dataclass
class Order:
    count: int = 0
    at: datetime | None = None
    day: date | None = None
    id: UUID | None = None
    price: Decimal | None = None
    data: bytes | None = None
    lasts: timedelta | None = None


class Code(msgspec.Struct):
    number: int
    code: Annotated[str, msgspec.Meta(pattern=r"^(?a:\d{4})\Z")] = "2020"


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("an odd number")


class Name(msgspec.Struct, tag="name"):
    name: Annotated[str, msgspec.Meta(pattern=r"^\w+$")]


class Guest(BaseModel):
    first_name: str = Field(alias="firstName")
    age: int = 0


@workflow
async def naming(ctx: Context) -> str:
    return (await ctx.human_task("name", Name)).name


@workflow
async def inviting(ctx: Context) -> str:
    guest = await ctx.human_task("guest", Guest)
    return f"{guest.first_name} {guest.age}"


@workflow
async def pricing(ctx: Context) -> str:
    return str(await ctx.human_task("price", Decimal))


@workflow
async def mistaking(ctx: Context) -> Any:
    loose: Any = 42
    return await ctx.human_task("x", loose)


@workflow
async def ordering(ctx: Context) -> int:
    return (await ctx.human_task("order", Order)).count


@workflow
async def coding(ctx: Context) -> str:
    return (await ctx.human_task("code", Code)).code


@workflow
async def halving(ctx: Context) -> int:
    return (await ctx.human_task("even", Even)).number // 2


WORKFLOWS: list[Any] = [ordering, coding, halving, naming, inviting, pricing, mistaking]


async def begin(engine: TestEngine, workflow: Any) -> str:
    """Start a workflow; the id of its task, which 'ann' has claimed."""
    await engine.start(workflow, workflow_id="w")
    await engine.settle()
    task_id = (await engine.query_status("w")).active_task_id
    assert task_id is not None
    await engine.claim_task(task_id, by="ann")
    return task_id


async def check_refused(engine: TestEngine, task_id: str, form: Any, match: str) -> None:
    """The form is refused, and changes nothing."""
    before = await engine.task(task_id), (await engine.history("w")).to_json()

    with pytest.raises(TaskFormMismatch, match=match) as refused:
        await engine.complete_task(task_id, form, by="ann")

    assert status_code(refused.value) == 409
    assert (await engine.task(task_id), (await engine.history("w")).to_json()) == before


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "a whole number as float": ({"count": 3.0}, "got `float`"),
    "a large float": ({"count": 1e30}, "got `float`"),
    "a time": ({"at": "tomorrow"}, r"datetime - at `\$\.at`"),
    "a date": ({"day": "2020-99-99"}, r"date - at `\$\.day`"),
    "a uuid": ({"id": "none"}, "UUID"),
    "a decimal": ({"price": "much"}, "decimal"),
    "bytes": ({"data": "%%%"}, "base64"),
    "a duration": ({"lasts": "long"}, "duration"),
}


@pytest.mark.parametrize("what", UNREADABLE)
async def test_H1_a_form_that_only_the_type_refuses_changes_nothing(world: World, what: str) -> None:
    form, message = UNREADABLE[what]
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, ordering)

    await check_refused(engine, task_id, form, message)
    await engine.complete_task(task_id, {"count": 3, "day": "2020-12-31"}, by="ann")

    assert await engine.wait_for_result("w") == 3


async def test_H1_a_pattern_that_schemas_do_not_know_turns_no_other_check_off(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, coding)

    await check_refused(engine, task_id, {"number": "one"}, r"at \['number'\]")
    await check_refused(engine, task_id, {"number": 1, "code": "20"}, r"\$\.code")
    await engine.complete_task(task_id, {"number": 1, "code": "2021"}, by="ann")

    assert await engine.wait_for_result("w") == "2021"


READABLE: dict[str, tuple[Any, Any, Any]] = {
    "letters of other scripts": (naming, {"name": "Müller"}, "Müller"),
    "without the tag": (naming, {"name": "x"}, "x"),
    "a newline where `$` is": (naming, {"name": "x\n"}, "x\n"),
    "a field by its alias": (inviting, {"firstName": "Ann"}, "Ann 0"),
    "a field by its name": (inviting, {"first_name": "Ann", "age": "12"}, "Ann 12"),
    "a decimal that is a number": (pricing, 12.5, "12.5"),
}


@pytest.mark.parametrize("what", READABLE)
async def test_H1_a_form_that_the_type_takes_completes_the_task(world: World, what: str) -> None:
    definition, form, result = READABLE[what]
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, definition)

    await engine.complete_task(task_id, form, by="ann")

    assert await engine.wait_for_result("w") == result


async def test_H1_people_are_shown_the_whole_schema_of_a_form(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, naming)

    shown = (await engine.task(task_id)).form_schema["$defs"]["Name"]

    assert shown["properties"]["name"] == {"type": "string", "pattern": r"^\w+$"}
    assert shown["required"] == ["type", "name"]


async def test_H1_a_text_that_cannot_be_matched_in_time_is_refused_before_a_turn_sees_it(nodes: Nodes) -> None:
    first, other = await nodes.open("a", WORKFLOWS), await nodes.open("b")
    task_id = await begin(first, naming)
    await first.pause("w")

    await check_refused(other, task_id, {"name": "é" * 100 + "!"}, r"does not match its pattern at \['name'\]")


async def test_V2_a_task_whose_form_cannot_be_read_is_never_made(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(mistaking, workflow_id="w")

    with pytest.raises(WorkflowFailed, match="the form of human task 'x' to have a type that JSON can become"):
        await engine.wait_for_result("w")

    assert list(await engine.tasks()) == []


async def test_H1_what_the_class_of_a_form_refuses_is_refused(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, halving)

    await check_refused(engine, task_id, {"number": 3}, "an odd number")
    await engine.restart()
    await engine.complete_task(task_id, {"number": 4}, by="ann")

    assert await engine.wait_for_result("w") == 2


async def test_H1_a_node_without_the_code_hears_that_a_form_cannot_be_read(nodes: Nodes) -> None:
    first, other = await nodes.open("a", WORKFLOWS), await nodes.open("b")
    task_id = await begin(first, halving)

    await check_refused(other, task_id, {"number": 3}, "an odd number")
    for _ in range(2):
        with pytest.raises(TaskFormMismatch, match="an odd number"):
            await other.complete_task(task_id, {"number": 3}, by="ann", request_id="odd")
    await other.complete_task(task_id, {"number": 4}, by="ann", request_id="even")

    assert await first.wait_for_result("w") == 2


async def test_H1_a_form_that_waited_and_cannot_be_read_takes_nothing_with_it(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    task_id = await begin(engine, halving)
    await engine.pause("w")
    with pytest.raises(AnswerTimedOut):
        await engine.complete_task(task_id, {"number": 3}, by="ann", request_id="odd", timeout=0.05)
    even = asyncio.ensure_future(engine.complete_task(task_id, {"number": 4}, by="ann"))
    await eventually(lambda: _has_inbox(engine, 2))

    await engine.resume("w")

    assert ((await even).state, await engine.wait_for_result("w")) == ("completed", 2)
    with pytest.raises(TaskFormMismatch):
        await engine.complete_task(task_id, {"number": 3}, by="ann", request_id="odd")


async def _has_inbox(engine: TestEngine, most: int) -> bool:
    return len((await engine.query_status("w")).inbox) == most


class StrictStruct(msgspec.Struct, forbid_unknown_fields=True):
    approved: bool = False


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")
    approved: bool = False


@dataclass
class Lenient:
    approved: bool = False


STRICT: dict[str, Any] = {"struct": StrictStruct, "model": StrictModel, "dataclass": Lenient}


@workflow
async def deciding(ctx: Context, kind: str) -> bool:
    approved: bool = (await ctx.human_task("decide", STRICT[kind])).approved
    return approved


@workflow
async def updated(ctx: Context, kind: str) -> bool:
    approved: list[bool] = []

    def decide(form: Any) -> None:
        approved.append(form.approved)

    decide.__annotations__["form"] = STRICT[kind]
    ctx.on_update("decide", decide)
    await ctx.wait_for_signal("end")
    return approved == [True]


@pytest.mark.parametrize("kind", ["struct", "model"])
async def test_H1_form_that_forbids_unknown_keys_refuses_a_misspelt_one_by_name(world: World, kind: str) -> None:
    engine = await world.open([deciding])
    handle = await engine.start(deciding, kind)
    await engine.settle()
    (task,) = await engine.tasks()
    await engine.claim_task(task.task_id, by="ann")

    with pytest.raises(TaskFormMismatch, match=r"Expected the form of .*aproved.*othing was changed\."):
        await engine.complete_task(task.task_id, {"aproved": True}, by="ann")
    await engine.complete_task(task.task_id, {"approved": True}, by="ann")

    assert await handle.result() is True


async def test_H1_form_without_that_leaves_a_misspelt_key_out(world: World) -> None:
    engine = await world.open([deciding])
    handle = await engine.start(deciding, "dataclass")
    await engine.settle()
    (task,) = await engine.tasks()
    await engine.claim_task(task.task_id, by="ann")

    await engine.complete_task(task.task_id, {"aproved": True}, by="ann")

    assert await handle.result() is False


@pytest.mark.parametrize("kind", ["struct", "model"])
async def test_U5_update_that_forbids_unknown_keys_refuses_a_misspelt_one_by_name(world: World, kind: str) -> None:
    engine = await world.open([updated])
    handle = await engine.start(updated, kind)

    with pytest.raises(InvalidArguments, match="aproved"):
        await handle.update("decide", {"aproved": True})
    await handle.update("decide", {"approved": True})
    await handle.signal("end")

    assert await handle.result() is True
