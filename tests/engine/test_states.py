"""States and business references: set by code, inherited, found, and the same after every kind of replay."""

from __future__ import annotations

import copy
import operator
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    BusinessReference,
    Context,
    EncodedPayload,
    Engine,
    FilterError,
    InvalidArguments,
    InvalidConfiguration,
    workflow,
)
from holdfast.store.transfer import PersistentStore
from holdfast.testing import TestEngine, replay

REFERENCE = BusinessReference("1200345", {"policy": "P-1", "annex": "2"})


@workflow
async def order(ctx: Context, amount: float) -> list[Any]:
    ctx.set_state(step="new", amount=amount)
    first = ctx.state
    await ctx.wait_for_signal("pay")
    ctx.set_state(step="paid", amount=None, paid_at=datetime(2026, 1, 1, 12, tzinfo=UTC), tags=["a"])
    second = ctx.state
    await ctx.wait_for_signal("go")
    return [first, second, ctx.state]


@workflow
async def child(ctx: Context) -> str | None:
    reference = ctx.info.business_reference
    return None if reference is None else reference.key


@workflow
async def parent(ctx: Context, runs: int = 1) -> list[str | None]:
    own = BusinessReference("another")
    found = [await ctx.run_child(child), await ctx.run_child(child, business_reference=own)]
    if runs:
        ctx.continue_as(0)
    reference = ctx.info.business_reference
    return [*found, None if reference is None else reference.parts.get("policy")]


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    async with Engine(url, workflows=[order, child, parent]) as engine:
        yield engine


async def ids(engine: Engine, where: str | None = None, **options: Any) -> list[str]:
    return [info.workflow_id for info in await engine.list(where=where, **options)]


async def test_L1_state_is_found_from_the_turn_on_that_set_it(engine: Engine) -> None:
    for number in (5, 100, 250.5, 9):
        await engine.start(order, number, workflow_id=f"o-{number}")

    assert sorted(await ids(engine, "state.amount > 9")) == ["o-100", "o-250.5"]
    assert await ids(engine, order_by="state.amount desc") == ["o-250.5", "o-100", "o-9", "o-5"]
    assert (await engine.count(where="state.step = 'new' AND state.amount <= 100")).total == 3

    await engine.signal_workflow("o-5", "pay")

    assert await ids(engine, "state.step = 'paid'") == ["o-5"]
    assert await ids(engine, "HAS state.amount", order_by="state.amount") == ["o-9", "o-100", "o-250.5"]
    assert (await ids(engine, order_by="state.amount"))[-1] == "o-5"
    assert await ids(engine, "state.paid_at < '2026-01-01T14:00:00+01:00'") == ["o-5"]
    assert (await engine.query_status("o-5")).state == {"step": "paid", "paid_at": "2026-01-01T12:00:00Z", "tags": ["a"]}


async def test_L1_code_reads_its_state_alike_on_every_replay(url: str) -> None:
    async with Engine(url, workflows=[order], max_live_programs=1) as engine:
        await engine.start(order, 5, workflow_id="o")
        await engine.start(order, 6, workflow_id="other")
        await engine.signal_workflow("o", "pay")
        await engine.signal_workflow("other", "pay")
        await engine.signal_workflow("o", "go")
        first, second, third = await engine.handle("o").result(timeout=20)
        history = (await engine.history("o")).to_json()

    assert first == {"step": "new", "amount": 5}
    assert second == third == {"step": "paid", "paid_at": "2026-01-01T12:00:00Z", "tags": ["a"]}
    replay(history, workflows=[order])


async def test_state_of_a_closed_execution_is_still_found(engine: Engine) -> None:
    await engine.start(order, 5, workflow_id="o")
    await engine.signal_workflow("o", "pay")
    await engine.signal_workflow("o", "go")
    await engine.handle("o").result(timeout=20)

    assert await ids(engine, "state.step = 'paid' AND status = 'completed' AND HAS closed") == ["o"]


async def test_reference_is_stored_shown_inherited_and_found(engine: Engine) -> None:
    await engine.start(parent, workflow_id="p", business_reference=REFERENCE)
    assert await engine.handle("p").result(timeout=20) == ["1200345", "another", "P-1"]

    info = await engine.query_status("p")
    assert info.business_reference == REFERENCE
    assert info.to_dict()["business_reference"] == {"key": "1200345", "parts": {"policy": "P-1", "annex": "2"}}
    assert (await engine.count(where="reference = '1200345' AND workflow = 'parent'")).total == 2
    assert (await engine.count(where="reference.policy = 'P-1' AND workflow = 'child'")).total == 2
    assert (await engine.count(where="reference = 'another'")).total == 2
    assert (await engine.count(where="HAS reference", org="other")).total == 0


