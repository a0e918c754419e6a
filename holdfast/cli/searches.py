"""`holdfast list` and `holdfast count`: executions by what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, open_database, org_option, run_async, use_database
from holdfast.cli.inputs import read_moment, read_pairs
from holdfast.core.lifecycle import Status

if TYPE_CHECKING:
    from holdfast.engine.use_cases.searching import ExecutionList
    from holdfast.engine.views import ExecutionInfo
    from holdfast.store.contract import Store

Function = TypeVar("Function", bound=Callable[..., Any])

COLUMNS = ("workflow id", "workflow", "status", "events", "updated", "waits for", "execution id")


def search_options(function: Function) -> Function:
    """Add the conditions of a search to a command."""
    when: Any = {"callback": read_moment, "metavar": "TIME"}
    options = [
        click.option(
            "--status",
            multiple=True,
            type=click.Choice([one.value for one in Status]),
            help="Only these; may be given more than once.",
        ),
        click.option("--workflow", help="Only executions of this workflow."),
        click.option("--id", "workflow_id", help="Only executions of this workflow id."),
        click.option("--id-prefix", "workflow_id_prefix", help="Only workflow ids that begin so."),
        click.option("--parent", "parent_execution_id", metavar="EXECUTION_ID", help="Only children of this execution."),
        click.option(
            "--metadata",
            multiple=True,
            callback=read_pairs,
            metavar="NAME=VALUE",
            help="Only those that have it; may be given more than once.",
        ),
        click.option(
            "--created-after", help="Created at this time or later: 2026-05-01, 2026-05-01T12:30Z, 2h ago as 2h.", **when
        ),
        click.option("--created-before", help="Created earlier.", **when),
        click.option("--closed-after", help="Closed at this time or later.", **when),
        click.option("--closed-before", help="Closed earlier.", **when),
        click.option(
            "--where", metavar="FILTER", help="What else must hold: \"state.amount > 100 AND NOT status = 'failed'\"."
        ),
        org_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command("list")
@database_argument
@search_options
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@click.option("--order-by", metavar="FIELD", help="created, closed, state.KEY, metadata.KEY, reference; then asc or desc.")
@click.option("--cursor", help="The next page: what the page before gave as its cursor.")
@click.option("--before", metavar="EXECUTION_ID", help="Only older ones: the last of the page before.")
@click.option(
    "--all", "everything", is_flag=True, help="All pages; --limit is the size of each. With --json, one line each."
)
@json_option
def list_executions(*, database: Database, everything: bool, as_json: bool, **options: Any) -> None:
    """List the executions of an org, newest first.

    --order-by names another order. All conditions have to hold. Times are in UTC unless they say otherwise, or
    tell how long ago.
    """
    given = {name: value for name, value in options.items() if value not in (None, {}, ())}
    if not everything:
        page = use_database(database, lambda store: read_page(database, store, given))
        if as_json:
            print_json({"executions": list(page), "cursor": page.cursor})
            return
        show_page(page, has_more=page.cursor is not None)
        if page.cursor is not None:
            click.echo(f"There are more: --cursor {page.cursor}", err=True)
        return
    count = run_async(print_pages(database, given, as_json=as_json))
    if not count and not as_json:
        click.echo("There are none.")


async def print_pages(database: Database, given: dict[str, Any], *, as_json: bool) -> int:
    """Print page after page; how many executions there were."""
    count = 0
    async with open_database(database) as store:
        while True:
            page = await read_page(database, store, given)
            count += len(page)
            if as_json:
                for info in page:
                    print_json(info)
            elif page:
                show_infos(page)
            if page.cursor is None:
                return count
            given = {name: value for name, value in given.items() if name != "before"} | {"cursor": page.cursor}


async def read_page(database: Database, store: Store, given: dict[str, Any]) -> ExecutionList:
    """A page of executions, as the owner of a file tells it, or as it is stored. Raises InvalidArguments."""
    from holdfast.cli.owners import ask
    from holdfast.client.file_queries import make_queries
    from holdfast.client.owner_questions import Unanswered
    from holdfast.engine.use_cases.searching import make_page_filter

    make_page_filter(given)  # type: ignore[arg-type]  # what is wrong is told here, before anybody is asked
    answer = await ask(database, lambda verbs: verbs.list(**given))
    if not isinstance(answer, Unanswered):
        return answer
    page = await make_queries(store).list(given)  # type: ignore[arg-type]  # it checks the names
    if database.file is not None:
        import msgspec

        # Nobody owns the file, or what its owner has is not known: nothing is said to be missing.
        page[:] = [msgspec.structs.replace(info, missing_definition=None) for info in page]
    return page


def show_page(page: ExecutionList, *, has_more: bool) -> None:
    """Print a page as a table, or that there is nothing on it."""
    if page:
        show_infos(page)
    else:
        click.echo("There are none on this page." if has_more else "There are none.")


def show_infos(infos: Iterable[ExecutionInfo]) -> None:
    """Print executions as a table, one per line."""
    from holdfast.cli.tables import show_rows, show_time

    show_rows(
        COLUMNS,
        [
            (
                info.workflow_id,
                info.workflow,
                info.status.value,
                info.history_length,
                show_time(info.updated_at, "seconds"),
                describe_wait(info),
                info.execution_id,
            )
            for info in infos
        ],
    )


def describe_wait(info: ExecutionInfo) -> str:
    """What an execution waits for, and until when, where that is a matter of time."""
    from holdfast.cli.tables import show_time

    if info.status is Status.BLOCKED and info.last_error is not None:
        return f"a retry, after {info.last_error.type}"
    if info.missing_definition is not None or info.waiting_for is None:
        return info.missing_definition or ""
    if info.waiting_until is None:
        return info.waiting_for
    if info.waiting_kind not in ("start", "retry", "timer"):
        return f"{info.waiting_for}, timer at {show_time(info.waiting_until, 'seconds')}"
    return f"{info.waiting_for} at {show_time(info.waiting_until, 'seconds')}"


@click.command("count")
@database_argument
@search_options
@json_option
def count_executions(*, database: Database, as_json: bool, **options: Any) -> None:
    """Count the executions of an org by status, up to 10,000."""
    from holdfast.client.file_queries import make_queries

    given: Any = {name: value for name, value in options.items() if value not in (None, {}, ())}

    async def work(store: Store) -> Any:
        return await make_queries(store).count(given)

    counts = use_database(database, work)
    if as_json:
        print_json(counts)
        return
    from holdfast.cli.tables import show_rows

    if counts.by_status:
        show_rows(("status", "#"), sorted(counts.by_status.items()))
    click.echo(f"{counts} in all")
