"""A newer Holdfast migrates the tables while nodes of this version run: what is added does no harm."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from holdfast.errors import CorruptStore
from holdfast.store.postgres.statements import read_migrations
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import InboxRow
from tests.store.builders import commit, make_row, make_start, make_timer, make_turn, read_row
from tests.store.postgres.watching import Watch

PAGE: Final = Path(__file__).parents[3] / "docs" / "upgrades.md"
CHANGELOG: Final = PAGE.parents[1] / "CHANGELOG.md"
TABLES: Final = [
    "executions",
    "events",
    "timers",
    "inbox",
    "dead_letters",
    "requests",
    "activities",
    "nodes",
    "locks",
    "marks",
    "in_flight",
]
HARMFUL: Final = re.compile(
    r"\b(DROP(?!\s+INDEX)|RENAME|ALTER\s+COLUMN|TRUNCATE)\b|ADD\s+COLUMN(?:(?!DEFAULT)[^;])*NOT\s+NULL(?![^;]*DEFAULT)"
)
"""What breaks the statements of the version before."""
STOPS_ALL: Final = {3}
"""Migrations beside which the version before cannot run. docs/upgrades.md says so of each; there should be no more."""


def test_migrations_add_and_leave_the_version_before_working() -> None:
    found = {number for number, sql in read_migrations("holdfast") if HARMFUL.search(_without_comments(sql))}

    assert found == STOPS_ALL


def test_document_names_each_migration_that_stops_all_nodes() -> None:
    text = PAGE.read_text()

    for number in STOPS_ALL:
        assert f"schema version {number}" in text


def test_documents_name_each_migration_and_the_changelog_the_newest() -> None:
    text = PAGE.read_text()
    numbers = [number for number, _ in read_migrations("holdfast")]

    for before, number in pairwise(numbers):
        assert f"| schema version {before} | schema version {number} |" in text
    assert re.search(rf"Tables: schema versions? (\d+ to )?{numbers[-1]}\b", CHANGELOG.read_text())


def _without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*", "", sql)


async def test_node_goes_on_when_columns_tables_and_indexes_are_added(left: PostgresStore, watch: Watch) -> None:
    row = make_row(1)
    await commit(left, make_start(row, timers=[make_timer(1, due=1)]))
    for table in TABLES:
        await watch.fetch(f"ALTER TABLE {table} ADD COLUMN added text NOT NULL DEFAULT 'something'")
    await watch.fetch("CREATE TABLE added (id bigint)")
    await watch.fetch("CREATE INDEX added_later ON executions (workflow)")

    await commit(left, make_turn(row, events=2))

    assert (await read_row(left)).sequence == row.sequence + 2
    assert await left.deliver([InboxRow(row.org, row.execution_id, "", b"{}")]) == [True]
    assert await left.take_offers("node", ["default\twork"], 1) == []


async def test_node_says_what_happened_when_a_column_is_renamed(left: PostgresStore, watch: Watch) -> None:
    await commit(left, make_start(make_row(1)))
    await watch.fetch("ALTER TABLE executions RENAME COLUMN nodes TO node_list")

    with pytest.raises(CorruptStore, match="If a newer Holdfast migrated it, upgrade this node"):
        await commit(left, make_start(make_row(2, workflow_id="other")))
