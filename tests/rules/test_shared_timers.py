"""T2, T3 and D2 where nodes share a database: every timer has one effect, and nobody waits for what cannot be handled."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.core.ids import DEFAULT_ORG
from holdfast.store.rows import InboxRow
from holdfast.testing import count_events
from tests.engine import hooks
from tests.rules.world import Nodes

NAMES = ("two", "three", "four")
MANY = 40


@workflow
async def nap(ctx: Context, seconds: int) -> str:
    await ctx.sleep(seconds)
    await ctx.wait_for_signal("end")
    return "woken"


@workflow
async def patient(ctx: Context) -> list[str]:
    """Waits 60 s for a word; each word makes it wait anew."""
    words: list[str] = []
    while True:
        try:
            words.append(await ctx.wait_for_signal("word", str, timeout=60))
        except TimeoutError:
            return words


ALL: list[Workflow[..., Any]] = [nap, patient]


def due_of(number: int) -> int:
    """Seconds; in another order than that of the starts."""
    return (number * 17) % 101 + 1


async def test_T2_timers_that_came_due_while_all_nodes_were_down_fire_at_once_in_due_order_and_once(nodes: Nodes) -> None:
    one = await nodes.open("one", ALL)
    for number in range(MANY):
        await one.start(nap, due_of(number), workflow_id=f"w-{number}")
    await nodes.kill("one")
    await nodes.clock.advance(1_000)
    nodes.commits.clear()

    engines = [await nodes.open(name, ALL, batch_size=5) for name in NAMES]
    await nodes.clock.advance(seconds=1)  # what another node held at the last look is looked for once more

    histories = [await engines[0].history(f"w-{number}") for number in range(MANY)]
    assert [count_events(history, "TimerFired") for history in histories] == [1] * MANY
    assert (await engines[0].store.count()).timers == 0
    due = {f"w-{number}": due_of(number) for number in range(MANY)}
    by_node: dict[str, list[int]] = defaultdict(list)
    for turn in (turn for commit in nodes.commits for turn in commit.turns):
        by_node[codec.decode_details(turn.row.details).last_node].append(due[turn.row.workflow_id])
    assert sum(map(len, by_node.values())) == MANY
    assert all(fired == sorted(fired) for fired in by_node.values()), "each node takes what is due first"


async def test_T2_timer_that_comes_due_on_three_nodes_has_one_effect(nodes: Nodes) -> None:
    engines = [await nodes.open(name, ALL) for name in NAMES]
    handles = [await engines[number % 3].start(nap, 30, workflow_id=f"w-{number}") for number in range(MANY)]

    await nodes.clock.advance(seconds=29)
    early = (await engines[0].store.count()).timers
    await nodes.clock.advance(seconds=2)

    assert early == MANY
    assert [count_events(await handle.history(), "TimerFired") for handle in handles] == [1] * MANY


async def test_T3_timer_that_was_set_anew_by_another_node_fires_once_at_its_new_time(nodes: Nodes) -> None:
    engines = [await nodes.open(name, ALL) for name in NAMES]
    start = nodes.clock.present
    await engines[0].start(patient, workflow_id="w")
    for number in range(6):
        await nodes.clock.advance(seconds=50)
        await engines[number % 3].signal_workflow("w", "word", str(number))

    await nodes.clock.advance(seconds=59)
    before = (await engines[0].query_status("w")).closed_at
    await nodes.clock.advance(seconds=2)

    assert before is None
    closed_at = (await engines[1].query_status("w")).closed_at
    assert closed_at is not None
    assert closed_at - start == pytest.approx(timedelta(seconds=360), abs=timedelta(seconds=1))
    assert await engines[2].query_result("w") == [str(number) for number in range(6)]
    assert count_events(await engines[0].history("w"), "TimerFired") == 1


async def test_D2_poison_on_a_shared_store_delays_nobody_and_is_kept_as_it_came(nodes: Nodes) -> None:
    engines = [await nodes.open(name, ALL) for name in NAMES]
    handles = [await engines[number % 3].start(patient, workflow_id=f"w-{number}") for number in range(9)]
    good = codec.encode(hooks.make_signal(engines[0], "word", "hello"))

    rows = [
        InboxRow(DEFAULT_ORG, str(handle.execution_id), "", body) for handle in handles for body in (b"\xff poison", good)
    ]
    await nodes.put_row(*rows)
    await nodes.clock.advance(seconds=1)

    received = [count_events(await handle.history(), "SignalReceived") for handle in handles]
    letters = await engines[0].dead_letters()
    assert received == [1] * 9
    assert [letter.execution_id for letter in letters] == [str(handle.execution_id) for handle in handles]
    assert {row.body for row in await engines[0].store.list_dead_letters(DEFAULT_ORG)} == {b"\xff poison"}
    assert {letter.node for letter in letters} <= set(NAMES)
