"""Which element needs which: that every reference leads somewhere, and that no decision needs itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.dmn.model import Definitions, Element
from holdfast.dmn.problems import Problems


def check_requirements(models: Sequence[Definitions], problems: Problems) -> None:
    """Name every reference of models that were loaded together which leads nowhere, and every cycle."""
    whole = merge(models)
    for number, one in enumerate(models):
        with problems.inside_model(one.name if number else ""):
            _check_references(one, whole, problems)
    _check_cycles(whole, problems)


def merge(models: Sequence[Definitions]) -> Definitions:
    """The first model, with the elements of all others beside its own."""
    first, *others = models
    if not others:
        return first
    return replace(
        first,
        decisions={key: element for one in models for key, element in one.decisions.items()},
        inputs={key: element for one in models for key, element in one.inputs.items()},
        knowledge={key: element for one in models for key, element in one.knowledge.items()},
        services={key: element for one in models for key, element in one.services.items()},
    )


def _check_references(definitions: Definitions, whole: Definitions, problems: Problems) -> None:
    knowledge = whole.knowledge.keys() | whole.services.keys()
    for decision in definitions.decisions.values():
        _check_found(problems, decision, "decision", decision.required_decisions, whole.decisions)
        _check_found(problems, decision, "input data", decision.required_inputs, whole.inputs)
        _check_found(problems, decision, "knowledge", decision.required_knowledge, knowledge)
    for model in definitions.knowledge.values():
        _check_found(problems, model, "knowledge", model.required_knowledge, knowledge)
    for service in definitions.services.values():
        decisions = (*service.output_decisions, *service.encapsulated_decisions, *service.input_decisions)
        _check_found(problems, service, "decision", decisions, whole.decisions)
        _check_found(problems, service, "input data", service.input_data, whole.inputs)


def _check_found(problems: Problems, element: Element, kind: str, ids: Iterable[str], known: Collection[str]) -> None:
    for id_ in ids:
        if id_ not in known:
            problems.add(
                element.place,
                f"Expected {kind} with the id {id_!r}, but there is none. Correct the href or add it.",
            )


def _check_cycles(definitions: Definitions, problems: Problems) -> None:
    """DMN 6.3.7: the requirements of decisions have no cycles, not by way of decision services either.

    Business knowledge models may call each other in cycles: they are functions.
    """
    known: Mapping[str, Element] = {**definitions.decisions, **definitions.services}
    edges = {one.id: (*one.required_decisions, *one.required_knowledge) for one in definitions.decisions.values()}
    edges |= {service.id: service.output_decisions for service in definitions.services.values()}
    edges = {id_: tuple(target for target in targets if target in known) for id_, targets in edges.items()}
    done: set[str] = set()
    for start in edges:
        cycle = _find_cycle(start, edges, done)
        if cycle:
            names = " -> ".join(known[id_].name or id_ for id_ in cycle)
            problems.add(
                known[cycle[0]].place,
                f"Expected requirements without cycles, but there is one: {names}. Take one out.",
            )


def _find_cycle(start: str, edges: Mapping[str, tuple[str, ...]], done: set[str]) -> list[str]:
    """The ids along a cycle that can be reached from `start`, its first one repeated at its end."""
    path: list[str] = []
    open_: list[tuple[str, int]] = [(start, 0)]
    while open_:
        id_, at = open_.pop()
        if at == 0:
            if id_ in done:
                continue
            if id_ in path:
                done.update(path)
                return [*path[path.index(id_) :], id_]
            path.append(id_)
        targets = edges[id_]
        if at < len(targets):
            open_.append((id_, at + 1))
            open_.append((targets[at], 0))
        else:
            path.pop()
            done.add(id_)
    return []
