"""`holdfast history` and `holdfast replay`: take a history out, and run it against the code of today."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.codecs import codec_option, find_codec
from holdfast.cli.databases import (
    Database,
    database_argument,
    find_database,
    find_execution,
    org_option,
    read_history,
    use_database,
)
from holdfast.cli.modules import find_workflows
from holdfast.core.failures import drop_traces

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow
    from holdfast.engine.views import History
    from holdfast.store.contract import Store
    from holdfast.testing import ReplayReport


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@org_option
@codec_option
@click.option("--json", "as_json", is_flag=True, help="Export for `holdfast replay` and holdfast.testing.replay.")
@click.option("--without-traces", is_flag=True, help="With --json: leave out stack traces, which name files of a machine.")
def history(database: Database, target: str, org: str, as_json: bool, without_traces: bool) -> None:
    """Print the history of one execution. ID is a workflow id (the newest counts) or an execution id."""
    found, names = use_database(database, lambda store: find_named_history(store, org, target))
    if as_json:
        click.echo(write_events(found.to_json(), with_traces=not without_traces))
    else:
        from holdfast.cli.tables import show_history

        show_history(found, names)


async def find_history(store: Store, org: str, target: str) -> History:
    """The history of an execution. Raises ExecutionNotFound."""
    return await read_history(store, await find_execution(store, org, target))


async def find_named_history(store: Store, org: str, target: str) -> tuple[History, dict[str, str]]:
    """The history of an execution, and what its diagram calls its elements if it is a process's."""
    from holdfast.cli.executions import read_names_of

    row = await find_execution(store, org, target)
    return await read_history(store, row), await read_names_of(store, row)


def write_events(events: list[dict[str, Any]], *, with_traces: bool = True) -> str:
    """A list in JSON, one event per line, so that a file kept in a repository shows its changes."""
    for event in events:
        if not with_traces:
            drop_traces(event.get("failure"))  # no replay needs them
    lines = ",\n".join(msgspec.json.encode(event).decode() for event in events)
    return f"[\n{lines}\n]"


@click.command()
@click.argument("source", metavar="FILE|DB")
@click.option(
    "--module", "modules", multiple=True, required=True, help="Where the workflows are, as in `import`; may be repeated."
)
@org_option
@codec_option
@json_option
@click.pass_context
def replay(ctx: click.Context, *, source: str, modules: tuple[str, ...], org: str, as_json: bool) -> None:
    """Replay histories against today's code.

    FILE is what `holdfast history DB ID --json` printed; of a DB, every open execution is replayed. Exit code 1, and the
    differences, if the code does not fit.
    """
    from holdfast.cli.tables import count

    database = find_history_or_database(ctx, source)
    workflows = [workflow for module in modules for workflow in find_workflows(module)]
    if isinstance(database, Path):
        report = replay_file(database, workflows, as_json=as_json)
        text = f"ok: {count(report.events, 'event')} replayed, the code fits."
    else:
        report = replay_database(database, workflows, org)
        executions = count(report.executions, "open execution")
        text = f"ok: {executions} with {count(report.events, 'event')} replayed, the code fits."
    if as_json:
        print_report(report)
    report.check()
    if not as_json:
        click.echo(text)


def print_report(report: ReplayReport) -> None:
    """Print what was replayed, and what did not agree, as JSON."""
    print_json(msgspec.to_builtins(report) | {"is_ok": report.is_ok})


def replay_file(path: Path, workflows: list[Workflow[..., Any]], *, as_json: bool) -> ReplayReport:
    """Replay the history in a file. Raises DeterminismError if the code does not fit; JSON is printed first."""
    from holdfast.errors import DeterminismError
    from holdfast.testing import ReplayReport
    from holdfast.testing import replay as replay_history
    from holdfast.testing.histories import load_history
    from holdfast.testing.replay import Disagreement

    try:
        return replay_history(path, workflows)
    except DeterminismError as error:
        if as_json:
            first = load_history(path)
            print_report(
                ReplayReport(1, 0, (Disagreement("", "", first.execution_id, type(error).__name__, error.message),))
            )
        raise


def find_history_or_database(ctx: click.Context, source: str) -> Path | Database:
    """A file that holds a history, unless it is a database."""
    path = Path(source)
    if path.is_file():
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return path
    return find_database(ctx, replay.params[0], source)


def replay_database(database: Database, workflows: list[Workflow[..., Any]], org: str) -> ReplayReport:
    """Replay every open execution of an org. What has no code is named on standard error."""
    from holdfast.testing import replay_store

    report = use_database(database, lambda store: replay_store(store, workflows, org=org, codec=find_codec()))
    for name in report.unknown:
        click.echo(f"left out: executions of workflow '{name}', which is in none of the modules", err=True)
    return report
