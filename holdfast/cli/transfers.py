"""`holdfast transfer`: everything that one database holds goes to another."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.databases import Database, find_database, read_name

if TYPE_CHECKING:
    from holdfast.engine.transfer.transfers import TransferProgress, TransferReport


@click.command(name="transfer")
@click.argument("source", callback=find_database, metavar="SOURCE")
@click.argument("target", callback=read_name, metavar="TARGET")
@click.option(
    "--abandon", is_flag=True, help="Give up a transfer that is not complete: TARGET is emptied, SOURCE free again."
)
@json_option
def transfer_database(source: Database, target: Database, abandon: bool, as_json: bool) -> None:
    """Transfer everything to another database.

    Stop every engine first. Open executions go on in TARGET, which must be empty, or not exist yet. If the command is
    interrupted, run it again: it resumes. At the end everything is read back and compared; then SOURCE is marked as moved,
    and no engine opens it any more.
    """
    if abandon:
        abandon_transfer(source, target, as_json=as_json)
        return
    from holdfast.engine.transfer.transfers import transfer

    report = asyncio.run(transfer(source.url, target.url, on_progress=ProgressDisplay().show))
    if as_json:
        rows = {kind: {"rows": tally.rows, "checksum": tally.checksum} for kind, tally in report.tallies.items()}
        print_json({"was_done_before": report.was_done_before, "rows": rows})
    else:
        show_report(report, source, target)


def abandon_transfer(source: Database, target: Database, *, as_json: bool = False) -> None:
    """Give up a transfer that is not complete, and say what becomes of both databases."""
    from holdfast.engine.transfer.transfers import abandon

    is_emptied = asyncio.run(abandon(source.url, target.url))
    text = f"ok: the transfer was given up. {source} can be used again"
    if is_emptied:
        text += "."
    else:
        text += (
            f"; {target} could not be reached, and keeps what was copied. No engine opens it: drop it, or give the transfer "
            "up once more when it is back."
        )
    answer({"abandoned": True, "is_target_emptied": is_emptied}, text, as_json=as_json)


def show_report(report: TransferReport, source: Database, target: Database) -> None:
    """Print how many rows of each kind were transferred, with their checksums."""
    from holdfast.cli.tables import show_rows

    if report.was_done_before:
        click.echo(f"ok: everything was transferred from {source} to {target} before.")
        return
    show_rows(
        ("what", "rows", "checksum on both sides"),
        [(kind, f"{tally.rows:,}", tally.checksum) for kind, tally in report.tallies.items()],
    )
    click.echo(f"ok: everything was transferred from {source} to {target}. No engine opens {source} any more.")


class ProgressDisplay:
    """Shows on standard error how far a transfer has come: on a terminal one line that changes, else one per kind of row."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, progress: TransferProgress) -> None:
        """Print a report of progress, unless it repeats the last one or a pipe need not see it."""
        is_whole = progress.done >= progress.total
        text = f"{progress.verb} {progress.done:,} of {progress.total:,} {progress.kind}"
        if text == self._last or not (self._is_terminal or is_whole):
            return
        self._last = text
        click.echo(f"\r{text}" if self._is_terminal else text, nl=is_whole, err=True)
