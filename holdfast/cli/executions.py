"""`holdfast show`: one execution, with what it waits for and its history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import print_json
from holdfast.cli.codecs import codec_option, find_codec
from holdfast.cli.databases import Database, database_argument, find_execution, org_option, read_history, use_database

if TYPE_CHECKING:
    from holdfast.engine.turns.program_cache import MakeProgram
    from holdfast.engine.views import ExecutionInfo, History
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@org_option
@codec_option
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
    info, history, names = use_database(database, lambda store: read_execution(database, store, org, target, make_program))
    headers = find_headers(history)
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(info) | {"headers": headers, "history": history.to_json()})
        return
    from holdfast.cli.pending_tables import show_pending, show_trouble
    from holdfast.cli.tables import make_console, show_execution, show_history, show_inbox

    show_execution(info, headers)
    if info.last_error is not None and info.last_error.activity is None and info.closed_at is None:
        show_trouble(info.last_error)
    if info.pending is not None and info.waiting_kind != "start":
        show_pending(info.pending, may_ask_code=info.status != "blocked" and info.history_length > 0)
    make_console().print()
    show_history(history, names)
    if info.inbox:
        show_inbox(info.inbox)


def find_headers(history: History) -> dict[str, str]:
    """The headers with which an execution was started."""
    first = history.turns[0].events[0] if history.turns else None
    return dict(getattr(first, "headers", None) or {})


async def read_execution(
    database: Database, store: Store, org: str, target: str, make_program: MakeProgram | None = None
) -> tuple[ExecutionInfo, History, dict[str, str]]:
    """An execution with its history, and what its diagram calls its elements if it is a process's. Raises ExecutionNotFound.

    What it waits for is told by the owner of the file, if it answers; by its code, where that was named; or as it is stored.
    """
    from holdfast.cli.owners import ask
    from holdfast.client.file_queries import make_queries
    from holdfast.client.owner_questions import Unanswered
    from holdfast.engine.use_cases.inboxes import add_inbox
    from holdfast.engine.use_cases.pending_work import add_pending
    from holdfast.engine.views import to_info

    row = await find_execution(store, org, target)
    if row.closed_at is not None:
        return to_info(row), await read_history(store, row), await read_names_of(store, row)
    answer = await ask(database, lambda verbs: verbs.query_status(row.execution_id, org=org))
    if isinstance(answer, Unanswered):
        info = to_info(row)
        if answer is Unanswered.NOBODY:
            info = await make_queries(store, find_codec()).status(org, row.execution_id)
    else:
        info = answer
    is_told = info.pending is not None and (info.pending.is_code_known or make_program is None)
    if not is_told:
        info = await add_pending(store, info, row, time.time_ns() // 1000, make_program)
    if not info.inbox:
        info = await add_inbox(store, info)
    return info, await read_history(store, row), await read_names_of(store, row)


async def read_names_of(store: Store, row: ExecutionRow) -> dict[str, str]:
    """What the diagram of a process calls its elements, by their ids."""
    from holdfast.store.attributes import is_process

    if not is_process(row.details):
        return {}
    from holdfast.cli.process_paths import read_names

    return await read_names(store, row)
