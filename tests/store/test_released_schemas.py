"""A schema that was released never changes: databases of that version are out there, and only a migration reaches them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

import pytest

STORES: Final = Path(__file__).parents[2] / "holdfast" / "store"
SCHEMAS: Final = {
    ("postgres", 12): "eaa8b1ccc5261989",
    ("sqlite", 12): "a753b73b80263070",
}
"""Of each store the number of its newest migration, and the digest of `schema.sql` at that number."""
MIGRATIONS: Final = {
    "postgres/0002_initial.sql": "5998e825401be42a",
    "postgres/0003_timer_kinds_node_lists.sql": "296a9b52fda5e038",
    "postgres/0004_open_executions_index.sql": "d10bb4ec4f03da83",
    "postgres/0005_arrival_times.sql": "d3cef017e03d7aeb",
    "postgres/0006_attributes_answers_input_schemas.sql": "ef83b43c5b440080",
    "postgres/0007_subscriptions.sql": "58ab43132eeecb74",
    "postgres/0008_tasks.sql": "9a5ad101731d43b8",
    "postgres/0009_schedules.sql": "44b11ee891668423",
    "postgres/0010_states.sql": "c2e313ac9f66fcc9",
    "postgres/0011_pauses_questions.sql": "044d3c5a539823ba",
    "postgres/0012_definitions_incidents_snapshots.sql": "7b156f79aa7426e0",
    "sqlite/0001_initial.sql": "1e0a7376dbd51f1c",
    "sqlite/0002_routes_offers_retention.sql": "be1085f5c8343c5c",
    "sqlite/0003_timer_kinds_node_lists.sql": "3da50210c76e72dc",
    "sqlite/0004_open_executions_index.sql": "2226323cbb61f8a1",
    "sqlite/0005_arrival_times.sql": "c0d96a790b6e4f88",
    "sqlite/0006_attributes_answers_input_schemas.sql": "d43a6bb6b68914f8",
    "sqlite/0007_subscriptions.sql": "78640149ceb3b6d5",
    "sqlite/0008_tasks.sql": "b935127796c83e27",
    "sqlite/0009_schedules.sql": "ae557aa4d778c9b4",
    "sqlite/0010_states.sql": "c21e867ab20d106b",
    "sqlite/0011_pauses_questions.sql": "8144c662786214f1",
    "sqlite/0012_definitions_incidents_snapshots.sql": "16c5bad19ce82ab9",
}


def digest(path: Path) -> str:
    """The digest of the statements in a file, whatever its comments and white space are."""
    text = re.sub(r"--[^\n]*", "", path.read_text("utf-8"))
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("store", "number"), SCHEMAS)
def test_schema_changes_only_with_a_new_number(store: str, number: int) -> None:
    folder = STORES / store
    newest = max(int(file.name.split("_")[0]) for file in folder.joinpath("migrations").glob("*.sql"))
    found = (newest, digest(folder / "schema.sql"))

    assert found == (number, SCHEMAS[store, number]), (
        "schema.sql has changed: add a migration with the next number that brings older databases to it, and "
        "name its number with the new digest here. Never change the digest alone: databases of this number exist already."
    )


def test_migrations_that_were_released_do_not_change() -> None:
    found = {f"{file.parents[1].name}/{file.name}": digest(file) for file in sorted(STORES.glob("*/migrations/*.sql"))}

    assert found == MIGRATIONS, "a migration that was released never changes; a new one is added here with its digest"