async def test_reference_comes_with_signal_with_start(engine: Engine) -> None:
    await engine.signal_with_start_workflow("o", order, 5, signal_name="pay", business_reference=REFERENCE)

    assert await ids(engine, "reference.annex = '2'") == ["o"]


NUMBER: Any = 5
BAD_REFERENCES = [
    "1200345",
    BusinessReference(""),
    BusinessReference("x" * 501),
    BusinessReference("a\0"),
    BusinessReference(NUMBER),
    BusinessReference("a", {"b": NUMBER}),
    BusinessReference("a", {"": "b"}),
    BusinessReference("a", NUMBER),
]


@pytest.mark.parametrize("reference", BAD_REFERENCES)
async def test_bad_reference_is_refused_and_nothing_is_stored(engine: Engine, reference: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"business.reference"):
        await engine.start(order, 5, business_reference=reference)

    assert await engine.list() == []


async def test_positional_state_replaces_and_keys_are_merged_into_it() -> None:
    @workflow
    async def steps(ctx: Context) -> list[Any]:
        found = [ctx.state]
        ctx.set_state({"a": 1, "b": 2})
        ctx.set_state(b=Decimal("2.50"), c="x")
        found.append(ctx.state)
        ctx.set_state({"a": 3}, d=4)
        found.append(ctx.state)
        ctx.set_state(value=1)
        found.append(ctx.state)
        ctx.set_state([1])
        try:
            ctx.set_state(a=1)
        except InvalidArguments as error:
            found.append(error.message.split(",")[0])
        ctx.set_state(None)
        ctx.set_state(z=1)
        return [*found, ctx.state]

    async with TestEngine(workflows=[steps]) as engine:
        handle = await engine.start(steps)
        found = await handle.result()

    assert found[:4] == [None, {"a": 1, "b": "2.50", "c": "x"}, {"a": 3, "d": 4}, {"a": 3, "d": 4, "value": 1}]
    assert found[4:] == ["Expected to merge a into a state that is a mapping", {"z": 1}]


# --- cursors and errors ---


async def test_L2_cursor_of_another_list_is_refused(engine: Engine) -> None:
    for number in range(4):
        await engine.start(order, number, workflow_id=f"o-{number}")
    page = await engine.list(where="state.amount >= 0", order_by="state.amount", limit=2)
    plain = await engine.list(limit=2)

    rest = await engine.list(where="state.amount  >=  0", order_by="state.amount asc", limit=2, cursor=page.cursor)
    assert [info.workflow_id for info in rest] == ["o-2", "o-3"]
    for cursor, options in [
        (page.cursor, {"where": "state.amount > 0", "order_by": "state.amount"}),
        (page.cursor, {"where": "state.amount >= 0"}),
        (page.cursor, {"where": "state.amount >= 0", "order_by": "state.amount", "org": "other"}),
        (page.cursor, {}),
        (plain.cursor, {"where": "state.amount >= 0"}),
        ("h2.0123456789abcdef.e30=", {"where": "state.amount >= 0"}),
    ]:
        with pytest.raises(InvalidArguments, match="cursor"):
            await engine.list(cursor=cursor, **options)  # type: ignore[arg-type]


async def test_filter_that_does_not_parse_is_refused(engine: Engine) -> None:
    with pytest.raises(FilterError, match="at character 10"):
        await engine.list(where="status = running")
    with pytest.raises(FilterError, match="Expected order_by"):
        await engine.list(order_by="nonsense")
    with pytest.raises(FilterError):
        await engine.count(where="")


async def test_filter_combines_with_other_conditions(engine: Engine) -> None:
    for number in range(4):
        await engine.start(order, number, workflow_id=f"o-{number}", metadata={"by": "ann" if number % 2 else "bob"})

    assert await ids(engine, "state.amount > 0", metadata={"by": "ann"}, status="suspended") == ["o-3", "o-1"]
    assert await ids(engine, "state.amount > 0", workflow_id="o-2") == ["o-2"]


# --- codecs ---


class Hexadecimal:
    """Writes values as digits."""

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(one.data.hex().encode(), "hexadecimal") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(bytes.fromhex(one.data.decode())) for one in payloads]


