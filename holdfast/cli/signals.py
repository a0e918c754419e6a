"""`holdfast signal`: send a signal to an open execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.answers import answer, json_option
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_pairs
from holdfast.cli.starts import TAKES_NEGATIVE_NUMBERS, choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client


@click.command("signal", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("target", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("value", default="null", metavar="[VALUE]")
@click.option("--text", "as_text", is_flag=True, help="VALUE is a text as it stands, not JSON.")
@click.option("--header", "headers", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated.")
@click.option("--request-id", help="Calls with the same id deliver one signal.")
@org_option
@codec_option
@json_option
def send_signal(
    *, database: Database, target: str, name: str, value: str, as_text: bool, org: str, as_json: bool, **options: Any
) -> None:
    """Signal an open execution.

    ID is a workflow id or an execution id. VALUE is JSON, @file, or - for standard input; null if it is left out.
    """
    has_value = click.get_current_context().get_parameter_source("value") is click.core.ParameterSource.COMMANDLINE
    signal_value = read_input(value, "VALUE", as_text=as_text) if has_value else None
    given = choose_given(options)

    async def work(client: Client) -> Any:
        return await client.signal_workflow(target, name, signal_value, org=org, **given)

    done = use_client(database, work)
    told = {
        "org": org,
        "execution_id": done.workflow_execution_id,
        "signal": name,
        "sequence": done.signal_event_sequence,
    }
    answer(told, f"Sent signal '{name}' to execution {done.workflow_execution_id}.", as_json=as_json)
