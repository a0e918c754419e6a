"""D2: whatever users' types and exceptions raise, and wherever, it is their own execution's affair alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Status, workflow
from holdfast.errors import WorkflowFailed
from holdfast.testing import replay
from tests.engine.conftest import OpenEngine


class Own(BaseException):
    """No Exception, and nobody's but the user's."""


RAISED: dict[str, BaseException] = {
    type(error).__name__: error
    for error in (
        asyncio.CancelledError(),
        GeneratorExit(),
        SystemExit(3),
        KeyboardInterrupt("own"),
        Own("mine"),
        KeyError("key"),
    )
}


@dataclass
class Told:
    """Raises what it is told to when it is decoded."""

    name: str

    def __post_init__(self) -> None:
        if self.name in RAISED:
            raise RAISED[self.name]


class Written:
    """Raises what it is told to when it is encoded."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_validate(cls, name: str) -> Written:
        return cls(name)

    def model_dump(self, mode: str) -> str:
        raise RAISED[self.name]


class Shown(Exception):
    """Raises what it is told to when it is shown."""

    def __str__(self) -> str:
        raise RAISED[self.args[0]]


class Kept(ExceptionGroup[Exception]):
    """Raises what it is told to when somebody looks what it is made of."""

    def derive(self, excs: Any, /) -> Any:
        raise RAISED[self.message]


@workflow
async def waits(ctx: Context) -> str:
    return (await ctx.wait_for_signal("told", Told)).name


@workflow
async def returns(ctx: Context, name: str) -> Any:
    await ctx.wait_for_signal("go")
    return Written(name)


@workflow
async def raises(ctx: Context, name: str) -> None:
    await ctx.wait_for_signal("go")
    raise Shown(name)


@workflow
async def raises_group(ctx: Context, name: str) -> None:
    await ctx.wait_for_signal("go")
    raise Kept(name, [ValueError("one"), ValueError("two")])


@workflow
async def raises_itself(ctx: Context, name: str, where: str) -> None:
    async def fail() -> None:
        raise RAISED[name]

    if where == "later":
        await ctx.wait_for_signal("go")
    if where == "task":
        await asyncio.gather(asyncio.create_task(fail()), ctx.wait_for_signal("go"))
    await fail()


@workflow
async def quick(ctx: Context) -> str:
    return "quick"


WORKFLOWS = (waits, returns, raises, raises_group, raises_itself, quick)


@pytest.mark.parametrize("where", ["first", "later", "task"])
@pytest.mark.parametrize("name", RAISED)
async def test_D2_workflow_that_raises_anything_fails_alone(open_engine: OpenEngine, name: str, where: str) -> None:
    engine = await open_engine(*WORKFLOWS)
    handle = await engine.start(raises_itself, name, where)
    if where == "later":
        await handle.signal("go")

    assert await (await engine.start(quick)).result() == "quick"
    with pytest.raises(WorkflowFailed, match=f"it raised {name}"):
        await handle.result()
    replay(await handle.history(), [raises_itself])


@pytest.mark.parametrize("name", RAISED)
async def test_D2_signal_whose_type_raises_anything_is_a_dead_letter(open_engine: OpenEngine, name: str) -> None:
    engine = await open_engine(*WORKFLOWS)
    handle = await engine.start(waits)

    await handle.signal("told", {"name": name})

    assert await (await engine.start(quick)).result() == "quick"
    (letter,) = await engine.dead_letters()
    assert f"to be Told, but {name}" in letter.reason
    await handle.signal("told", {"name": "fine"})
    assert await handle.result() == "fine"


@pytest.mark.parametrize("name", RAISED)
async def test_D2_result_whose_type_raises_anything_fails_its_execution(open_engine: OpenEngine, name: str) -> None:
    engine = await open_engine(*WORKFLOWS)
    handle = await engine.start(returns, name)

    await handle.signal("go")

    assert await (await engine.start(quick)).result() == "quick"
    with pytest.raises(WorkflowFailed, match=f"EncodingError: Expected the result of workflow 'returns' .*, but {name}"):
        await handle.result()


@pytest.mark.parametrize("name", RAISED)
async def test_D2_exception_that_raises_anything_when_it_is_shown_fails_its_execution(
    open_engine: OpenEngine, name: str
) -> None:
    engine = await open_engine(*WORKFLOWS)
    handle = await engine.start(raises, name)

    await handle.signal("go")

    assert await (await engine.start(quick)).result() == "quick"
    with pytest.raises(WorkflowFailed, match=f"it raised Shown: <Shown that cannot be shown: {name}>"):
        await handle.result()


@pytest.mark.parametrize("name", RAISED)
async def test_D2_what_raises_where_nobody_expects_it_blocks_its_execution(open_engine: OpenEngine, name: str) -> None:
    engine = await open_engine(*WORKFLOWS)
    handle = await engine.start(raises_group, name)

    await handle.signal("go")

    assert await (await engine.start(quick)).result() == "quick"
    info = await handle.status()
    assert info.status is Status.BLOCKED
    assert str(info.last_error).startswith(f"{name}: ")
    assert [one.envelope["name"] for one in info.inbox] == ["go"]
