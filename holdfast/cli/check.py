"""`holdfast check`: whether a database contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, use_database

if TYPE_CHECKING:
    from holdfast.store.contract import Store
    from holdfast.store.rows import Counts

PAGE: Final = 1_000


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
    problems = await store.check()
    return problems + await check_snapshots(store), await store.list_newer(), await store.count()


async def check_snapshots(store: Store) -> list[str]:
    """What snapshots say that is not in the histories behind them: of processes that can be compiled here, all of it."""
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.turns.snapshots import may_have_snapshot
    from holdfast.engine.use_cases.snapshot_checks import check_snapshot
    from holdfast.errors import HoldfastError
    from holdfast.store.rows import ExecutionRow
    from holdfast.store.transfer import FROM_THE_START, PersistentStore, RowKind

    if not isinstance(store, PersistentStore):
        return []
    processes, everything = DeployedProcesses(store), store.make_transferable()
    catalog, is_known = Catalog(processes=processes), False
    problems: list[str] = []
    page = await everything.read_page(RowKind.EXECUTIONS, FROM_THE_START, PAGE)
    while page.cursor is not None:
        for row in page.rows:
            if not isinstance(row, ExecutionRow) or row.closed_at is not None or not may_have_snapshot(row):
                continue
            try:
                if not is_known:
                    await processes.refresh()
                    is_known = True
                await processes.make_ready(row.org, row.workflow, row.code_version)
            except HoldfastError:
                pass  # its process cannot be compiled here: what is open is compared alone
            problem = await check_snapshot(store, row, catalog.make_program)
            problems += [] if problem is None else [problem]
        page = await everything.read_page(RowKind.EXECUTIONS, page.cursor, PAGE)
    return problems


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
