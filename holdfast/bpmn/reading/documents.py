"""One BPMN file while it is read: its elements asked by local name, and the findings about it."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from lxml import etree

from holdfast.bpmn.model import AnyEventDefinition
from holdfast.bpmn.problems import Problem, ProblemList, Severity
from holdfast.bpmn.reading.names import BPMN, CAMUNDA_7, ZEEBE
from holdfast.safe_xml import line_of

Children: TypeAlias = dict[str, list[etree._Element]]
"""Elements by their local names."""

DUPLICATE_ID: Final = "duplicate-id"
"""The one mistake that counts wherever it is: nobody could tell who is meant."""
_INNER: Final = ("EventDefinition", "LoopCharacteristics", "Expression")
"""How the names of elements end that are parts of nodes."""
_PROCESS: Final = f"{BPMN}process"
_TRUE: Final = frozenset(("true", "1"))
_FALSE: Final = frozenset(("false", "0"))


_PLATFORM: Final = "{http://camunda.org/schema/modeler/1.0}executionPlatform"


class Document:
    """The root of a file, what its ids mean, and the problems found so far."""

    def __init__(self, root: etree._Element, file: str) -> None:
        self.root = root
        self.file = file
        self._found = ProblemList()
        self.ids: dict[str, etree._Element] = {}
        """BPMN's own elements by their ids; the first of each."""
        self.event_definitions: dict[str, AnyEventDefinition] = {}
        """Those that stand beside the processes, to be referred to."""
        self.nameless_receives: list[etree._Element] = []
        """Receive tasks of Camunda 7 that name no message: they wait for one with the name of their id."""
        self.forms: dict[str, str] = {}
        """Forms of Camunda 8 that are embedded in a process, by their ids."""
        self.prefixes = frozenset(prefix for prefix in root.nsmap if prefix)
        namespaces = {f"{{{namespace}}}" for namespace in root.nsmap.values()}
        self.is_camunda7 = ZEEBE not in namespaces and any(one in namespaces for one in CAMUNDA_7)
        self.dialect = _find_dialect(root, namespaces)
        processes = list(root.iterchildren(_PROCESS))
        unsaid = [process for process in processes if process.get("isExecutable") is None]
        self.implied = unsaid if self.is_camunda7 or len(processes) == 1 else []
        """Processes that do not say whether they are executable, and are taken to be: the only one of a file, and those of
        Camunda 7, which does so, too."""

    @property
    def problems(self) -> list[Problem]:
        """The findings about the file, as far as there are any."""
        return self._found.kept

    def report(
        self, element: etree._Element, code: str, message: str, remedy: str, severity: Severity = Severity.ERROR
    ) -> None:
        """Keep a finding about an element, or about the nearest one around it that has an id.

        In a process that is not executable, and so never run, errors are only told.
        """
        if code != DUPLICATE_ID and self._is_never_run(element):
            severity = Severity.NOTICE
        self._found.add(Problem(self.file, line_of(element), find_id(element), message, remedy, severity, code))

    def notice(self, element: etree._Element, code: str, message: str, remedy: str) -> None:
        """Keep what is handled in another way than the file may mean, without refusing it."""
        self.report(element, code, message, remedy, Severity.NOTICE)

    def reference(self, text: str | None) -> str:
        """The id in a reference: references are qualified names (`tns:Message_1`), and tools write the prefix or not."""
        id_ = (text or "").strip()
        prefix, colon, rest = id_.partition(":")
        return rest if colon and prefix in self.prefixes and id_ not in self.ids else id_

    def make_id(self, element: etree._Element, wanted: str) -> str:
        """An id of its own for an element that has none and needs none in BPMN: a sequence flow, an annotation."""
        id_, number = wanted, 1
        while id_ in self.ids:
            number += 1
            id_ = f"{wanted}-{number}"
        self.ids[id_] = element
        return id_

    def is_true(self, element: etree._Element, name: str, *, default: bool = False) -> bool:
        """Whether a boolean attribute of an element is true."""
        text = element.get(name)
        if text is None:
            return default
        text = text.strip().lower()
        if text not in _TRUE and text not in _FALSE:
            self.report(
                element,
                "bad-attribute",
                f"Expected 'true' or 'false' for {local_name(name)!r}, but it is {text!r}.",
                "Correct the attribute.",
            )
            return default
        return text in _TRUE

    def is_executable(self, process: etree._Element) -> bool:
        """Whether a process is meant to be run."""
        return process in self.implied or process.get("isExecutable", "").strip().lower() in _TRUE

    def _is_never_run(self, element: etree._Element) -> bool:
        process = next(element.iterancestors(_PROCESS), element if element.tag == _PROCESS else None)
        return process is not None and not self.is_executable(process)

    def count(self, element: etree._Element, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        found = self.optional_count(element, name)
        return default if found is None else found

    def optional_count(self, element: etree._Element, name: str) -> int | None:
        """An attribute that is a whole number; None if it is missing or wrong."""
        text = element.get(name)
        if text is None:
            return None
        stripped = text.strip()
        if not stripped.removeprefix("-").isdecimal() or len(stripped) > 18:
            self.report(
                element,
                "bad-attribute",
                f"Expected a whole number for {local_name(name)!r}, but it is {text[:40]!r}.",
                "Correct the attribute.",
            )
            return None
        return int(stripped)

    def number(self, element: etree._Element, name: str) -> float | None:
        """An attribute that is a number of a drawing; None if it is missing or wrong."""
        try:
            number = float(element.get(name, ""))
        except ValueError:
            return None
        return number if math.isfinite(number) else None


def _find_dialect(root: etree._Element, namespaces: set[str]) -> str:
    """For which kind of engine a file was made, by the extensions that it may have, or by what its modeler says."""
    platform = root.get(_PLATFORM, "")
    if ZEEBE in namespaces or platform == "Camunda Cloud":
        return "camunda-8"
    return "camunda-7" if platform == "Camunda Platform" or any(one in namespaces for one in CAMUNDA_7) else ""


def local_name(tag: str) -> str:
    """The name of a tag or an attribute without its namespace."""
    return tag.rpartition("}")[2]


def find_id(element: etree._Element) -> str:
    """The id of an element that people see in a diagram: its own, or that of the nearest one around it."""
    at: etree._Element | None = element
    while at is not None:
        id_, tag = at.get("id"), str(at.tag)
        if id_ and tag.startswith(BPMN) and not (tag.endswith(_INNER) and len(list(at.iterancestors())) > 1):
            return id_
        at = at.getparent()
    return ""


def group_children(element: etree._Element) -> Children:
    """The children of an element that are BPMN's own, by their local names. Those of other namespaces are ignored."""
    found: Children = {}
    start = len(BPMN)
    for child in element:
        tag = child.tag
        if isinstance(tag, str) and tag.startswith(BPMN):
            found.setdefault(tag[start:], []).append(child)
    return found


def first(children: Children, name: str) -> etree._Element | None:
    """The first child of that name."""
    found = children.get(name)
    return found[0] if found else None


def text_of(element: etree._Element | None) -> str:
    """The whole text inside an element, without white space around it."""
    if element is None:
        return ""
    if not len(element):
        return (element.text or "").strip()
    return "".join(map(str, element.itertext())).strip()
