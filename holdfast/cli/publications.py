"""`holdfast send-message`, `send-event`, `broadcast` and `events`: what reaches executions without naming them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_pairs
from holdfast.cli.interventions import request_id_option
from holdfast.cli.owners import read_verbs
from holdfast.cli.starts import TAKES_NEGATIVE_NUMBERS, choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.use_cases.publications import PendingEvent

PAGE = 500

text_option = click.option("--text", "as_text", is_flag=True, help="VALUE is a text as it stands, not JSON.")
header_option = click.option(
    "--header", "headers", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated."
)


def read_value(value: str, *, as_text: bool) -> Any:
    """The argument VALUE; None if it was left out."""
    source = click.get_current_context().get_parameter_source("value")
    return read_input(value, "VALUE", as_text=as_text) if source is click.core.ParameterSource.COMMANDLINE else None


@click.command("send-message", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("name", metavar="NAME")
@click.argument("key", metavar="KEY")
@click.argument("value", default="null", metavar="[VALUE]")
@text_option
@click.option("--ttl", type=float, metavar="SECONDS", help="Keep it for so long if nobody waits for it.")
@click.option("--message-id", help="While it is kept, a second one with this id is refused.")
@header_option
@request_id_option
@org_option
@codec_option
@json_option
def send_message(
    *, database: Database, name: str, key: str, value: str, as_text: bool, org: str, as_json: bool, **options: Any
) -> None:
    """Send a message to the execution that waits for it.

    Its name and correlation key tell which one that is. If nobody waits, it starts a workflow, is kept for its
    time-to-live, or is refused. VALUE is JSON, @file, or - for standard input; null if it is left out.
    """
    message, given = read_value(value, as_text=as_text), choose_given(options)

    async def work(client: Client) -> Any:
        return await client.send_message(name, key, message, org=org, **given)

    done = use_client(database, work)
    became = "an execution got it" if done.delivered else "it started a workflow" if done.started else "it is kept"
    told = {"org": org, "message": name, "key": key, **done.to_dict()}
    answer(told, f"Sent message '{name}' with the key '{key}': {became}.", as_json=as_json)


@click.command("send-event", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("name", metavar="NAME")
@click.argument("value", default="null", metavar="[VALUE]")
@text_option
@click.option("--to", "target", metavar="ID", help="Only for this open execution, by workflow id or execution id.")
@header_option
@request_id_option
@org_option
@codec_option
@json_option
def send_event(
    *,
    database: Database,
    name: str,
    value: str,
    as_text: bool,
    target: str | None,
    org: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Send an event of a type that a node announces.

    NAME is the name of the type. VALUE is JSON, @file, or - for standard input.
    """
    event, given = read_value(value, as_text=as_text), choose_given(options)

    async def work(client: Client) -> Any:
        if target is not None:
            return await client.send_event_to(target, name, event, org=org, **given)
        return await client.send_event(name, event, org=org, **given)

    from holdfast.cli.tables import count

    done = use_client(database, work)
    became = [f"{count(done.delivered, 'wait')} found"] if done.delivered else []
    became += ["it is kept"] if done.kept else []
    told = {"org": org, "event": name, **done.to_dict()}
    answer(told, f"Sent event '{name}': {', '.join(became) or 'nobody waits for it'}.", as_json=as_json)


@click.command("broadcast", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("name", metavar="NAME")
@click.argument("value", default="null", metavar="[VALUE]")
@text_option
@header_option
@request_id_option
@org_option
@codec_option
@json_option
def broadcast(*, database: Database, name: str, value: str, as_text: bool, org: str, as_json: bool, **options: Any) -> None:
    """Send a signal to everybody who waits for it now.

    Nothing is kept. VALUE are its variables: JSON, @file, or - for standard input; null if it is left out.
    """
    variables, given = read_value(value, as_text=as_text), choose_given(options)

    async def work(client: Client) -> Any:
        return await client.broadcast_signal(name, variables, org=org, **given)

    from holdfast.cli.tables import count

    done = use_client(database, work)
    told = {"org": org, "signal": name, **done.to_dict()}
    text = f"Broadcast signal '{name}': {count(done.delivered, 'subscription')} found, "
    answer(told, f"{text}{count(done.started, 'workflow')} started.", as_json=as_json)


@click.group("events")
@database_argument
@click.pass_context
def events(ctx: click.Context, database: Database) -> None:
    """List or remove events that are kept.

    They wait until somebody takes them, or they expire.
    """
    ctx.obj = database


@events.command("list")
@click.argument("name", metavar="NAME")
@org_option
@codec_option
@json_option
@click.pass_obj
def list_events(database: Database, name: str, org: str, as_json: bool) -> None:
    """List the kept events of a type, in the order of sending."""
    from holdfast.cli.tables import shorten, show_json, show_rows, show_time

    async def work(client: Client) -> list[PendingEvent]:
        found: list[PendingEvent] = []
        while True:
            page = await client.pending_events(name, org=org, limit=PAGE, after=found[-1].position if found else 0)
            found += page
            if len(page) < PAGE:
                return found

    kept = read_verbs(database, work)
    if as_json:
        print_json({"events": kept})
        return
    if not kept:
        click.echo("There are none.")
        return
    rows = [
        (
            one.id,
            show_time(one.timestamp),
            show_time(one.expires_at),
            one.target or "",
            shorten(show_json(one.value) if one.damage is None else f"(damaged) {one.damage}"),
        )
        for one in kept
    ]
    show_rows(("id", "sent", "expires", "only for", "value"), rows)


@events.command("remove")
@click.argument("name", metavar="NAME")
@click.argument("event_id", metavar="ID")
@request_id_option
@org_option
@json_option
@click.pass_obj
def remove_event(database: Database, name: str, event_id: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Remove a kept event, so that nobody gets it."""
    given = choose_given({"request_id": request_id})

    async def work(client: Client) -> bool:
        return await client.remove_pending_event(name, event_id, org=org, **given)

    if not use_client(database, work):
        raise click.ClickException(
            f"Expected to remove event '{event_id}' of type '{name}', but it is not kept. "
            f"Run `holdfast events DB list {name}`."
        )
    answer({"org": org, "event": name, "id": event_id, "removed": True}, f"Event '{event_id}' was removed.", as_json=as_json)
