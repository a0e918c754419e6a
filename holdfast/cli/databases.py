"""Databases that are named on the command line: how they are found, and opened without an engine.

Nothing here creates a database or changes a schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.codecs import find_codec
from holdfast.errors import (
    AnswerTimedOut,
    ConnectionRefused,
    ExecutionNotFound,
    HoldfastError,
    InvalidConfiguration,
    OutcomeUnknown,
)

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.views import History
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

SQLITE = "sqlite:///"
_REQUEST_ID = "holdfast.request_id"
PATIENCE = 60.0
"""Seconds within which a verb has to be answered. Owners that begin or end take some of it."""


@dataclass(frozen=True)
class Database:
    """A database that is named on the command line. Its text has no password."""

    url: str

    def __str__(self) -> str:
        from holdfast.engine.stores import hide_password

        return hide_password(self.url).removeprefix(SQLITE)

    @classmethod
    def at(cls, path: Path) -> Database:
        """The SQLite database in a file."""
        return cls(f"{SQLITE}{path}")

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; None if it is on a server."""
        if not self.url.startswith("sqlite://"):
            return None
        from holdfast.store.sqlite.urls import parse_url

        return parse_url(self.url).expanduser().resolve()

    @property
    def client_url(self) -> str:
        """The URL by which a client finds the database."""
        return self.url if (file := self.file) is None else f"{SQLITE}{file}"

    def make_store(self) -> Store:
        """The store of the database, not opened yet. Raises InvalidConfiguration if its URL is invalid."""
        from holdfast.engine.stores import make_store

        return make_store(self.url)

    def make_reader(self) -> Store:
        """The store of the database for reading alone: a file is read beside its owner. Not opened yet."""
        if (file := self.file) is None:
            return self.make_store()
        from holdfast.store.sqlite.files import SqliteFile

        return SqliteFile(file)


def read_name(_ctx: click.Context, _param: click.Parameter, value: str) -> Database:
    """Parse a path or URL; the database need not exist. Raises BadParameter."""
    from holdfast.engine.stores import POSTGRES_SCHEMES

    scheme, separator, _ = value.partition("://")
    if separator and scheme not in ("sqlite", *POSTGRES_SCHEMES):
        raise click.BadParameter(
            f"Expected a path, 'sqlite:///file.db' or 'postgresql://user@host/database', but the URL begins with "
            f"'{scheme}://'. Correct it."
        )
    database = Database(value) if separator else Database.at(Path(value))
    try:
        database.make_store()
    except InvalidConfiguration as error:
        raise click.BadParameter(error.message) from error
    return database


def find_database(ctx: click.Context, param: click.Parameter, value: str) -> Database:
    """Parse a path or URL; a file must exist, since reading a database never creates one. Raises BadParameter."""
    database = read_name(ctx, param, value)
    if database.url.startswith(SQLITE):
        path = Path(database.url.removeprefix(SQLITE))
        try:
            what = _find_fault(path)
        except OSError as error:  # a folder that may not be entered, a name that is too long
            what = f"{error.strerror or error}. Check the path"
        if what is not None:
            raise click.BadParameter(f"Expected a database file at '{path}', but {what}.")
    return database


def _find_fault(path: Path) -> str | None:
    """Why a path cannot be that of a database; None if it may be."""
    if path.is_dir():
        return "it is a folder. Name a file in it"
    if not path.is_file():
        return "there is none. Check the path; the first engine makes it"
    return None if path.stat().st_size else "the file is empty. Check the path"


def database_argument(function: Function) -> Function:
    """Add the argument DB to a command."""
    return click.argument("database", callback=find_database, metavar="DB")(function)


def org_option(function: Function) -> Function:
    """Add the option --org to a command."""
    return click.option("--org", default="default", show_default=True, help="The organisation to look into.")(function)


@asynccontextmanager
async def open_database(database: Database, *, to_write: bool = False) -> AsyncIterator[Store]:
    """The store alone, without an engine: nothing is recovered and no workflow runs. Raises StoreError.

    A SQLite file is read while others own it, and owned to be written to. A database that was moved, or takes part in a
    transfer, can be read but not written to.
    """
    from holdfast.engine.encoded_store import put_codec_before
    from holdfast.engine.transfer.marks import describe_transfer, refuse_moved
    from holdfast.store.transfer import PersistentStore

    store = database.make_store() if to_write else database.make_reader()
    if not isinstance(store, PersistentStore):
        raise InvalidConfiguration(f"Expected a database that lasts, but '{database}' is none. Name another.")
    await store.open_existing()
    try:
        if to_write:
            await refuse_moved(store)
        elif (transfer := await describe_transfer(store)) is not None:
            click.echo(f"Note: {transfer}.", err=True)
        yield put_codec_before(store, find_codec())
    finally:
        await store.close()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Await something in an event loop of its own."""
    return asyncio.run(work)


def use_database(database: Database, work: Callable[[Store], Coroutine[Any, Any, T]], *, to_write: bool = False) -> T:
    """Open a database, await `work` with its store, and close it. Raises StoreError."""

    async def run() -> T:
        async with open_database(database, to_write=to_write) as store:
            return await work(store)

    return asyncio.run(run())


async def find_execution(store: Store, org: str, target: str) -> ExecutionRow:
    """Find an execution by its id, or the newest one of a workflow id. Raises ExecutionNotFound."""
    row = await store.find_execution(org, target) or await store.find_latest(org, target)
    if row is None:
        raise ExecutionNotFound(
            f"Expected to find execution '{target}', but org '{org}' has none of that id. "
            "Run `holdfast list` to see what there is, and mind --org."
        )
    return row


def make_request_id() -> str:
    """A request id for a call that was given none. Whoever is not told what became of the call is told the id."""
    from uuid import uuid4

    made = f"cli-{uuid4()}"
    click.get_current_context().meta[_REQUEST_ID] = made
    return made


def use_client(
    database: Database, work: Callable[[Client], Coroutine[Any, Any, T]], *, patience: float | None = PATIENCE
) -> T:
    """Await `work` with a client of a database, in which nothing is created. Raises what the verbs raise.

    If it is not known what became of it, the request id that was made for it is told: with it the call can be repeated.
    """

    async def run() -> T:
        from holdfast.client.client import Client

        if database.file is None:
            async with open_database(database):
                pass  # a client would make a schema that is missing
        async with Client(database.client_url, codec=find_codec()) as client, asyncio.timeout(patience):
            return await work(client)

    request_id = click.get_current_context().meta.get(_REQUEST_ID)
    try:
        return asyncio.run(run())
    except (AnswerTimedOut, OutcomeUnknown, ConnectionRefused) as error:
        if request_id is None:
            raise
        raise click.ClickException(f"{error.message} Its id was made up: --request-id {request_id}") from error
    except TimeoutError as error:
        if isinstance(error, HoldfastError):
            raise
        raise click.ClickException(
            f"Expected an answer within {patience:.0f} seconds, but whoever has {database} gave none. Look whether it "
            "happened, and whether that process is frozen or overloaded; then try again, with "
            f"{'the same --request-id' if request_id is None else f'--request-id {request_id}'}"
        ) from None


async def read_history(store: Store, row: ExecutionRow) -> History:
    """The whole history of an execution."""
    from holdfast.engine.rows import to_turns
    from holdfast.engine.views import History

    return History(to_turns(await store.load_history(row.execution_id)), row.execution_id, row.org)
