"""`holdfast incidents`, `resolve-incident` and `variables`: what went wrong in processes, and how it is corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import PATIENCE, Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_pairs
from holdfast.cli.owners import read_verbs

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.incident_views import IncidentInfo, IncidentList

COLUMNS = ("workflow id", "workflow", "#", "element", "name", "kind", "since", "reason")


@click.command("incidents")
@database_argument
@click.option("--workflow", metavar="NAME", help="Only those of executions of this process.")
@click.option("--of", "target", metavar="ID", help="Only those of one execution, by workflow id or execution id.")
@click.option("--element", metavar="ID", help="Only those at this element of the diagram.")
@click.option("--kind", metavar="KIND", help="Only those of a kind: expression, job, condition and so on.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many at most.")
@click.option("--cursor", help="The next page: what the page before gave as its cursor.")
@org_option
@json_option
def incidents(*, database: Database, as_json: bool, **conditions: Any) -> None:
    """List the open incidents of processes.

    Something went wrong at an element, which waits until somebody corrects it: see `resolve-incident`.
    """

    async def work(client: Client) -> IncidentList:
        return await client.incidents(**conditions)

    page = read_verbs(database, work)
    if as_json:
        print_json(page.to_dict())
        return
    if not page:
        click.echo("There are none.")
        return
    from holdfast.cli.tables import show_rows

    show_rows(COLUMNS, map(_list_cells, page))
    if page.cursor is not None:
        click.echo(f"There are more: --cursor {page.cursor}", err=True)


@click.command("resolve-incident")
@database_argument
@click.argument("target", metavar="ID")
@click.argument("number", type=click.IntRange(1), required=False)
@click.option("--var", "variables", multiple=True, callback=read_pairs, metavar="NAME=JSON", help="Set first; repeatable.")
@click.option("--request-id", help="Calls with the same id are one call.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="How long to wait for the answer.")
@org_option
@codec_option
@json_option
def resolve_incident(
    *,
    database: Database,
    target: str,
    number: int | None,
    variables: dict[str, str],
    request_id: str | None,
    timeout: float | None,
    org: str,
    as_json: bool,
) -> None:
    """Let a process try again where something went wrong.

    ID is a workflow id or an execution id, NUMBER that of the incident; without it, all of the execution are resolved. If
    nothing has changed, the same goes wrong again. Exit code 1 if none is open. A process that can run it has to be there.
    """
    values = _read_variables(variables) or None

    async def work(client: Client) -> None:
        await client.resolve_incident(target, number, variables=values, org=org, request_id=request_id, timeout=timeout)

    use_client(database, work, patience=PATIENCE + (timeout or 0))
    told = {"org": org, "target": target, "number": number}
    answer(told, "resolved: the process tries again", as_json=as_json)


@click.command("variables")
@database_argument
@click.argument("target", metavar="ID")
@click.option("--scope", metavar="ID", help="Those of an element of the diagram, instead of the process.")
@click.option("--set", "variables", multiple=True, callback=read_pairs, metavar="NAME=JSON", help="Set it; repeatable.")
@click.option("--local", is_flag=True, help="With --set: in the scope itself.")
@click.option("--request-id", help="With --set: calls with the same id are one call.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="How long to wait for the answer.")
@org_option
@codec_option
@json_option
def variables(
    *,
    database: Database,
    target: str,
    scope: str | None,
    variables: dict[str, str],
    local: bool,
    request_id: str | None,
    timeout: float | None,
    org: str,
    as_json: bool,
) -> None:
    """Print the variables of a process as one JSON object.

    With --set they are set first. ID is a workflow id or an execution id. A process that can run it has to be there.
    """
    if (local or request_id) and not variables:
        raise click.UsageError("Expected --local and --request-id with --set, but that is not there. Nothing is set.")
    values = _read_variables(variables)

    async def work(client: Client) -> dict[str, Any]:
        if values:
            await client.set_variables(
                target, values, scope=scope, local=local, org=org, request_id=request_id, timeout=timeout
            )
        return await client.variables(target, scope=scope, org=org, timeout=timeout)

    found = use_client(database, work, patience=PATIENCE + (timeout or 0))
    print_json({"org": org, "target": target, "scope": scope, "variables": found} if as_json else found)


def _read_variables(given: dict[str, str]) -> dict[str, Any]:
    return {name: read_input(text, name, as_text=False) for name, text in given.items()}


def _list_cells(one: IncidentInfo) -> tuple[object, ...]:
    names = (one.workflow_id, one.workflow, one.number, one.element, one.element_name, one.kind)
    return (*names, f"{one.at:%Y-%m-%d %H:%M:%S}", one.message)
