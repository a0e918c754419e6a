"""`holdfast dead-letters`: what could not be handled, kept whole until somebody decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.databases import Database, database_argument, org_option, use_database

if TYPE_CHECKING:
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
@click.pass_obj
def list_letters(database: Database, org: str) -> None:
    """List the dead letters of an org, oldest first."""
    from holdfast.cli.tables import shorten, show_json, show_rows, show_time

    letters = use_database(database, lambda store: read_letters(store, org))
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
@click.pass_obj
def requeue(database: Database, ids: tuple[int, ...], everything: bool, org: str) -> None:
    """Have dead letters tried again.

    The engine does so when it opens the database next; nodes that share it do so now.
    """

    async def work(store: Store) -> int:
        from holdfast.engine.clock import SystemClock
        from holdfast.store.contract import WakeReason

        chosen = await choose_ids(store, org, ids, everything)
        requeued = await store.requeue_dead_letters(org, chosen, SystemClock().now())
        await store.wake(WakeReason.WORK)
        return requeued

    report(use_database(database, work, to_write=True), ids, "requeued")


@dead_letters.command()
@choice_of_letters
@org_option
@click.pass_obj
def discard(database: Database, ids: tuple[int, ...], everything: bool, org: str) -> None:
    """Throw dead letters away for good."""

    async def work(store: Store) -> int:
        return await store.discard_dead_letters(org, await choose_ids(store, org, ids, everything))

    report(use_database(database, work, to_write=True), ids, "discarded")


async def read_letters(store: Store, org: str) -> list[DeadLetter]:
    """All dead letters of an org."""
    from holdfast.engine.views import to_dead_letter

    found: list[DeadLetter] = []
    while True:
        page = await store.list_dead_letters(org, PAGE, found[-1].id if found else 0)
        found.extend(map(to_dead_letter, page))
        if len(page) < PAGE:
            return found


async def choose_ids(store: Store, org: str, ids: tuple[int, ...], everything: bool) -> list[int]:
    """The ids that were given, or all of the org with --all. Raises UsageError."""
    if everything == bool(ids):
        raise click.UsageError("Expected the ids of dead letters, or --all, but got neither or both. Give one of them.")
    return [letter.id for letter in await read_letters(store, org)] if everything else list(ids)


def report(done: int, ids: tuple[int, ...], verb: str) -> None:
    """Print how many dead letters were handled; raises ClickException if some ids do not exist."""
    from holdfast.cli.tables import count

    click.echo(f"{count(done, 'dead letter')} {verb}.")
    missing = len(set(ids)) - done
    if missing > 0:
        raise click.ClickException(
            f"Expected every id to be that of a dead letter, but {missing} of them {'is' if missing == 1 else 'are'} not. "
            "Run `holdfast dead-letters DB list`."
        )
