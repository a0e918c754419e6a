"""`holdfast render`: draw a BPMN file as SVG, with what an execution has done."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, find_database, find_execution, org_option, read_history, use_database

if TYPE_CHECKING:
    from holdfast.bpmn.drawing import Overlay
    from holdfast.bpmn.model import Definitions
    from holdfast.store.contract import Store
    from holdfast.store.definitions import ResourceRow
    from holdfast.store.rows import ExecutionRow


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="[FILE] [DB]")
@click.option(
    "--output", "-o", default="-", metavar="FILE", help="Where to write the SVG. `-`, the default: standard output."
)
@click.option("--execution", metavar="ID", help="Mark what an execution of DB has done; a workflow id, or an execution id.")
@org_option
@codec_option
@click.pass_context
def render(ctx: click.Context, *, sources: tuple[str, ...], output: str, execution: str | None, org: str) -> None:
    """Draw a BPMN file as SVG.

    Places come from the diagram in the file; what it does not draw gets a layout. With --execution ID and DB, elements and
    flows are marked with how often they were completed and taken, where tokens are, and which incidents are open. Without
    FILE, the file is drawn that the execution runs: holdfast render --execution order-1 app.db -o order.svg
    """
    from holdfast.bpmn.drawing import draw

    file, name = split_sources(sources, execution)
    refuse_same_file(file, output)
    given = read_source(file) if file is not None else None
    if execution is not None and name is not None:
        found, overlay = look_up(find_database(ctx, render.params[0], name), org, execution, given)
        write_output(draw(found, overlay=overlay), output)
    elif given is not None:
        write_output(draw(given.definitions), output)


def split_sources(sources: tuple[str, ...], execution: str | None) -> tuple[str | None, str | None]:
    """The file and the database of the arguments. Raises UsageError."""
    if execution is None and len(sources) == 1:
        return sources[0], None
    if execution is not None and len(sources) <= 2:
        return (sources[0] if len(sources) == 2 else None), sources[-1]
    if execution is None:
        raise click.UsageError(
            f"Expected one FILE, but there are {len(sources)} arguments. Name one; a database goes with --execution ID."
        )
    raise click.UsageError(f"Expected FILE and DB, or DB alone, but there are {len(sources)} arguments. Leave some out.")


# --- in ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A BPMN file that was named on the command line."""

    name: str
    data: bytes
    definitions: Definitions


def read_source(file: str) -> Source:
    """What is in a BPMN file. Raises BadParameter if it cannot be read, ClickException if it is none."""
    from holdfast.cli.values import read_file

    data, name = read_file(file, "'FILE'"), "standard input" if file == "-" else file
    return Source(name, data, read_drawable(data, name))


def read_drawable(data: bytes, name: str) -> Definitions:
    """The definitions in the bytes of a file. Raises ClickException if there is nothing in them that can be drawn."""
    from holdfast.bpmn.reading import read
    from holdfast.cli.tables import clean

    reading = read(data, Path(name).name)
    if reading.definitions is None:
        problems = "\n".join(clean(str(problem)) for problem in reading.problems)
        raise click.ClickException(f"Expected a BPMN file, but '{name}' is none. Correct it:\n{problems}")
    if not any(one.nodes for one in reading.definitions.processes) and not reading.definitions.participants:
        raise click.ClickException(
            f"Expected a process to draw, but '{name}' has none with anything in it. Add one, or name another file."
        )
    return reading.definitions


def look_up(database: Database, org: str, target: str, given: Source | None) -> tuple[Definitions, Overlay]:
    """What an execution has done, and the file that it runs unless one is given. Raises ExecutionNotFound."""

    async def work(store: Store) -> tuple[Definitions, Overlay]:
        row = await find_execution(store, org, target)
        overlay = await read_overlay(store, row)
        if given is None:
            resource = await find_resource(store, row)
            if resource is None:
                raise refuse_code(row)
            return read_drawable(resource.data, resource.name), overlay
        await check_source(store, row, given)
        return given.definitions, overlay

    return use_database(database, work)


