"""`holdfast demo`: the story, told once on a database of its own."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import click

FAST = 0.1


@click.command()
@click.option("--keep", is_flag=True, help="Keep the database and print where it is.")
@click.option("--fast", is_flag=True, help="Without pauses to read in.")
def demo(keep: bool, fast: bool) -> None:
    """Kill a worker process, lose nothing.

    Chats and an order run in a process of their own, on a fresh SQLite database. In the middle of its work the process
    gets SIGKILL, another one goes on, and the histories are checked against a ledger that the activities wrote. Exit code
    1 if any claim fails.
    """
    from holdfast.cli.demo.screen import Screen
    from holdfast.cli.demo.story import Story

    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    is_proved = is_interrupted = False
    try:
        is_proved = asyncio.run(Story(folder, FAST if fast else 1.0, Screen()).tell())
    except KeyboardInterrupt:
        is_interrupted = True
        raise
    finally:
        finish(folder, keep=keep or not (is_proved or is_interrupted))
    if not is_proved:
        raise click.ClickException("Expected every claim to hold, but some do not. The database is kept: please report it.")
    click.echo(f"Every claim holds. The story took {time.monotonic() - begun:.1f} s.")


def finish(folder: Path, *, keep: bool) -> None:
    """Clean up, or say where everything is."""
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
        return
    from holdfast.cli.demo.messages import DATABASE

    database = folder / DATABASE
    click.echo(f"The database: {database}")
    click.echo(f"Look into it: holdfast show {database} order-1001")
