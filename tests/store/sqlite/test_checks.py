from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from holdfast.store.contract import UnroutedWrite
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import commit, id_of, make_closing, make_row, make_signal, make_start, make_timer, make_turn


@pytest.fixture
async def store(store: SqliteStore) -> SqliteStore:
    """With two executions, one of them closed, three turns each."""
    for number in (1, 2):
        start = make_start(make_row(number), timers=[make_timer(1, due=5, of=number)])
        second = make_turn(start.row, events=3)
        third = (make_turn if number == 1 else make_closing)(second.row)
        for turn in (start, second, third):
            assert await commit(store, turn) == set()
    await commit(store, loose=UnroutedWrite(outgoing=[make_signal("on")]))
    assert await store.check() == []
    return store


def harm(statement: str) -> Callable[[sqlite3.Connection], object]:
    return lambda database: database.execute(statement)


HARM = {
    "a turn is missing": (
        harm("DELETE FROM events WHERE execution = 1 AND first = 2"),
        ["expected event 2 next in its history, found 5", "turn 5 follows row 2 of its history, expected row 1"],
    ),
    "the last turn is missing": (
        harm("DELETE FROM events WHERE execution = 1 AND first = 5"),
        ["its history ends at 4, its row says 5", "its history ends with row 2, its row says 3"],
    ),
    "turns overlap": (
        harm("UPDATE events SET count = 4 WHERE execution = 1 AND first = 2"),
        ["turn 2 holds 3 events, its count says 4", "expected event 6 next in its history, found 5"],
    ),
    "the row counts more": (
        harm("UPDATE executions SET sequence = 9 WHERE id = 1"),
        ["its history ends at 5, its row says 9"],
    ),
    "the row has no turn": (
        harm("UPDATE executions SET last_turn = 0 WHERE id = 1"),
        ["its history ends with row 3, its row says 0"],
    ),
    "a history has no row": (
        harm("DELETE FROM executions WHERE id = 2"),
        ["the execution with number 2 has a history and no row", f"execution {id_of(2)}: it has attributes and no row"],
    ),
    "events cannot be decoded": (
        harm("UPDATE events SET body = x'5b' WHERE execution = 1 AND first = 1"),
        ["turn 1: Expected to decode a turn's events"],
    ),
    "details cannot be decoded": (
        harm("UPDATE executions SET details = x'7b' WHERE id = 1"),
        ["Expected to decode an execution's details"],
    ),
    "an envelope cannot be decoded": (
        harm("UPDATE inbox SET body = x'7b'"),
        ["envelope 1: Expected to decode an envelope"],
    ),
    "a status does not exist": (
        harm("UPDATE executions SET status = 'asleep' WHERE id = 1"),
        ["its status is 'asleep', which does not exist"],
    ),
    "a closed one has no time of closing": (
        harm("UPDATE executions SET status = 'failed' WHERE id = 1"),
        ["it is failed, and its time of closing is None"],
    ),
    "a timer of nobody": (
        harm("INSERT INTO timers VALUES ('nobody', 3, 'default', 1, 0, '', 'timer')"),
        ["timer 3 of execution nobody: there is no such execution"],
    ),
    "a timer of a closed one": (
        harm(f"INSERT INTO timers VALUES ('{id_of(2)}', 3, 'default', 1, 0, '', 'timer')"),
        [f"timer 3 of execution {id_of(2)}: the execution is completed"],
    ),
    "an offered activity of nobody": (
        harm("INSERT INTO activities VALUES (1, 'default', 'nobody', 3, 1, '', x'7b7d', NULL)"),
        ["offered activity 3 of execution nobody: there is no such execution"],
    ),
    "an offered activity of a closed one": (
        harm(f"INSERT INTO activities VALUES (1, 'default', '{id_of(2)}', 3, 1, '', x'7b7d', 'a')"),
        [f"offered activity 3 of execution {id_of(2)}: the execution is completed"],
    ),
}


@pytest.mark.parametrize("what", HARM)
async def test_what_contradicts_itself_is_found(store: SqliteStore, what: str) -> None:
    harm_it, expected = HARM[what]
    harm_it(store._connections.writer)

    problems = await store.check()

    assert len(problems) == len(expected)
    for part in expected:
        assert any(part in problem for problem in problems)


async def test_a_workflow_id_that_is_open_twice_is_found(store: SqliteStore) -> None:
    store._connections.writer.executescript(
        "DROP INDEX executions_one_open; UPDATE executions SET workflow_id = 'order-1', closed_at = NULL, status = 'running'"
    )

    problems = await store.check()

    assert problems == [f"workflow id 'order-1' of org 'default' is open more than once: {id_of(1)}, {id_of(2)}"]


async def test_a_damaged_page_is_found(store: SqliteStore) -> None:
    await store.close()
    content = bytearray(store.path.read_bytes())
    page_size = int.from_bytes(content[16:18], "big")
    root = sqlite3.connect(store.path)
    ((page,),) = root.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'executions_by_workflow_id'")
    root.close()
    start = (page - 1) * page_size
    content[start + 8 : start + 40] = b"\xff" * 32
    store.path.write_bytes(content)

    await store.open()

    problems = await store.check()
    assert problems
    assert all(problem.startswith("the file is damaged: ") for problem in problems)
