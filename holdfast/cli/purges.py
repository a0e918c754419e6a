"""`holdfast purge`: remove what ended long ago."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.answers import answer, json_option
from holdfast.cli.databases import Database, database_argument, use_database
from holdfast.cli.inputs import read_length

if TYPE_CHECKING:
    from holdfast.store.contract import Store

BATCH: Final = 200


@click.command()
@database_argument
@click.option("--older-than", callback=read_length, required=True, help="For how long what ended is kept: 12h, 30d, 8w.")
@json_option
def purge(database: Database, older_than: timedelta, as_json: bool) -> None:
    """Remove closed executions with their histories.

    Those that closed longer ago than --older-than. What is open is never touched. Engines do the same by themselves if they
    are given retention=….
    """
    from holdfast.cli.tables import count

    removed = use_database(database, lambda store: remove(store, older_than), to_write=True)
    answer({"removed": removed}, f"{count(removed, 'execution')} removed.", as_json=as_json)


async def remove(store: Store, older_than: timedelta) -> int:
    """Remove what closed longer ago, in small transactions; how many executions."""
    closed_before = time.time_ns() // 1000 - older_than // timedelta(microseconds=1)
    removed = 0
    while found := await store.purge(closed_before, BATCH):
        removed += found
    return removed
