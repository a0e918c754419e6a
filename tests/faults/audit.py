"""The auditor: nothing is lost, nothing counts twice, and whoever was told something was told the truth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from holdfast import Engine
from holdfast.core import events
from holdfast.core.events import AnyEvent
from holdfast.engine.rows import to_turns
from holdfast.store.rows import HistoryRow
from tests.eventually import eventually
from tests.faults.load import ONCE, Load, Told
from tests.faults.nodes import PATIENCE
from tests.faults.rest import find_rest, read_rows
from tests.faults.sites import Site, SqliteSite

ENDS = (events.ActivityCompleted, events.ActivityFailed, events.ActivityTimedOut, events.ActivityCancelled)


async def audit(site: Site, load: Load | None = None, patience: float = PATIENCE, given_up: Collection[str] = ()) -> None:
    """Wait until everything has ended, then look at all of it. Those that were given up may have left dead letters."""
    await wait_for_ends(site, patience)
    check_histories(site)
    if load is not None:
        check_starts(site, load, given_up)
        check_conversations(load)
    if isinstance(site, SqliteSite):  # only one process can have it
        for node in site.fleet.alive:
            await node.stop()
    async with Engine(site.direct_url, node="auditor") as engine:
        assert await engine.store.check() == []
        assert [letter for letter in await engine.dead_letters() if letter.workflow_id not in given_up] == []
        counts = await engine.store.count()
        assert (counts.executions, counts.timers, counts.inbox) == ({}, 0, 0)


async def wait_for_ends(site: Site, patience: float = PATIENCE) -> None:
    """Wait until no execution is open, and nothing is left in any queue."""
    await eventually(lambda: not find_rest(site.direct_url, 1), "every execution to end", patience)


def read_histories(site: Site) -> dict[str, list[AnyEvent]]:
    """The events of every execution, by its id."""
    query = (
        "SELECT executions.execution_id, first, count, at, schema, body"
        " FROM events JOIN executions ON executions.id = events.execution ORDER BY executions.id, first"
    )
    histories: dict[str, list[AnyEvent]] = defaultdict(list)
    for row in read_rows(site.direct_url, query):
        history = HistoryRow(*row)
        histories[history.execution_id] += to_turns([history])[0].events
    return histories


def check_histories(site: Site) -> None:
    """Each activity that was scheduled has one end, of an attempt that was begun; no attempt was begun twice."""
    effects = site.read_effects()
    begun = Counter(effect[:3] for effect in effects)
    twice = [effect for effect in effects if begun[effect[:3]] > 1]
    assert not twice, f"attempts that were begun twice: {twice}"
    asked: set[tuple[str, int]] = set()
    for execution_id, history in read_histories(site).items():
        scheduled = [event.number for event in history if isinstance(event, events.ActivityScheduled)]
        ended = [event for event in history if isinstance(event, ENDS)]
        fired = [event.number for event in history if isinstance(event, events.TimerFired)]
        assert sorted(event.number for event in ended) == sorted(set(scheduled)), (execution_id, scheduled, ended)
        assert len(fired) == len(set(fired)), (execution_id, fired)
        for event in ended:
            if isinstance(event, events.ActivityCompleted):
                assert (execution_id, event.number, event.attempt) in begun, (execution_id, event)
        asked |= {(execution_id, number) for number in scheduled}
    assert {(execution_id, number) for execution_id, number, _ in begun} <= asked, "an activity ran that no history asks for"


def check_starts(site: Site, load: Load, given_up: Collection[str] = ()) -> None:
    """Who was told that a workflow was started finds it, once; who was told that it was not does not."""
    rows = read_rows(site.direct_url, "SELECT workflow_id, workflow, status FROM executions WHERE parent_id IS NULL")
    rows = [row for row in rows if row[0] not in given_up]
    found = Counter(workflow_id for workflow_id, _, status in rows if status != "continued")
    for workflow_id in load.expected:
        assert found[workflow_id] == 1, (workflow_id, found[workflow_id])
    for workflow_id, told in load.started_once.items():
        assert told is Told.PERHAPS or found[workflow_id] == (told is Told.YES), (workflow_id, told, found[workflow_id])
    assert {status for *_, status in rows} <= {"completed", "continued"}
    assert set(found) <= set(load.expected) | set(load.started_once)


def check_conversations(load: Load) -> None:
    """Each conversation heard each sender's signals once and in order, and all that were accepted."""
    for workflow_id, heard in load.heard.items():
        by_sender: dict[str, list[int]] = defaultdict(list)
        for said in heard:
            by_sender[said.sender].append(said.number)
        once = by_sender.pop(ONCE, [])
        senders = {sender: list(range(count)) for (id_, sender), count in load.said.items() if id_ == workflow_id}
        assert by_sender == senders, workflow_id
        assert once == sorted(set(once)), (workflow_id, once)
        for (id_, number), told in load.told.items():
            assert id_ != workflow_id or told is Told.PERHAPS or (number in once) == (told is Told.YES), (id_, number, told)
