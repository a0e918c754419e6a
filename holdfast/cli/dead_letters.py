"""`holdfast dead-letters`: what could not be handled, kept whole until somebody decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, org_option, use_client, use_database

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.views import DeadLetter
    from holdfast.store.contract import Store

Function = TypeVar("Function", bound=Callable[..., Any])

PAGE = 500


@click.group("dead-letters")
@database_argument
@click.pass_context
def dead_letters(ctx: click.Context, database: Database) -> None:
    """List, requeue or discard dead letters.

    They are signals and other envelopes that could not be handled, kept as they came.
    """
    ctx.obj = database


def choice_of_letters(function: Function) -> Function:
    """Add the argument ID and the option --all to a command on dead letters."""
    everything = click.option("--all", "everything", is_flag=True, help="All dead letters of the org.")
    return click.argument("ids", nargs=-1, type=int, metavar="[ID]...")(everything(function))


@dead_letters.command("list")
@org_option
@codec_option
@json_option
@click.pass_obj
def list_letters(database: Database, org: str, as_json: bool) -> None:
    """List the dead letters of an org, oldest first."""
    from holdfast.cli.tables import shorten, show_json, show_rows, show_time

    letters = use_database(database, lambda store: read_letters(store, org))
    if as_json:
        print_json({"dead_letters": letters})
        return
    if not letters:
        click.echo("There are none.")
        return
    show_rows(
        ("id", "time", "for", "reason", "attempts", "envelope"),
        [
            (
                letter.id,
                show_time(letter.at),
                letter.workflow_id or letter.execution_id,
                shorten(letter.reason),
                letter.attempts,
                shorten(show_json(letter.envelope)),
            )
            for letter in letters
        ],
    )


@dead_letters.command()
@choice_of_letters
@org_option
@json_option
@click.pass_obj
def requeue(database: Database, ids: tuple[int, ...], everything: bool, org: str, as_json: bool) -> None:
    """Have dead letters tried again.

    Those who work on the database do so now; if nobody does, the next engine that opens it.
    """
    chosen = choose_ids(database, org, ids, everything)

    async def work(client: Client) -> int:
        return sum([await client.requeue_dead_letters(page, org=org) for page in cut(chosen)])

    report(use_client(database, work), ids, "requeued", as_json=as_json)


@dead_letters.command()
@choice_of_letters
@org_option
@json_option
@click.pass_obj
def discard(database: Database, ids: tuple[int, ...], everything: bool, org: str, as_json: bool) -> None:
    """Throw dead letters away for good."""
    chosen = choose_ids(database, org, ids, everything)

    async def work(client: Client) -> int:
        return sum([await client.discard_dead_letters(page, org=org) for page in cut(chosen)])

    report(use_client(database, work), ids, "discarded", as_json=as_json)


def cut(ids: list[int]) -> list[list[int]]:
    """Ids in pages, each for one call."""
    return [ids[at : at + PAGE] for at in range(0, len(ids), PAGE)] or [[]]


async def read_letters(store: Store, org: str) -> list[DeadLetter]:
    """All dead letters of an org."""
    from holdfast.engine.views import to_dead_letter

    found: list[DeadLetter] = []
    while True:
        page = await store.list_dead_letters(org, PAGE, found[-1].id if found else 0)
        found.extend(map(to_dead_letter, page))
        if len(page) < PAGE:
            return found


def choose_ids(database: Database, org: str, ids: tuple[int, ...], everything: bool) -> list[int]:
    """The ids that were given, or all of the org with --all. Raises UsageError."""
    if everything == bool(ids):
        raise click.UsageError("Expected the ids of dead letters, or --all, but got neither or both. Give one of them.")
    if ids:
        return list(dict.fromkeys(ids))
    return [letter.id for letter in use_database(database, lambda store: read_letters(store, org))]


def report(done: int, ids: tuple[int, ...], verb: str, *, as_json: bool) -> None:
    """Print how many dead letters were handled; raises ClickException if some ids do not exist."""
    from holdfast.cli.tables import count

    answer({verb: done}, f"{count(done, 'dead letter')} {verb}.", as_json=as_json)
    missing = len(set(ids)) - done
    if missing > 0:
        raise click.ClickException(
            f"Expected every id to be that of a dead letter, but {missing} of them {'is' if missing == 1 else 'are'} not. "
            "Run `holdfast dead-letters DB list`."
        )
