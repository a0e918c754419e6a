"""`holdfast simulate`: random workflows under crashes, each seed one run that can be repeated."""

from __future__ import annotations

import sys

import click

SHARED_NODES = 3


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=100, show_default=True, help="How many to try.")
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option("--nodes", type=click.IntRange(1, 16), help="Nodes that share the store.  [default: 3, or 1 on sqlite]")
@click.option(
    "--store",
    default="memory",
    show_default=True,
    metavar="STORE",
    help="memory, sqlite, or the postgresql://… of a server: there, each run has a schema of its own for a while.",
)
def simulate(*, seeds: int, first: int, nodes: int | None, store: str) -> None:
    """Run random workflows under failures.

    Crashes before and after every write, commits that fail, wake-ups that are lost, turns that are poison: each seed is
    tried in several ways and can be repeated: step by step the same, but on a server. Exit code 1, and the command that
    repeats it, if a run does not end as the undisturbed one did.
    """
    from holdfast import simulation

    node_count = choose_nodes(nodes, check_store(store))
    with click.progressbar(length=seeds, label=f"{seeds:,} seeds", show_pos=True) as bar:

        def note(seed: int) -> None:
            bar.update(1)
            report_in_pipe(seed - first + 1, seeds)

        summary = simulation.run(seeds, first=first, nodes=node_count, store=store, progress=note)
    click.echo(
        f"ok: seeds {first} to {first + seeds - 1} on {summary.store}: {summary.runs:,} runs, {summary.turns:,} turns, "
        f"{summary.faults:,} faults; all ended as undisturbed."
    )


def report_in_pipe(done: int, seeds: int) -> None:
    """A line at every tenth of the way, where no bar can be drawn."""
    step = max(1, seeds // 10)
    if done % step == 0 and done < seeds and not sys.stdout.isatty():
        click.echo(f"{done:,} of {seeds:,}")


def choose_nodes(nodes: int | None, store: str) -> int:
    """The number of nodes to simulate: as many as asked for, and one on SQLite, whose file has one owner."""
    if nodes is None:
        return 1 if store == "sqlite" else SHARED_NODES
    if store == "sqlite" and nodes != 1:
        raise click.UsageError(
            "Expected --nodes 1 with --store sqlite: one process owns such a database. Leave --nodes out."
        )
    return nodes


def check_store(store: str) -> str:
    """A store that can be simulated."""
    from holdfast.simulation.seeds import STORES, is_server

    if store not in STORES and not is_server(store):
        raise click.UsageError(
            f"Expected --store to be one of {', '.join(STORES)}, or the postgresql://… of a server, but it is {store!r}."
        )
    return store
