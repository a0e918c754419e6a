"""`holdfast pause`, `resume` and `pauses`: one execution, a workflow or a queue takes no turns for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.databases import Database, database_argument, org_option
from holdfast.cli.interventions import intervene, request_id_option
from holdfast.cli.owners import read_verbs
from holdfast.cli.starts import choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.views import Pause

workflow_option = click.option("--workflow", help="All executions of this workflow, instead of one.")
queue_option = click.option("--queue", help="All executions and activities of this queue, instead of one.")


def _choose(target: str | None, workflow: str | None, queue: str | None) -> tuple[str, str]:
    """What is meant, and its name. Raises UsageError unless exactly one is named."""
    named = [(kind, name) for kind, name in (("", target), ("workflow", workflow), ("queue", queue)) if name is not None]
    if len(named) != 1:
        raise click.UsageError("Expected the ID of an execution, --workflow or --queue: one of them.")
    return named[0]


@click.command()
@database_argument
@click.argument("target", metavar="[ID]", required=False)
@workflow_option
@queue_option
@click.option("--reason", default="", help="Why, as it is shown.")
@click.option("--by", default="", help="Who, as it is shown.")
@request_id_option
@org_option
@json_option
def pause(
    *,
    database: Database,
    target: str | None,
    workflow: str | None,
    queue: str | None,
    reason: str,
    by: str,
    request_id: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Let an execution, a workflow or a queue take no turns.

    What arrives meanwhile waits, in order. ID is a workflow id or an execution id.
    """
    kind, name = _choose(target, workflow, queue)
    given = choose_given({"request_id": request_id})

    async def call(client: Client) -> bool:
        if kind == "workflow":
            return await client.pause_workflow(name, reason, by, org=org, **given)
        if kind == "queue":
            return await client.pause_queue(name, reason, by, org=org, **given)
        return await client.pause(name, reason, by, org=org, **given)

    async def explain(client: Client) -> str:
        why, remedy = "is paused already", "Run `holdfast pauses` to see since when."
        if not kind:
            status = (await client.query_status(name, org=org)).status
            why = why if status == "paused" else f"is {status}"
            remedy = f"Run `holdfast show` to see {'what happened' if status != 'paused' else 'since when'}."
        return f"Expected to pause {what} '{name}', but it {why}. {remedy}"

    what = kind or "execution"
    intervene(
        database,
        call,
        {"org": org, kind or "id": name, "verb": "pause"},
        f"{what.capitalize()} '{name}' is paused.",
        explain,
        as_json=as_json,
    )


@click.command()
@database_argument
@click.argument("target", metavar="[ID]", required=False)
@workflow_option
@queue_option
@request_id_option
@org_option
@json_option
def resume(
    *,
    database: Database,
    target: str | None,
    workflow: str | None,
    queue: str | None,
    request_id: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Let a paused execution, workflow or queue go on.

    ID is a workflow id or an execution id.
    """
    kind, name = _choose(target, workflow, queue)
    given = choose_given({"request_id": request_id})

    async def call(client: Client) -> bool:
        if kind == "workflow":
            return await client.resume_workflow(name, org=org, **given)
        if kind == "queue":
            return await client.resume_queue(name, org=org, **given)
        return await client.resume(name, org=org, **given)

    what = kind or "execution"
    intervene(
        database,
        call,
        {"org": org, kind or "id": name, "verb": "resume"},
        f"{what.capitalize()} '{name}' goes on.",
        f"Expected to resume {what} '{name}', but it is not paused. There is nothing to do.",
        as_json=as_json,
    )


@click.command()
@database_argument
@org_option
@json_option
def pauses(*, database: Database, org: str, as_json: bool) -> None:
    """List the workflows and queues that are paused.

    `holdfast list --status paused` lists single executions.
    """

    async def work(client: Client) -> list[Pause]:
        return await client.pauses(org=org)

    found = read_verbs(database, work)
    if as_json:
        print_json([one.to_dict() for one in found])
        return
    for line in [_describe(one) for one in found] or ["No workflow and no queue is paused."]:
        answer(None, line, as_json=False)


def _describe(one: Pause) -> str:
    by = f" by {one.by}" if one.by else ""
    reason = f": {one.reason}" if one.reason else ""
    return f"{one.kind} '{one.name}' since {one.since:%Y-%m-%d %H:%M:%S} UTC{by}{reason}"
