"""`holdfast deploy`, `undeploy`, `enable`, `disable` and `definitions`: processes, decisions and forms of a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.inputs import find_files
from holdfast.cli.owners import read_verbs

if TYPE_CHECKING:
    from holdfast.engine.deployment_views import DefinitionInfo, DefinitionList

Function = TypeVar("Function", bound=Callable[..., Any])

COLUMNS = ("kind", "id", "version", "tag", "state", "deployed", "file", "started by")
WORDS = {"bpmn": "Process", "dmn": "Decision", "form": "Form"}
KINDS = click.Choice(["bpmn", "dmn", "form"])


@click.command()
@database_argument
@click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=find_files)
@org_option
@json_option
def deploy(*, database: Database, files: tuple[Path, ...], org: str, as_json: bool) -> None:
    """Deploy BPMN, DMN and form files, all of them or none.

    Unchanged content makes no new version. If something is wrong, nothing is deployed: each problem is a line with its file,
    line and element, and the exit code is 1.
    """
    from holdfast.cli.tables import clean
    from holdfast.errors import InvalidProcess

    try:
        done = use_client(database, lambda client: client.deploy(files, org=org))
    except InvalidProcess as error:
        if as_json:
            print_json({"problems": error.problems})
            raise click.exceptions.Exit(1) from error
        lead, *lines = error.message.splitlines()
        for line in lines:
            click.echo(line)
        raise click.ClickException(lead.rstrip(":") + ". Nothing was deployed.") from error
    if as_json:
        print_json(done)
        return
    for notice in done.notices:
        click.echo(clean(f"notice: {notice}"), err=True)
    for one in done.definitions:
        click.echo(clean(str(one)))


def _definition_options(function: Function) -> Function:
    for option in reversed(
        [
            database_argument,
            click.argument("definition_id", metavar="ID"),
            click.option("--version", type=click.IntRange(1), help="Only this version.  [default: all]"),
            click.option("--kind", type=KINDS, default="bpmn", show_default=True),
            org_option,
            json_option,
        ]
    ):
        function = option(function)
    return function


@click.command()
@_definition_options
def undeploy(**given: Any) -> None:
    """Let a process, decision or form start nothing any more.

    Executions that run go on. The definition is removed with the last of them.
    """
    _change("undeploy", "undeployed", **given)


@click.command()
@_definition_options
def disable(**given: Any) -> None:
    """Let a process start nothing until it is enabled.

    Executions that run go on.
    """
    _change("disable", "disabled", **given)


@click.command()
@_definition_options
def enable(**given: Any) -> None:
    """Let a disabled process start executions again."""
    _change("enable", "enabled", **given)


def _change(
    verb: str, done: str, *, database: Database, definition_id: str, version: int | None, kind: str, org: str, as_json: bool
) -> None:
    call = lambda client: getattr(client, verb)(definition_id, version=version, kind=kind, org=org)  # noqa: E731
    is_changed = use_client(database, call)
    which = f"{WORDS[kind]} '{definition_id}'" + (f" version {version}" if version is not None else "")
    value = {"org": org, "kind": kind, "id": definition_id, "version": version, "verb": verb, "changed": is_changed}
    text = f"{which} is {done}." if is_changed else f"{which} was {done} before; nothing has changed."
    answer(value, text, as_json=as_json)


@click.command()
@database_argument
@click.option("--id", "definition_id", help="Only definitions of this id.")
@click.option("--kind", type=KINDS, help="Only definitions of this kind.")
@click.option("--state", type=click.Choice(["active", "disabled", "undeployed"]), help="Only those in this state.")
@click.option("--all-versions", is_flag=True, help="Not only the newest version of each.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@org_option
@json_option
def definitions(
    *,
    database: Database,
    definition_id: str | None,
    kind: str | None,
    state: str | None,
    all_versions: bool,
    limit: int,
    cursor: str | None,
    org: str,
    as_json: bool,
) -> None:
    """List the deployed processes, decisions and forms."""

    async def ask(verbs: Any) -> DefinitionList:
        found: DefinitionList = await verbs.definitions(
            definition_id=definition_id,
            kind=kind,
            state=state,
            all_versions=all_versions,
            org=org,
            limit=limit,
            cursor=cursor,
        )
        return found

    page = read_verbs(database, ask)
    if as_json:
        print_json(page.to_dict())
        return
    if not page:
        click.echo(f"Nothing of org '{org}' is deployed.")
        return
    from holdfast.cli.tables import show_rows

    show_rows(COLUMNS, map(_show, page))
    if page.cursor is not None:
        click.echo(f"There are more: --cursor {page.cursor}")


def _show(one: DefinitionInfo) -> list[str]:
    at = f"{one.deployed_at:%Y-%m-%d %H:%M:%S}"
    return [one.kind, one.id, str(one.version), one.version_tag, one.state, at, one.file, ", ".join(one.starts)]
