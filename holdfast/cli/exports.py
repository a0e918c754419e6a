"""`holdfast export` and `holdfast import`: executions as lines of JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, BinaryIO

import click

from holdfast.cli.answers import answer, json_option
from holdfast.cli.databases import Database, database_argument, org_option, read_name, use_database
from holdfast.core.lifecycle import Status

if TYPE_CHECKING:
    from holdfast.engine.transfer.copying import ImportReport
    from holdfast.store.contract import Store


@click.command("export")
@database_argument
@click.argument("targets", nargs=-1, metavar="[ID]...")
@click.option(
    "--status",
    multiple=True,
    type=click.Choice([one.value for one in Status]),
    help="Only these; may be given more than once.",
)
@org_option
def export_executions(database: Database, targets: tuple[str, ...], status: tuple[str, ...], org: str) -> None:
    """Print executions as lines of JSON.

    All of them, oldest first; or those of each ID, which is a workflow id (the newest counts) or an execution id. Each line
    holds one execution with its history, open timers and all that waits for it: what `holdfast import` takes.
    """
    statuses = [Status(one) for one in status]

    async def work(store: Store) -> int:
        from holdfast.engine.transfer.copying import UnreadableExecution
        from holdfast.engine.transfer.copying import export_executions as read_lines

        damaged = 0
        async for line in read_lines(store, targets, org=org, statuses=statuses):
            if isinstance(line, UnreadableExecution):
                damaged += 1
                click.echo(f"left out: execution {line.execution_id}: {line.reason}", err=True)
            else:
                click.echo(line)
        return damaged

    damaged = use_database(database, work)
    if damaged:
        from holdfast.cli.tables import count

        raise click.ClickException(
            f"Expected to export every execution, but {count(damaged, 'execution')} cannot be read. Run `holdfast check`."
        )


@click.command("import")
@click.argument("database", callback=read_name, metavar="DB")
@click.argument("file", type=click.File("rb"))
@click.option("--skip-existing", is_flag=True, help="Leave out executions that exist, instead of stopping there.")
@json_option
def import_executions(database: Database, file: BinaryIO, skip_existing: bool, as_json: bool) -> None:
    """Put exported executions into a database.

    FILE is what `holdfast export` printed; `-` is standard input. A file is checked whole before anything is written. Open
    executions go on in DB, which is made if it is not there: see that nobody goes on with them where they come from.
    """
    from holdfast.cli.tables import count
    from holdfast.engine.transfer.copying import check_lines

    if file.seekable():
        for _ in check_lines(file):
            continue
        file.seek(0)
    report = asyncio.run(put_lines(database, file, skip_existing=skip_existing))
    skipped = f"; {count(report.skipped, 'execution')} skipped, which exist" if report.skipped else ""
    text = f"ok: {count(report.imported, 'execution')} imported into {database}{skipped}."
    answer({"imported": report.imported, "skipped": report.skipped}, text, as_json=as_json)


async def put_lines(database: Database, file: BinaryIO, *, skip_existing: bool) -> ImportReport:
    """Put every execution of a file into a database."""
    from holdfast.engine.transfer.copying import import_executions as put
    from holdfast.engine.transfer.marks import refuse_moved

    store = database.make_store()
    await store.open()
    try:
        await refuse_moved(store)
        return await put(store, file, skip_existing=skip_existing)
    finally:
        await store.close()
