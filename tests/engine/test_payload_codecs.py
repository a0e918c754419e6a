"""A codec stands between the engine and the store: the database holds what it made of values, programs see the values."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field, field_serializer, field_validator

from holdfast import (
    ActivityFailed,
    ApplicationFailure,
    Context,
    EncodedPayload,
    Engine,
    Retry,
    Status,
    WorkflowFailed,
    activity,
    transaction,
    workflow,
)
from holdfast.cli import main
from holdfast.engine.encoded_store import find_bare_store
from holdfast.errors import CodecError, InvalidConfiguration, StoreUnavailable
from holdfast.testing import TestEngine, replay_store
from tests.engine.conftest import OpenEngine

SECRET = "a secret that must not be on the disk"


class Hidden:
    """Compresses and turns every byte; awaits, as one does that asks a key service."""

    def __init__(self, key: str = "k1") -> None:
        self.key = key
        self.calls: list[tuple[str, int]] = []
        self.is_down = False
        self.others: set[str] = set()

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        await asyncio.sleep(0)
        self._note("encode " + org, payloads)
        assert all(one.encoding == "json" for one in payloads)
        return [EncodedPayload(_turn(zlib.compress(one.data)), "hidden", self.key) for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        await asyncio.sleep(0)
        self._note("decode", payloads)
        if any(one.key not in {self.key, *self.others} for one in payloads):
            raise CodecError("Expected to have the key, but it is another. Use the right one.")
        return [EncodedPayload(zlib.decompress(_turn(one.data))) for one in payloads]

    def _note(self, what: str, payloads: Sequence[EncodedPayload]) -> None:
        if self.is_down:
            raise ConnectionError("the key service is away")
        self.calls.append((what, len(payloads)))


def _turn(data: bytes) -> bytes:
    return bytes(255 - byte for byte in data)


@activity(retry=Retry(max_attempts=2, initial=0.01))
async def work(text: str) -> str:
    if text == "fail":
        raise ApplicationFailure("it broke", details={"why": SECRET})
    return text.upper()


@workflow
async def child(ctx: Context, text: str) -> str:
    return await ctx.run(work, text)


@workflow
async def everything(ctx: Context, text: str) -> list[Any]:
    ctx.set_state({"text": text})
    seen = [await ctx.run_child(child, text), ctx.side_effect(lambda: SECRET)]
    try:
        await ctx.run(work, "fail")
    except ActivityFailed as error:
        seen.append(error.details)
    seen.append(await ctx.wait_for_signal("go", str))
    if not text.endswith("again"):
        ctx.continue_as(text + " again")
    return seen


async def run_everything(engine: TestEngine) -> Any:
    handle = await engine.start(everything, SECRET, workflow_id="e")
    await engine.clock.advance(seconds=1)
    await engine.signal_workflow("e", "go", SECRET)
    await engine.signal_workflow("e", "go", SECRET + " 2")
    await engine.clock.advance(seconds=1)
    assert (await engine.query_status("e")).state == {"text": SECRET + " again"}
    return await handle.result()


async def read_bodies(engine: TestEngine) -> bytes:
    bare = find_bare_store(engine.store)
    found = b""
    for info in await engine.list():
        row = await bare.find_execution(info.org, info.execution_id)
        assert row is not None
        found += row.details + b"".join(turn.body for turn in await bare.load_history(info.execution_id))
    return found


async def test_no_value_is_stored_as_it_is_and_programs_see_all(open_engine: OpenEngine) -> None:
    codec = Hidden()
    engine = await open_engine(everything, child, work, codec=codec)

    result = await run_everything(engine)

    assert result == [SECRET.upper() + " AGAIN", SECRET, {"why": SECRET}, SECRET + " 2"]
    bodies = await read_bodies(engine)
    assert b"secret" not in bodies
    assert b"SECRET" not in bodies
    assert b'"encoding":"hidden","key":"k1"' in bodies
    assert {what for what, _ in codec.calls} == {"encode default", "decode"} or engine.store.exclusive


@activity(retry=Retry(max_attempts=1))
async def count(text: str) -> int:
    return text  # type: ignore[return-value]


@workflow
async def misfits(ctx: Context, text: str) -> int:
    with contextlib.suppress(ActivityFailed):
        await ctx.run(count, text)
    await ctx.wait_for_signal("number", int)
    return text  # type: ignore[return-value]


async def test_value_that_does_not_fit_is_quoted_in_no_message_that_is_stored(open_engine: OpenEngine) -> None:
    engine = await open_engine(misfits, count, codec=Hidden())
    handle = await engine.start(misfits, SECRET, workflow_id="m")
    await engine.signal_workflow("m", "number", SECRET)
    await engine.signal_workflow("m", "number", 1)
    await engine.clock.advance(seconds=1)

    with pytest.raises(WorkflowFailed, match="expected `int`, got `str`"):
        await handle.result()

    [letter] = await engine.dead_letters()
    assert SECRET not in letter.reason
    assert "expected `int`, got `str`; the value is not shown" in letter.reason
    assert SECRET.encode() not in await read_bodies(engine)


class Narrow(BaseModel):
    size: Annotated[str, Field(max_length=3)] = ""

    @field_validator("size")
    @classmethod
    def refuse(cls, size: str) -> str:
        if size == SECRET:
            raise ValueError(f"no {size}")
        return size


class Talkative(Narrow):
    @field_serializer("size")
    def write(self, size: str) -> str:
        raise ValueError(f"cannot write {size}")


@dataclass
class Plain:
    size: str


@activity(retry=Retry(max_attempts=1))
async def make_narrow(text: str) -> Narrow:
    return Narrow.model_construct(size=text)


@activity(retry=Retry(max_attempts=1))
async def make_talkative(text: str) -> Talkative:
    return Talkative.model_construct(size=text)


@activity(retry=Retry(max_attempts=1))
async def make_plain(text: str) -> Plain:
    return {"size": "s", text: 1}  # type: ignore[return-value]


@activity(retry=Retry(max_attempts=1))
async def make_time(text: str) -> datetime:
    return datetime(2024, 1, 1, tzinfo=timezone(timedelta(seconds=1), text))


MAKERS = [make_narrow, make_talkative, make_plain, make_time]


@workflow
async def make_all(ctx: Context, text: str) -> list[str]:
    messages = []
    for make in MAKERS:
        try:
            await ctx.run(make, text)
        except ActivityFailed as error:
            messages.append(error.message)
    return messages


async def test_value_that_cannot_be_written_is_quoted_in_no_message_that_is_stored(open_engine: OpenEngine) -> None:
    engine = await open_engine(make_all, *MAKERS, codec=Hidden())

    messages = await (await engine.start(make_all, SECRET)).result()

    assert [message.partition(", but ")[2].partition(".")[0] for message in messages] == [
        "Narrow does not take back what it writes",
        "writing it raised PydanticSerializationError; what that says is not shown, since there is a codec",
        "Plain has no field for one of its keys, so it would be lost",
        "its time zone is not a whole number of minutes, which JSON's date-times cannot say",
    ]
    bodies = await read_bodies(engine)
    assert SECRET.encode() not in bodies
    assert b"2024" not in bodies


async def test_history_is_replayed_through_the_codec_after_a_crash(open_engine: OpenEngine) -> None:
    engine = await open_engine(everything, child, work, codec=Hidden())
    await engine.start(everything, SECRET, workflow_id="e")
    await engine.clock.advance(seconds=1)

    await engine.restart()
    await engine.signal_workflow("e", "go", 1)  # of the wrong type: it becomes a dead letter, encoded too
    await engine.signal_workflow("e", "go", SECRET)
    await engine.signal_workflow("e", "go", "end")
    await engine.clock.advance(seconds=2)

    assert (await engine.handle("e").result())[-1] == "end"
    [letter] = await engine.dead_letters()
    assert letter.envelope["value"] == {"data": 1}
    [row] = await find_bare_store(engine.store).list_dead_letters("default")
    assert b'"hidden"' in row.body


async def test_without_the_codec_all_but_the_values_works(open_engine: OpenEngine, url: str) -> None:
    if url.startswith("memory"):
        pytest.skip("another engine cannot open it")
    engine = await open_engine(everything, child, work, codec=Hidden())
    await engine.start(everything, SECRET, workflow_id="e")
    await engine.clock.advance(seconds=1)
    await engine.shutdown()

    async with Engine(url) as other:
        info = await other.query_status("e")
        assert info.state == "<encoded as 'hidden' with key 'k1'>"
        assert [one.workflow_id for one in await other.list(workflow="everything")] == ["e"]
        history = await other.history("e")
        assert history.kinds[0] == "WorkflowStarted"
        lines = [line async for line in other.export_executions("e")]
        assert len(lines) == 1
        assert await other.terminate("e")
    report = await replay_store(url, [child], codec=Hidden())
    assert report.is_ok


async def test_engine_that_cannot_decode_leaves_executions_alone_until_one_can(open_engine: OpenEngine, url: str) -> None:
    if url.startswith("memory"):
        pytest.skip("another engine cannot open it")
    engine = await open_engine(everything, child, work, codec=Hidden())
    await engine.start(everything, SECRET, workflow_id="e")
    await engine.start(everything, SECRET, workflow_id="ended")
    await engine.clock.advance(seconds=1)
    length = (await engine.query_status("e")).history_length
    await engine.shutdown()

    for codec in (Hidden("k2"), None):
        other = await open_engine(everything, child, work, codec=codec)
        if codec is None:
            await other.signal_workflow("e", "go", "x")
        await other.clock.advance(seconds=30)
        info = await other.query_status("e")
        assert info.status is Status.SUSPENDED
        assert info.history_length == length
        if codec is None:
            assert await other.terminate("ended")
        await other.shutdown()

    last = await open_engine(everything, child, work, codec=Hidden())
    await last.clock.advance(seconds=60)
    await last.signal_workflow("e", "go", "y")
    await last.clock.advance(seconds=1)
    assert (await last.handle("e").result(timeout=0))[-1] == "y"
    [_, run] = await last.list(workflow_id="e")
    assert "SignalReceived" in (await last.history(run.execution_id)).kinds
    assert (await last.query_status("ended")).status is Status.TERMINATED


@workflow
async def sleeper(ctx: Context, text: str) -> str:
    await ctx.sleep(5)
    return text + await ctx.run(work, text)


async def test_key_that_comes_back_is_enough_for_executions_to_go_on(open_engine: OpenEngine) -> None:
    codec = Hidden()
    engine = await open_engine(everything, child, sleeper, work, codec=codec)
    if not engine.store.exclusive:
        pytest.skip("what is left is looked at with heartbeats, which virtual time does not move")
    await engine.start(everything, "again", workflow_id="e")
    await engine.start(sleeper, SECRET, workflow_id="s")
    await engine.start(sleeper, SECRET, workflow_id="cancelled")
    await engine.clock.advance(seconds=1)
    codec.key = "k2"
    await engine.restart()
    await engine.signal_workflow("e", "go", "y")
    await engine.cancel("cancelled")
    await engine.clock.advance(seconds=70)
    assert {info.status for info in await engine.list() if info.workflow != "child"} == {Status.SUSPENDED}

    codec.others = {"k1"}
    await engine.clock.advance(seconds=40)

    assert (await engine.handle("e").result(timeout=0))[-1] == "y"
    assert await engine.handle("s").result(timeout=0) == SECRET + SECRET.upper()
    assert (await engine.query_status("cancelled")).status is Status.CANCELLED


async def test_outage_of_a_key_service_only_costs_time(url: str) -> None:
    codec = Hidden()
    retry = Retry(max_attempts=10, initial=0.05)
    async with Engine(url, workflows=[child], activities=[work], codec=codec, storage_retry=retry) as engine:
        codec.is_down = True
        asyncio.get_running_loop().call_later(0.1, setattr, codec, "is_down", False)
        handle = await engine.start(child, SECRET, workflow_id="c")

        assert await handle.result() == SECRET.upper()


async def test_codec_that_never_answers_holds_up_neither_callers_nor_the_end_of_the_engine(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(Hidden):
        async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
            if self.is_down:
                await asyncio.Event().wait()
            return await super().encode(payloads, org)

    monkeypatch.setattr("holdfast.engine.payload_codecs.LONGEST_CALL", 0.05)
    codec = Silent()
    retry = Retry(max_attempts=2, initial=0.01)
    async with asyncio.timeout(30):
        async with Engine(url, workflows=[child], activities=[work], codec=codec, storage_retry=retry) as engine:
            codec.is_down = True
            with pytest.raises(StoreUnavailable, match="but it raised TimeoutError"):
                await engine.start(child, SECRET, workflow_id="c")


async def test_transactions_of_users_go_through_the_codec(open_engine: OpenEngine) -> None:
    class AtOnce(Hidden):
        async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
            return [EncodedPayload(_turn(zlib.compress(one.data)), "hidden", self.key) for one in payloads]

    @transaction
    def plain(connection: Any, text: str) -> str:
        return text

    @transaction(name="plain")
    async def plain_async(connection: Any, text: str) -> str:
        return text

    @workflow
    async def user(ctx: Context, text: str) -> str:
        return await ctx.transaction(chosen, text)

    probe = await open_engine()
    is_async = "postgres" in type(probe.store).__module__
    await probe.shutdown()
    chosen = plain_async if is_async else plain
    engine = await open_engine(user, chosen, child, work, codec=AtOnce())

    def start(_connection: Any, work: Any) -> None:
        work.start(child, SECRET, workflow_id="by-transaction")

    async def start_async(_connection: Any, work: Any) -> None:
        start(_connection, work)

    await engine.transaction(start_async if is_async else start)
    handle = await engine.start(user, SECRET, workflow_id="u")
    await engine.clock.advance(seconds=1)

    assert await handle.result() == SECRET
    assert await engine.handle("by-transaction").result() == SECRET.upper()
    assert b"secret" not in await read_bodies(engine)


async def test_codec_that_returns_too_few_is_refused() -> None:
    class Short(Hidden):
        async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
            return []

    async with TestEngine(workflows=[child], activities=[work], codec=Short()) as engine:
        with pytest.raises(CodecError, match=r"into as many, but it returned 0"):
            await engine.start(child, "x", workflow_id="c")


@pytest.mark.parametrize(
    "made",
    [None, ["text"], [EncodedPayload("text", "hidden")], [EncodedPayload(b"", None)], [EncodedPayload(b"", "x", 1)]],  # type: ignore[arg-type]
)
async def test_codec_that_returns_something_else_is_refused_before_it_is_stored(made: Any) -> None:
    class Wrong(Hidden):
        async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
            return None if made is None else made * len(payloads)  # type: ignore[return-value]

    async with Engine("memory://", workflows=[child], activities=[work], codec=Wrong()) as engine:
        with pytest.raises(CodecError, match="to encode payloads into EncodedPayload objects"):
            await engine.start(child, "x")


async def test_codec_whose_own_wait_was_cancelled_is_taken_for_an_outage(url: str) -> None:
    class Cancelled(Hidden):
        async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
            if self.is_down:
                raise asyncio.CancelledError
            return await super().encode(payloads, org)

    codec = Cancelled()
    async with Engine(url, workflows=[child], activities=[work], codec=codec) as engine:
        codec.is_down = True
        with pytest.raises(StoreUnavailable):
            await engine.start(child, "a")
        codec.is_down = False
        assert await (await engine.start(child, "b")).result(timeout=60) == "B"


def test_what_is_no_codec_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="async methods encode and decode"):
        Engine("memory://", codec=zlib)  # type: ignore[arg-type]


def test_command_line_shows_that_values_are_encoded(tmp_path: Path) -> None:
    file = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{file}", workflows=[child], activities=[work], codec=Hidden()) as engine:
            handle = await engine.start(child, SECRET, workflow_id="c")
            await handle.result()

    asyncio.run(fill())

    shown = CliRunner().invoke(main, ["show", str(file), "c"])
    assert shown.exit_code == 0, shown.output
    assert "hidden" in shown.output
    assert "secret" not in shown.output.lower()
