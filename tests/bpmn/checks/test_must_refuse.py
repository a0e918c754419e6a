"""Models of the betsy suite that break a rule of BPMN 2.0: refused, unless the rule changes nothing about running them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from holdfast.bpmn.problems import list_errors
from holdfast.bpmn.reading import read
from tests.bpmn.checks.model_files import find_errors, find_problems
from tests.bpmn.support.suite_files import find_suite

_DATA: Final = "Data inputs, outputs and associations say what people hand over; variables are mapped by extensions."
_DIRECTION: Final = "Message flows are drawn for people; messages go by their names."
_OPERATION: Final = "Operations and interfaces describe services of others; a message goes by its own name."
_LISTED: Final = "Flows are found by their own ends; what nodes list beside is often incomplete."
_GATEWAY: Final = "What a gateway does follows from its flows; tools write its direction without looking."
_XSI: Final = "Whether an expression says that it is a formal one changes nothing about what it means."
_END: Final = "A path that ends without an end event ends there."
ACCEPTED: Final = {
    "EXT004_1": "The type of a documentation is for people.",
    "EXT012_2": _DATA,
    "EXT012_7": _XSI,
    "EXT012_8": _XSI,
    "EXT012_9": _XSI,
    "EXT013_4": _DATA,
    "EXT017": _GATEWAY,
    "EXT018": _GATEWAY,
    "EXT019_2": _GATEWAY,
    "EXT020": _DATA,
    "EXT023": _LISTED,
    "EXT024": "isImmediate is about choreographies between people; a flow is taken at once.",
    "EXT031_2": _DIRECTION,
    "EXT031_3": _DIRECTION,
    "EXT031_4": _DIRECTION,
    "EXT035": "Whether a process is public is said for people.",
    "EXT039": "Performers of tasks that no person does have no effect.",
    "EXT040": "Performers of tasks that no person does have no effect.",
    "EXT046": _DATA,
    "EXT047": _DATA,
    "EXT048": _DATA,
    "EXT050": _OPERATION,
    "EXT051": _OPERATION,
    "EXT052": _DATA,
    "EXT063": _DATA,
    "EXT064": _OPERATION,
    "EXT065": _OPERATION,
    "EXT068": "The collection of a multi-instance activity is a variable of that name.",
    "EXT069": _DATA,
    "EXT070": _DATA,
    "EXT077": _DATA,
    "EXT079": _DATA,
    "EXT080": _DATA,
    "EXT081": _DATA,
    "EXT082": _DATA,
    "EXT083": _DATA,
    "EXT091": _DATA,
    "EXT092": _DATA,
    "EXT094_2": _DATA,
    "EXT094_3": _DATA,
    "EXT094_4": _DATA,
    "EXT094_5": _DATA,
    "EXT101": _LISTED,
    "EXT102": _DIRECTION,
    "EXT103": _DIRECTION,
    "EXT105": _END,
    "EXT107": _LISTED,
    "EXT108": _DIRECTION,
    "EXT109": _DIRECTION,
    "EXT119": _DIRECTION,
    "EXT127": _OPERATION,
    "EXT128": _OPERATION,
    "EXT135_1": "A gateway with one flow in and one out passes its token on.",
    "REF_6.": "Partner entities are for people.",
}
"""By the beginning of the file's name: why the model is accepted all the same."""


def _list_files() -> list[Path]:
    folder = find_suite("betsy")
    return [] if folder is None else sorted((folder / "must-refuse").glob("*/*.bpmn"))


@pytest.mark.parametrize("path", _list_files(), ids=lambda path: path.stem)
def test_P9_a_model_that_breaks_a_rule_is_refused(path: Path) -> None:
    is_accepted = path.name.startswith(tuple(ACCEPTED))

    errors = find_errors(path.read_bytes())

    assert bool(errors) != is_accepted, list(map(str, find_problems(path.read_bytes())))
    for problem in errors:
        assert problem.message.startswith("Expected ")
        assert ", but " in problem.message
        assert problem.remedy
        assert problem.code


def _list_models() -> list[Path]:
    folder = find_suite("betsy")
    return [] if folder is None else sorted((folder / "models").glob("*/*.bpmn"))


@pytest.mark.parametrize("path", _list_models(), ids=lambda path: path.stem)
def test_P9_a_model_of_others_is_accepted_or_comes_later(path: Path) -> None:
    errors = find_errors(path.read_bytes())

    assert not list_errors(read(path.read_bytes(), path.name).problems)
    if "Instantiate" not in path.name:  # Without its start, nothing leads to what is behind it.
        assert {problem.code for problem in errors} <= {"not-yet"}, list(map(str, errors))
