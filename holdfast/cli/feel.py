"""`holdfast feel`: evaluate an expression, or unary tests of a value."""

from __future__ import annotations

import click


@click.command()
@click.argument("expression", metavar="EXPRESSION")
@click.option("--context", "context_file", metavar="FILE", help="The variables, as a JSON object; - is standard input.")
@click.option("--unary", "tested", metavar="JSON", help="Take EXPRESSION for unary tests of this value.")
@click.option("--json", "as_json", is_flag=True, help="Print the value as JSON.")
def feel(expression: str, context_file: str | None, tested: str | None, as_json: bool) -> None:
    """Evaluate a FEEL expression.

    For instance: holdfast feel 'sum(prices) > 100' --context order.json. Where something became null, standard error says
    why. Exit code 1, with a caret below the place, if the expression cannot be parsed.
    """
    from holdfast import feel as language
    from holdfast.cli.values import make_sources, read_object, read_value, show_warnings, write_value

    context = read_object(context_file, "'--context'") if context_file is not None else {}
    warnings: list[language.FeelWarning] = []
    if tested is None:
        found = language.evaluate(expression, context, warnings=warnings, **make_sources())
    else:
        value = read_value(tested, "the value", "'--unary'")
        found = language.unary_tests(expression, value, context, warnings=warnings, **make_sources())
    show_warnings(warnings)
    click.echo(write_value(found, as_json=as_json))
