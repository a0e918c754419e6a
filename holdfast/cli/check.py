"""`holdfast check`: whether a database contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, use_database

if TYPE_CHECKING:
    from holdfast.store.contract import Counts, Store


@click.command()
@database_argument
@json_option
def check(database: Database, as_json: bool) -> None:
    """Check the integrity of a database.

    Exit code 1, and a sentence for each problem, if anything is wrong. What a newer Holdfast wrote is listed, and not wrong.
    """
    problems, newer, counts = use_database(database, check_and_count)
    if as_json:
        import msgspec

        print_json({"is_ok": not problems, "problems": problems, "newer": newer, "counts": msgspec.to_builtins(counts)})
    else:
        for sentence in newer:
            click.echo(f"newer: {sentence}")
        for problem in problems:
            click.echo(problem)
    if problems:
        from holdfast.cli.tables import count

        raise click.ClickException(
            f"{count(len(problems), 'problem')} in {database}. Restore it from a backup, or report it."
        )
    if not as_json:
        click.echo(f"ok: {describe_counts(counts)}")


async def check_and_count(store: Store) -> tuple[list[str], list[str], Counts]:
    """The problems of a database, what a newer Holdfast wrote into it, and how much it holds."""
    return await store.check(), await store.list_newer(), await store.count()


def describe_counts(counts: Counts) -> str:
    """How much a database holds, in words."""
    from holdfast.cli.tables import count

    by_status = ", ".join(f"{number:,} {status}" for status, number in sorted(counts.executions.items()))
    return ", ".join(
        [
            count(sum(counts.executions.values()), "open execution") + (f" ({by_status})" if by_status else ""),
            count(counts.timers, "timer"),
            count(counts.inbox, "waiting envelope"),
            count(counts.dead_letters, "dead letter"),
        ]
    )
