"""`holdfast cancel`, `terminate` and `retry`: what people do about an open execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import answer, json_option
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.starts import choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client

Function = TypeVar("Function", bound=Callable[..., Any])


request_id_option = click.option("--request-id", help="Calls with the same id are one call.")


def ending_options(function: Function) -> Function:
    """Add what `cancel` and `terminate` take."""
    return click.option("--reason", default="", help="Why, as it is recorded and shown.")(request_id_option(function))


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@ending_options
@org_option
@json_option
def cancel(*, database: Database, target: str, reason: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Ask an execution to cancel.

    Its code sees CancelledError and may clean up. ID is a workflow id or an execution id.
    """
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.cancel(target, reason, org=org, **given),
        {"org": org, "id": target, "verb": "cancel"},
        f"Execution '{target}' was asked to cancel.",
        f"Expected to cancel execution '{target}', but it is closed. There is nothing to do.",
        as_json=as_json,
    )


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@ending_options
@org_option
@json_option
def terminate(*, database: Database, target: str, reason: str, request_id: str | None, org: str, as_json: bool) -> None:
    """End an execution at once.

    Its code does not run any more, and cannot clean up. ID is a workflow id or an execution id.
    """
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.terminate(target, reason, org=org, **given),
        {"org": org, "id": target, "verb": "terminate"},
        f"Execution '{target}' was terminated.",
        f"Expected to terminate execution '{target}', but it is closed. There is nothing to do.",
        as_json=as_json,
    )


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@request_id_option
@org_option
@json_option
def retry(*, database: Database, target: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Retry a blocked execution, after its code was fixed.

    On PostgreSQL it may take half a minute until a node does so. ID is a workflow id or an execution id.
    """
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.retry_blocked(target, org=org, **given),
        {"org": org, "id": target, "verb": "retry"},
        f"Execution '{target}' is tried again.",
        f"Expected to retry execution '{target}', but it is not blocked. Run `holdfast show` to see what it waits for.",
        as_json=as_json,
    )


def intervene(
    database: Database,
    call: Callable[[Client], Awaitable[bool]],
    told: dict[str, Any],
    done: str,
    refused: str | Callable[[Client], Awaitable[str]],
    *,
    as_json: bool,
) -> None:
    """Do something about an execution, and print it. Raises ClickException if its state does not allow it.

    `refused` says so, or is asked for what to say.
    """

    async def work(client: Client) -> str:
        if await call(client):
            return ""
        return refused if isinstance(refused, str) else await refused(client)

    if why := use_client(database, work):
        raise click.ClickException(why)
    answer({**told, "done": True}, done, as_json=as_json)
