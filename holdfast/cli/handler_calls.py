"""`holdfast query` and `holdfast update`: call handlers that workflow code has registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import PATIENCE, Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_pairs
from holdfast.cli.starts import TAKES_NEGATIVE_NUMBERS, choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client


@click.command("query", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("target", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("args", nargs=-1, metavar="[ARG]...")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="How long to wait for the answer.")
@org_option
@codec_option
@json_option
def ask_query(
    *, database: Database, target: str, name: str, args: tuple[str, ...], timeout: float | None, org: str, as_json: bool
) -> None:
    """Ask a query handler of an execution, open or closed. Nothing is changed.

    ID is a workflow id or an execution id. Each ARG is JSON, @file, or - for standard input. The answer is printed as JSON.
    A process that has the code of the workflow has to run.
    """
    values = [read_input(one, "ARG", as_text=False) for one in args]

    async def work(client: Client) -> Any:
        return await client.query(target, name, *values, org=org, timeout=timeout)

    _tell(
        {"org": org, "target": target, "query": name},
        "answer",
        use_client(database, work, patience=PATIENCE + (timeout or 0)),
        as_json=as_json,
    )


@click.command("update", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("target", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("value", default="null", metavar="[VALUE]")
@click.option("--text", "as_text", is_flag=True, help="VALUE is a text as it stands, not JSON.")
@click.option("--header", "headers", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated.")
@click.option("--request-id", help="Calls with the same id are one update: each gets the first answer.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="How long to wait for the answer.")
@org_option
@codec_option
@json_option
def send_update(
    *, database: Database, target: str, name: str, value: str, as_text: bool, org: str, as_json: bool, **options: Any
) -> None:
    """Update an open execution, and print its answer.

    ID is a workflow id or an execution id. VALUE is JSON, @file, or - for standard input; null if it is left out. The answer
    comes after what the handler did is durable. A process that has the code of the workflow has to run.
    """
    has_value = click.get_current_context().get_parameter_source("value") is click.core.ParameterSource.COMMANDLINE
    update_value = read_input(value, "VALUE", as_text=as_text) if has_value else None
    given = choose_given(options)

    async def work(client: Client) -> Any:
        return await client.update(target, name, update_value, org=org, **given)

    _tell(
        {"org": org, "target": target, "update": name},
        "result",
        use_client(database, work, patience=PATIENCE + (given.get("timeout") or 0)),
        as_json=as_json,
    )


def _tell(told: dict[str, Any], what: str, value: Any, *, as_json: bool) -> None:
    print_json({**told, what: value} if as_json else value)