async def test_L4_with_a_codec_only_named_keys_are_stored_as_plain_text(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    async with Engine(f"sqlite:///{file}", workflows=[order], codec=Hexadecimal(), searchable_state=["step"]) as engine:
        await engine.start(order, 71.625, workflow_id="o")
        found = await ids(engine, "state.step = 'new'")
        with pytest.raises(FilterError, match="searchable_state"):
            await engine.list(where="state.amount = 71.625")
        with pytest.raises(FilterError, match="searchable_state"):
            await engine.list(order_by="state.amount")
        shown = (await engine.query_status("o")).state

    assert found == ["o"]
    assert shown == {"step": "new", "amount": 71.625}
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT kind, name, value FROM attributes").fetchall() == [("state", "step", "snew")]
        [(details,)] = database.execute("SELECT details FROM executions").fetchall()
    assert b"71625" not in details.replace(b".", b"")


async def test_L4_with_a_codec_no_key_is_searchable_unless_it_is_named(tmp_path: Path) -> None:
    async with Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[order], codec=Hexadecimal()) as engine:
        await engine.start(order, 5, workflow_id="o")

        with pytest.raises(FilterError, match="searchable_state"):
            await engine.count(where="NOT HAS state.step")
        assert await ids(engine, "workflow_id = 'o'") == ["o"]


@pytest.mark.parametrize("names", ["step", 5, [5], [""], ["x" * 256]])
def test_searchable_state_that_is_no_list_of_keys_is_refused(names: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="searchable_state"):
        Engine("sqlite:///unused.db", searchable_state=names)


# --- moving ---


async def test_states_and_references_move_with_exported_executions(engine: Engine, tmp_path: Path) -> None:
    if engine.store.exclusive and not isinstance(engine.store, PersistentStore):
        pytest.skip("a store in memory cannot be exported")
    await engine.start(order, 5, workflow_id="o", business_reference=REFERENCE)
    lines = [line async for line in engine.export_executions("o")]

    async with Engine(f"sqlite:///{tmp_path / 'other.db'}", workflows=[order]) as other:
        await other.import_executions(lines)

        assert await ids(other, "state.amount = 5 AND reference = '1200345' AND reference.annex = '2'") == ["o"]
        assert (await other.query_status("o")).business_reference == REFERENCE


async def test_states_and_references_go_with_their_execution(engine: Engine) -> None:
    await engine.start(order, 5, workflow_id="o", business_reference=REFERENCE)
    await engine.signal_workflow("o", "pay")
    await engine.terminate("o")

    assert await ids(engine, "state.step = 'paid'") == ["o"]
    await engine.store.purge(2**62, 100)
    await engine.start(order, 6, workflow_id="next")

    assert await ids(engine, "HAS state.step OR HAS reference") == ["next"]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "an item": lambda state: state.__setitem__("step", "d"),
    "an item inside": lambda state: state["inner"].__setitem__("step", "d"),
    "an item of a list": lambda state: state["items"].__setitem__(0, "d"),
    "append": lambda state: state["items"].append(2),
    "add": lambda state: state["items"].__iadd__([2]),
    "update": lambda state: state.update(step="d"),
    "merge": lambda state: state.__ior__({"step": "d"}),
    "setdefault": lambda state: state.setdefault("new", 1),
    "pop": lambda state: state.pop("step"),
    "delete": lambda state: operator.delitem(state, "step"),
    "clear": lambda state: state.clear(),
}


@workflow
async def changes_in_place(ctx: Context, how: str) -> str:
    ctx.set_state(step="a", items=[1], inner={"step": "b"})
    try:
        CHANGES[how](ctx.state)
    except InvalidArguments as error:
        return error.message
    return "changed"


@workflow
async def changes_a_copy(ctx: Context) -> list[Any]:
    ctx.set_state(step="a", items=[1], inner={"step": "b"})
    before = ctx.state
    changed = copy.deepcopy(before)
    changed["items"].append(2)
    changed["inner"]["step"] = "c"
    shallow = {**dict(before), "step": "d"} | {"more": [*copy.copy(before["items"]), 3]}
    ctx.set_state(changed)
    return [
        before,
        isinstance(before, dict),
        shallow,
        ctx.state,
        before == {"step": "a", "items": [1], "inner": {"step": "b"}},
    ]


@pytest.mark.parametrize("how", CHANGES)
async def test_L1_state_that_is_changed_in_place_says_how_to_set_it(how: str) -> None:
    async with TestEngine(workflows=[changes_in_place]) as engine:
        told = await (await engine.start(changes_in_place, how)).result()

    assert told.startswith("Expected ctx.state only to be read")
    assert "ctx.set_state(step=" in told


async def test_L1_copies_of_the_state_can_be_changed() -> None:
    async with TestEngine(workflows=[changes_a_copy]) as engine:
        first, is_dict, shallow, after, is_equal = await (await engine.start(changes_a_copy)).result()

    assert first == {"step": "a", "items": [1], "inner": {"step": "b"}}
    assert (is_dict, is_equal) == (True, True)
    assert shallow == {"step": "d", "items": [1], "inner": {"step": "b"}, "more": [1, 3]}
    assert after == {"step": "a", "items": [1, 2], "inner": {"step": "c"}}
