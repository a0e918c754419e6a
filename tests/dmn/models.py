"""Models for tests, written short: XML without what every file has."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

NAMESPACE = "https://www.omg.org/spec/DMN/20230324/MODEL/"


def make_xml(*parts: str, namespace: str = NAMESPACE, attributes: str = "") -> str:
    """A whole file."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<definitions xmlns="{namespace}" id="m" name="m" '
        f'namespace="urn:test" {attributes}>\n{chr(10).join(parts)}\n</definitions>'
    )


def text(content: str, tag: str = "literalExpression", attributes: str = "") -> str:
    """A text of FEEL."""
    return f"<{tag} {attributes}><text>{escape(content)}</text></{tag}>"


def data(name: str, type_ref: str = "") -> str:
    """Input data; its id is its name without spaces."""
    kind = f" typeRef={quoteattr(type_ref)}" if type_ref else ""
    variable = f"<variable name={quoteattr(name)}{kind}/>"
    return f"<inputData id={quoteattr(make_id(name))} name={quoteattr(name)}>{variable}</inputData>"


def make_id(name: str) -> str:
    return "id_" + "".join(name.split())


def decision(
    name: str,
    logic: str = "",
    *,
    inputs: Sequence[str] = (),
    decisions: Sequence[str] = (),
    knowledge: Sequence[str] = (),
    type_ref: str = "",
) -> str:
    """A decision with its requirements, by name. Logic that is not XML is a literal expression."""
    kind = f" typeRef={quoteattr(type_ref)}" if type_ref else ""
    needed = [
        *(f'<informationRequirement><requiredInput href="#{make_id(one)}"/></informationRequirement>' for one in inputs),
        *(
            f'<informationRequirement><requiredDecision href="#{make_id(one)}"/></informationRequirement>'
            for one in decisions
        ),
        *(f'<knowledgeRequirement><requiredKnowledge href="#{make_id(one)}"/></knowledgeRequirement>' for one in knowledge),
    ]
    body = logic if logic.lstrip().startswith("<") and logic.rstrip().endswith(">") else text(logic)
    return (
        f"<decision id={quoteattr(make_id(name))} name={quoteattr(name)}><variable name={quoteattr(name)}{kind}/>"
        f"{''.join(needed)}{body if logic else ''}</decision>"
    )


def knowledge(name: str, parameters: Sequence[str], logic: str, *, needs: Sequence[str] = (), type_ref: str = "") -> str:
    """A business knowledge model. A parameter may have its type behind a colon."""
    kind = f" typeRef={quoteattr(type_ref)}" if type_ref else ""
    requirements = "".join(
        f'<knowledgeRequirement><requiredKnowledge href="#{make_id(one)}"/></knowledgeRequirement>' for one in needs
    )
    body = logic if logic.lstrip().startswith("<") else text(logic)
    return (
        f"<businessKnowledgeModel id={quoteattr(make_id(name))} name={quoteattr(name)}>"
        f"<variable name={quoteattr(name)}{kind}/>"
        f"<encapsulatedLogic>{''.join(map(parameter, parameters))}{body}</encapsulatedLogic>"
        f"{requirements}</businessKnowledgeModel>"
    )


def parameter(declared: str) -> str:
    name, _, kind = declared.partition(":")
    attribute = f" typeRef={quoteattr(kind.strip())}" if kind else ""
    return f"<formalParameter name={quoteattr(name.strip())}{attribute}/>"


def table(
    inputs: Sequence[str],
    outputs: Sequence[str],
    rules: Sequence[Sequence[str]],
    *,
    policy: str = "UNIQUE",
    aggregation: str = "",
    input_values: Sequence[str] = (),
    output_values: Sequence[str] = (),
    defaults: Sequence[str] = (),
    types: Sequence[str] = (),
) -> str:
    """A decision table. Each rule has its input cells first; one cell more is its annotation."""
    parts = [f'<decisionTable hitPolicy="{policy}"{f" aggregation={chr(34)}{aggregation}{chr(34)}" if aggregation else ""}>']
    for at, name in enumerate(inputs):
        kind = f"typeRef={quoteattr(types[at])}" if at < len(types) and types[at] else ""
        values = text(input_values[at], "inputValues") if at < len(input_values) and input_values[at] else ""
        parts.append(f"<input>{text(name, 'inputExpression', kind)}{values}</input>")
    for at, name in enumerate(outputs):
        values = text(output_values[at], "outputValues") if at < len(output_values) and output_values[at] else ""
        default = text(defaults[at], "defaultOutputEntry") if at < len(defaults) and defaults[at] else ""
        parts.append(f"<output name={quoteattr(name)}>{values}{default}</output>")
    parts.append('<annotation name="note"/>')
    parts.extend(_make_rule(number, cells, len(inputs), len(outputs)) for number, cells in enumerate(rules, 1))
    return "".join([*parts, "</decisionTable>"])


def _make_rule(number: int, cells: Sequence[str], inputs: int, outputs: int) -> str:
    made = [text(cell, "inputEntry") for cell in cells[:inputs]]
    made += [text(cell, "outputEntry") for cell in cells[inputs : inputs + outputs]]
    made += [text(cell, "annotationEntry") for cell in cells[inputs + outputs :]]
    return f'<rule id="r{number}">{"".join(made)}</rule>'
