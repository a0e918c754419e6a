"""`holdfast run`: deploy files to an engine within this process, start a process, and show its path as it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.answers import ExitCode, fail, json_option, print_json
from holdfast.cli.databases import read_name, run_async
from holdfast.cli.inputs import find_files, read_input, read_length

if TYPE_CHECKING:
    from holdfast.bpmn.views import AuditLine, Auditor
    from holdfast.cli.databases import Database
    from holdfast.engine.deployment_views import Deployment
    from holdfast.engine.engine import Engine
    from holdfast.engine.handles import WorkflowHandle

LOOK = 0.05
"""Seconds between two looks at what has happened."""
SHOWN = frozenset({"entered", "ended", "variable", "waits", "incident", "decided"})
"""The kinds of audit lines that are printed: an element that is entered need not be told of again when it is left."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=find_files)
@click.option(
    "--var",
    "variables",
    multiple=True,
    metavar="NAME=VALUE|FILE",
    help="A variable: VALUE is JSON, and what is no JSON is a text; or a file with a JSON object. May be repeated.",
)
@click.option("--process", "process_id", metavar="ID", help="Which process to start, if the files have several.")
@click.option("--module", "modules", multiple=True, metavar="MODULE", help="Where the activities are. May be repeated.")
@click.option(
    "--database",
    callback=lambda ctx, param, value: None if value is None else read_name(ctx, param, value),
    metavar="DB",
    help="Run it there, and keep it.  [default: in memory]",
)
@click.option(
    "--timeout", callback=read_length, default="10s", show_default=True, metavar="LENGTH", help="The longest wait."
)
@json_option
def run(
    *,
    files: tuple[Path, ...],
    variables: tuple[str, ...],
    process_id: str | None,
    modules: tuple[str, ...],
    database: Database | None,
    timeout: timedelta | None,
    as_json: bool,
) -> None:
    """Run a process of BPMN files, and show its path.

    For instance: holdfast run order.bpmn --var total=120. Jobs of tasks are done by the activities of --module; those that
    nobody does wait, and the command ends after --timeout with exit code 4.
    """
    from holdfast.cli.modules import find_code
    from holdfast.engine.engine import Engine

    given = _read_variables(variables)
    workflows, activities = find_code(modules)

    async def work() -> Any:
        async with Engine(
            "memory://" if database is None else database.url, workflows=workflows, activities=activities
        ) as engine:
            deployment = await engine.deploy(files)
            handle = await engine.start(_choose(deployment, process_id), given)
            return await _follow(engine, handle, timeout, is_silent=as_json)

    result = run_async(work())
    if as_json:
        print_json(result)
    else:
        from holdfast.cli.tables import show_json

        click.echo(f"completed: {show_json(result)}")


def _read_variables(texts: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for one in texts:
        name, is_pair, text = one.partition("=")
        if not is_pair and (one == "-" or Path(one).exists()):
            given |= _read_file(one)
            continue
        if not is_pair or not name:
            raise click.BadParameter(
                f"Expected a pair such as total=120, or the path of a file with a JSON object, but '{one}' is neither. "
                "Correct it.",
                param_hint="'--var'",
            )
        try:
            given[name] = json.loads(text)
        except (ValueError, RecursionError):
            given[name] = text
    return given


def _read_file(name: str) -> dict[str, Any]:
    found = read_input(name if name == "-" else f"@{name}", "'--var'")
    if isinstance(found, dict):
        return found
    raise click.BadParameter(
        f"Expected '{name}' to hold a JSON object, with a value for each variable, but it holds another value. "
        "Put it into an object.",
        param_hint="'--var'",
    )


def _choose(deployment: Deployment, process_id: str | None) -> str:
    known = [one.id for one in deployment.definitions if one.kind == "bpmn"]
    if process_id is not None and process_id not in known:
        shown = ", ".join(known) or "none"
        raise click.BadParameter(
            f"Expected the id of a process in the files, but '{process_id}' is none. They have {shown}.",
            param_hint="'--process'",
        )
    if process_id is None and len(known) != 1:
        what = f"they have several: {', '.join(known)}" if known else "they have none"
        raise click.UsageError(f"Expected files with one process, but {what}. Name it: --process ID.")
    return process_id or known[0]


async def _follow(engine: Engine, handle: WorkflowHandle[Any], timeout: timedelta | None, *, is_silent: bool) -> Any:
    """Print what happens until the end; the result. Raises ClickException with an exit code if there is none."""
    from holdfast.bpmn.views import Auditor
    from holdfast.errors import HoldfastError, ResultTimedOut

    auditor, seen = Auditor(), 0
    waiting = asyncio.ensure_future(handle.result(timeout=None if timeout is None else timeout.total_seconds()))
    while not waiting.done():
        await asyncio.wait([waiting], timeout=LOOK)
        history = await engine.history(handle.execution_id or handle.workflow_id)
        if not is_silent:
            for line in _list_lines(auditor, [one.event for one in history][seen:]):
                click.echo(_show(line))
        seen = len(history)
        if not waiting.done() and (info := await handle.status()).waiting_kind == "incident":
            waiting.cancel()
            what = f"it waits at incident {info.waiting_token}, which somebody has to resolve"
            raise fail(f"Expected the process to complete, but {what}.", ExitCode.STILL_OPEN)
    try:
        return waiting.result()
    except ResultTimedOut as error:
        info = await handle.status()
        what = f"{info.status}" + (f" and waits for {info.waiting_for}" if info.waiting_for else "")
        raise fail(f"Expected the process to end within --timeout, but it is {what}.", ExitCode.STILL_OPEN) from error
    except HoldfastError as error:
        raise fail(error.message, ExitCode.NOT_COMPLETED) from error


def _list_lines(auditor: Auditor, events: list[Any]) -> Iterator[AuditLine]:
    from holdfast.bpmn.records import decode_records
    from holdfast.core.events import ProcessAdvanced

    for event in events:
        if isinstance(event, ProcessAdvanced):
            yield from (line for line in auditor.expand(decode_records(event.records)) if line.kind in SHOWN)


def _show(line: AuditLine) -> str:
    from holdfast.cli.tables import clean, shorten

    if line.kind == "variable":
        value = "null" if line.value is None else bytes(line.value).decode()
        return clean(f"    {line.name} = {shorten(value)}")
    if line.kind == "waits":
        return clean(f"    waits for {line.text} {line.name}".rstrip())
    text = f": {line.text}" if line.text else f" {line.name}" if line.name else ""
    return clean(f"  {line.kind.value} {line.element}{text}")