async def check_source(store: Store, row: ExecutionRow, given: Source) -> None:
    """Tell if a file is not the one that was deployed. Raises ClickException if the execution runs no process of it."""
    from holdfast.cli.tables import clean
    from holdfast.store.attributes import is_process

    if not is_process(row.details):
        raise refuse_code(row)
    found = [one.id for one in given.definitions.processes]
    if row.workflow not in found:
        shown = ", ".join(f"'{one}'" for one in found) or "none"
        raise click.ClickException(
            clean(
                f"Expected '{given.name}' to have process '{row.workflow}', which execution '{row.execution_id}' runs, but "
                f"found {shown}. Name the file of that process, or leave it out: then the deployed version is drawn."
            )
        )
    resource = await find_resource(store, row)
    if resource is not None and resource.data != given.data:
        click.echo(
            clean(
                f"Note: '{given.name}' has other content than version {row.code_version} of process '{row.workflow}', which "
                "the execution runs: what is only in one of them is not marked."
            ),
            err=True,
        )


async def read_overlay(store: Store, row: ExecutionRow) -> Overlay:
    """What an execution has done so far, by its history. Raises ClickException if it is no process."""
    import msgspec

    from holdfast.bpmn.drawing.executed import make_overlay
    from holdfast.bpmn.records import decode_records
    from holdfast.core.events import ProcessAdvanced
    from holdfast.core.lifecycle import read_status

    history = await read_history(store, row)
    advanced = [event for turn in history.turns for event in turn.events if isinstance(event, ProcessAdvanced)]
    try:
        happened = [record for event in advanced for record in decode_records(event.records)]
    except msgspec.MsgspecError as error:
        raise click.ClickException(
            f"Expected to read what execution '{row.execution_id}' has done, but its records are unreadable: {error}. "
            "Use the version that wrote them, and its codec."
        ) from error
    return make_overlay(happened, is_closed=read_status(row.status, row.execution_id).is_closed)


async def find_resource(store: Store, row: ExecutionRow) -> ResourceRow | None:
    """The file that an execution runs; None if it runs none."""
    from holdfast.store.definitions import DefinitionKind

    version = int(row.code_version) if row.code_version.isdecimal() else 0
    definition = (
        await store.definitions.find(row.org, DefinitionKind.BPMN.value, row.workflow, version=version) if version else None
    )
    return await store.definitions.read_resource(row.org, definition.digest) if definition is not None else None


def refuse_code(row: ExecutionRow) -> click.ClickException:
    """The error of an execution that runs no deployed process."""
    return click.ClickException(
        f"Expected an execution of a deployed process, but '{row.execution_id}' is one of workflow '{row.workflow}', "
        f"version '{row.code_version}', which is none. Name another, or draw a file without --execution."
    )


# --- out ---------------------------------------------------------------------------------------------------------------


def refuse_same_file(file: str | None, output: str) -> None:
    """Raise BadParameter if the drawing would be written over what is drawn."""
    from holdfast.cli.values import refuse

    with suppress(OSError, ValueError):  # the output need not exist
        if file is not None and "-" not in (file, output) and Path(file).samefile(output):
            raise refuse(f"Expected another file than the one that is drawn, but it is '{output}'. Rename it.", "'--output'")


def write_output(text: str, output: str) -> None:
    """Write a text to a file, whole or not at all; `-` is standard output. Raises BadParameter if it cannot be written."""
    from holdfast.cli.values import refuse

    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        write_whole(Path(output), text.encode())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise refuse(
            f"Expected to write '{output}', but that failed: {reason}. Check the path and its permissions.", "'--output'"
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file by another content at once. Raises OSError, and leaves the file as it was."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        path.write_bytes(data)  # a device or a pipe
        return
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(data)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
