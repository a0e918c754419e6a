"""`holdfast dmn`: evaluate the decisions of a model, and look for what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from holdfast.dmn import Model, Summary, Trace, TracedTable


@click.group()
def dmn() -> None:
    """Evaluate and check DMN decision models."""


_IMPORTS = click.option(
    "--import", "imports", multiple=True, metavar="FILE", help="A model that FILE imports. May be repeated."
)


@dmn.command()
@click.argument("file", metavar="FILE")
@_IMPORTS
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE|NAME=VALUE",
    help="Inputs: a file with a JSON object (- is standard input), or one by its name. VALUE is JSON; what is no JSON is "
    "taken for a string. May be repeated: the last counts.",
)
@click.option("--decision", metavar="NAME", help="Which one; else the one that no other needs.")
@click.option("--trace", "with_trace", is_flag=True, help="Print how it came about: which rules matched which inputs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    file: str, imports: tuple[str, ...], inputs: tuple[str, ...], decision: str | None, with_trace: bool, as_json: bool
) -> None:
    """Evaluate a decision of a model.

    For instance: holdfast dmn evaluate loan.dmn --input applicant.json --input Amount=5000 --trace. Where something became
    null, standard error says why.
    """
    from holdfast import feel
    from holdfast.cli.values import make_sources, show_warnings, write_json, write_value

    model = load_model(file, imports)
    chosen = choose(model, decision)
    given = read_inputs(inputs)
    warnings: list[feel.FeelWarning] = []
    result = model.evaluate(chosen.id, given, warnings=warnings, **make_sources())
    show_warnings([*find_unused(chosen, given), *warnings])
    if as_json and with_trace:
        click.echo(write_json({"value": feel.to_json(result.value), "trace": result.trace.to_json()}))
        return
    if with_trace:
        show_trace(result.trace)
    click.echo(write_value(result.value, as_json=as_json))


@dmn.command()
@click.argument("file", metavar="FILE")
@_IMPORTS
def check(file: str, imports: tuple[str, ...]) -> None:
    """Check a model.

    Exit code 1, and a line for each problem, if it, or one of its decisions, cannot be used. Warnings, such as gaps and
    overlaps of rules, are lines too, and leave the exit code alone.
    """
    from holdfast.cli.tables import clean, count
    from holdfast.errors import DmnError

    try:
        model = load_model(file, imports, strict=True)
    except DmnError as error:
        for problem in error.problems:
            click.echo(clean(problem))
        raise click.ClickException(f"{count(len(error.problems), 'problem')} in {file}. Fix the model.") from error
    for warning in model.warnings:
        click.echo(f"warning: {clean(warning)}")
    parts = [count(len(model.decisions), "decision"), count(len(model.services), "decision service")]
    click.echo(f"ok: {', '.join(parts)}, {count(len(model.warnings), 'warning')}")


def load_model(file: str, imports: Sequence[str] = (), *, strict: bool = False) -> Model:
    """The model in a file, with those that it imports. Raises BadParameter if one cannot be read, DmnError if not used."""
    from holdfast import dmn as package
    from holdfast.cli.values import read_file

    return package.load([read_file(file, "'FILE'"), *(read_file(one, "'--import'") for one in imports)], strict=strict)


def choose(model: Model, name: str | None) -> Summary:
    """The decision or decision service of that name or id; without a name, the decision that no other needs."""
    offered = (*model.decisions, *model.services)
    if name is not None:
        found = [one for one in offered if name in (one.name, one.id)]
        asked = f"there is none of the name {name!r}"
    else:
        needed = {id_ for one in model.definitions.decisions.values() for id_ in one.required_decisions}
        found = [one for one in model.decisions if one.id not in needed]
        asked = "several are needed by no other" if len(found) > 1 else "it has none"
    if len(found) == 1 or (name is not None and found):
        return found[0]
    known = ", ".join(repr(one.name) for one in offered) or "none"
    raise click.BadParameter(
        f"Expected the name of a decision of the model, but {asked}. It has {known}.", param_hint="'--decision'"
    )


def read_inputs(inputs: Sequence[str]) -> dict[str, Any]:
    """The values that were given, by name, of files and of single inputs."""
    from holdfast.cli.values import read_object

    given: dict[str, Any] = {}
    for one in inputs:
        name, is_pair, text = one.partition("=")
        if not is_pair or Path(one).is_file():
            given |= read_object(one, "'--input'")
        else:
            given[name.strip()] = read_single(name, text)
    return given


def read_single(name: str, text: str) -> Any:
    """A value that is JSON, or else a string."""
    from holdfast.cli.values import read_value, refuse

    if not name.strip():
        raise refuse(f"Expected NAME=VALUE, but there is no name before the '=' of '={text}'. Add one.", "'--input'")
    try:
        return read_value(text, f"'{name}'", "'--input'")
    except click.BadParameter:
        return text


def find_unused(chosen: Summary, given: dict[str, Any]) -> list[str]:
    """Inputs that the decision does not ask for: most of them are misspelt."""
    needed = ", ".join(map(repr, chosen.inputs)) or "none"
    names = [name for name in given if " ".join(name.split()) not in chosen.inputs]
    return [f"{name!r} is none of the inputs that {chosen.name!r} is known to need: {needed}" for name in names]


# --- the trace ---


def show_trace(trace: Trace) -> None:
    """Print what was decided, in its order, each with the rules that matched."""
    from holdfast.cli.tables import clean
    from holdfast.cli.values import write_value

    for decision in trace:
        for table in decision.tables:
            show_table(table)
        click.echo(f"{clean(decision.name)} = {write_value(decision.value, as_json=False)}")
    if trace.left_out:
        click.echo(f"and {trace.left_out:,} more, which were not kept")
    click.echo()


def show_table(table: TracedTable) -> None:
    """Print what a table was asked, and which of its rules matched."""
    from holdfast.cli.tables import clean

    click.echo(f"table {clean(table.name)} ({table.hit_policy}): {show_pairs(table.inputs)}")
    for rule in table.rules:
        notes = "".join(f"  # {clean(text)}" for _, text in rule.annotations if text)
        click.echo(f"  rule {rule.number}: {show_pairs(rule.outputs)}{notes}")
    if not table.rules:
        click.echo("  no rule matched")


def show_pairs(pairs: Sequence[tuple[str, Any]]) -> str:
    """Names and values in one line."""
    from holdfast.cli.tables import clean
    from holdfast.cli.values import write_value

    return ", ".join(
        f"{clean(name)} = {write_value(value, as_json=False)}" if name else write_value(value, as_json=False)
        for name, value in pairs
    )
