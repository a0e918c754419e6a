"""Databases named on the command line: found, opened without an engine, and let go of again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.errors import ExecutionNotFound

if TYPE_CHECKING:
    from holdfast.engine.views import History
    from holdfast.store.contract import ExecutionRow, Store

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

SCHEME = "sqlite:///"


def find_database(_ctx: click.Context, _param: click.Parameter, value: str) -> Path:
    """The file of a path or URL. It must exist: looking into a database never makes one."""
    path = Path(value.removeprefix(SCHEME))
    if not path.is_file():
        raise click.BadParameter(f"Expected a database file at '{path}', but there is none. Check the path.")
    if not path.stat().st_size:
        raise click.BadParameter(f"Expected a database at '{path}', but the file is empty. Check the path.")
    return path


def database_argument(function: Function) -> Function:
    """The argument DB."""
    return click.argument("database", callback=find_database, metavar="DB")(function)


def org_option(function: Function) -> Function:
    """The option --org."""
    return click.option("--org", default="default", show_default=True, help="The organisation to look into.")(function)


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Store]:
    """The store alone, without an engine: nothing is recovered and no workflow runs. Raises StoreError."""
    from holdfast.store.sqlite.store import SqliteStore

    store = SqliteStore(path)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def use_database(path: Path, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Open the database, do the work, close it."""

    async def run() -> T:
        async with open_database(path) as store:
            return await work(store)

    return asyncio.run(run())


async def find_execution(store: Store, org: str, target: str) -> ExecutionRow:
    """By execution id, else the newest of a workflow id. Raises ExecutionNotFound."""
    row = await store.find_execution(org, target) or await store.find_latest(org, target)
    if row is None:
        raise ExecutionNotFound(
            f"Expected to find execution '{target}', but org '{org}' has none of that id. "
            "Run `holdfast list` to see what there is, and mind --org."
        )
    return row


async def read_history(store: Store, row: ExecutionRow) -> History:
    """The whole history of an execution."""
    from holdfast.engine.rows import to_turns
    from holdfast.engine.views import History

    return History(to_turns(await store.load_history(row.execution_id)), row.execution_id, row.org)
