"""`holdfast list` and `holdfast show`: what runs, waits or has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from holdfast.cli.databases import Database, database_argument, find_execution, org_option, read_history, use_database
from holdfast.core.lifecycle import Status

if TYPE_CHECKING:
    from holdfast.engine.turns.program_cache import MakeProgram
    from holdfast.engine.views import ExecutionInfo, History
    from holdfast.store.contract import ExecutionFilter, Store
    from holdfast.store.rows import ExecutionRow

COLUMNS = ("workflow id", "workflow", "status", "events", "updated", "waits for", "execution id")


@click.command("list")
@database_argument
@click.option(
    "--status",
    multiple=True,
    type=click.Choice([one.value for one in Status]),
    help="Only these; may be given more than once.",
)
@click.option("--workflow", help="Only executions of this workflow.")
@org_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@click.option("--before", metavar="EXECUTION_ID", help="Only older ones: the last of the page before.")
def list_executions(
    *, database: Database, status: tuple[str, ...], workflow: str | None, org: str, limit: int, before: str | None
) -> None:
    """List the executions of an org, newest first."""
    from holdfast.store.contract import ExecutionFilter

    statuses = [Status(one) for one in status]
    query = ExecutionFilter(org, statuses, workflow=workflow, before=before, limit=limit)
    rows = use_database(database, lambda store: read_rows(store, query))
    if not rows:
        click.echo("There are none.")
        return
    show_infos(rows)
    if len(rows) == limit:
        click.echo(f"There may be more: --before {rows[-1].execution_id}", err=True)


async def read_rows(store: Store, query: ExecutionFilter) -> list[ExecutionRow]:
    return await store.list_executions(query)


def show_infos(rows: list[ExecutionRow]) -> None:
    """Print executions as a table, one per line."""
    from holdfast.cli.tables import show_rows, show_time
    from holdfast.engine.views import to_info

    show_rows(
        COLUMNS,
        [
            (
                info.workflow_id,
                info.workflow,
                info.status.value,
                info.history_length,
                show_time(info.updated_at, "seconds"),
                info.waiting_for or "",
                info.execution_id,
            )
            for info in map(to_info, rows)
        ],
    )


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@org_option
@click.option("--json", "as_json", is_flag=True, help="Everything as one JSON object, the history under `history`.")
@click.option(
    "--module",
    "modules",
    multiple=True,
    help="Where the workflows are, as in `import`: their code is replayed to tell the lines at which it waits.",
)
def show(*, database: Database, target: str, org: str, as_json: bool, modules: tuple[str, ...]) -> None:
    """Show one execution: what it waits for, and its history.

    ID is a workflow id (the newest counts) or an execution id.
    """
    from holdfast.cli.modules import find_workflows
    from holdfast.engine.catalog import Catalog

    workflows = [workflow for module in modules for workflow in find_workflows(module)]
    make_program = Catalog(workflows, ()).make_program if workflows else None
    info, history = use_database(database, lambda store: read_execution(store, org, target, make_program))
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(msgspec.to_builtins(info) | {"history": history.to_json()}))
        return
    from holdfast.cli.pending_tables import show_pending, show_trace
    from holdfast.cli.tables import make_console, show_execution, show_history, show_inbox

    show_execution(info)
    if info.last_error is not None and info.last_error.activity is None and info.last_error.trace and info.closed_at is None:
        make_console().print("\nwhere the last error was raised:")
        show_trace(info.last_error.trace)
    if info.pending is not None:
        show_pending(info.pending)
    make_console().print()
    show_history(history)
    if info.inbox:
        show_inbox(info.inbox)


async def read_execution(
    store: Store, org: str, target: str, make_program: MakeProgram | None = None
) -> tuple[ExecutionInfo, History]:
    """An execution with its history; with its code, also where it waits. Raises ExecutionNotFound."""
    from holdfast.engine.use_cases.inboxes import add_inbox
    from holdfast.engine.use_cases.pending_work import add_pending
    from holdfast.engine.views import to_info

    row = await find_execution(store, org, target)
    info = to_info(row)
    if info.closed_at is None:
        info = await add_inbox(store, await add_pending(store, info, row, time.time_ns() // 1000, make_program))
    return info, await read_history(store, row)
