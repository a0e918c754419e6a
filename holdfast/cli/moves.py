"""`holdfast migrate`: everything from one database to another."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.databases import Database, find_database, read_name

if TYPE_CHECKING:
    from holdfast.engine.moving.moves import MoveReport, Step


@click.command()
@click.argument("source", callback=find_database, metavar="SOURCE")
@click.argument("target", callback=read_name, metavar="TARGET")
@click.option("--abandon", is_flag=True, help="Give up a move that is not complete: TARGET is emptied, SOURCE free again.")
def migrate(source: Database, target: Database, abandon: bool) -> None:
    """Move everything to another database.

    Stop every engine first. Open executions go on in TARGET, which must be empty, or not there yet. If the command is
    interrupted, run it again: it goes on where it was. At the end everything is read back and compared; then SOURCE is
    marked as moved, and no engine opens it any more.
    """
    if abandon:
        give_up(source, target)
        return
    from holdfast.engine.moving.moves import move

    show_report(asyncio.run(move(source.url, target.url, watch=Progress().note)), source, target)


def give_up(source: Database, target: Database) -> None:
    """Undo a move that is not complete."""
    from holdfast.engine.moving.moves import abandon

    if asyncio.run(abandon(source.url, target.url)):
        click.echo(f"ok: the move was given up. {source} can be used again.")
    else:
        click.echo(
            f"ok: the move was given up. {source} can be used again; {target} could not be reached, and keeps what was "
            "copied. No engine opens it: drop it, or give the move up once more when it is back."
        )


def show_report(report: MoveReport, source: Database, target: Database) -> None:
    """Print what was moved, with its checksums."""
    from holdfast.cli.tables import show_rows

    if report.was_done_before:
        click.echo(f"ok: everything was moved from {source} to {target} before.")
        return
    show_rows(
        ("what", "rows", "checksum on both sides"),
        [(kind, f"{tally.rows:,}", tally.checksum) for kind, tally in report.tallies.items()],
    )
    click.echo(f"ok: everything was moved from {source} to {target}. No engine opens {source} any more.")


class Progress:
    """Shows on standard error how far a move has come: one line that changes, or in a pipe one line per kind of row."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._said = ""

    def note(self, step: Step) -> None:
        """So much is done."""
        is_whole = step.done >= step.total
        text = f"{step.verb} {step.done:,} of {step.total:,} {step.kind}"
        if text == self._said or not (self._is_terminal or is_whole):
            return
        self._said = text
        click.echo(f"\r{text}" if self._is_terminal else text, nl=is_whole, err=True)
