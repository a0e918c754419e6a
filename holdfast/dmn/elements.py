"""How the elements of a DMN file are asked: by local name, in DMN's own namespace. What is unknown becomes a problem."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lxml import etree

from holdfast.dmn.problems import Problems, refuse

VERSIONS: Final = {
    "omg.org/spec/DMN/20151101": "1.1",
    "omg.org/spec/DMN/20151101/dmn.xsd": "1.1",
    "omg.org/spec/DMN/20151101/dmn11.xsd": "1.1",
    "omg.org/spec/DMN/20180521/MODEL": "1.2",
    "omg.org/spec/DMN/20191111/MODEL": "1.3",
    "omg.org/spec/DMN/20211108/MODEL": "1.4",
    "omg.org/spec/DMN/20230324/MODEL": "1.5",
    "omg.org/spec/DMN/20240513/MODEL": "1.6",
}
"""The version of DMN, by its namespace. Tools write these with http and https, with and without a slash at the end."""
_FEEL: Final = frozenset(
    (
        "",
        "feel",
        "s-feel",
        "omg.org/spec/FEEL/20140401",
        "omg.org/spec/DMN/20151101/FEEL",
        "omg.org/spec/DMN/20180521/FEEL",
        "omg.org/spec/DMN/20191111/FEEL",
        "omg.org/spec/DMN/20211108/FEEL",
        "omg.org/spec/DMN/20230324/FEEL",
        "omg.org/spec/DMN/20240513/FEEL",
    )
)
_SCHEME: Final = re.compile(r"https?://(www\.)?")
_ANYWHERE: Final = frozenset(("description", "extensionElements"))
"""DMN 6.3.1: every element may have them."""


class Elements:
    """Reads the elements of one file, in the namespace of its version. Raises DmnError if the root is not DMN."""

    def __init__(self, root: etree._Element, problems: Problems) -> None:
        name = etree.QName(root)
        namespace = name.namespace or ""
        version = find_version(namespace)
        if name.localname != "definitions" or version is None:
            raise refuse(
                f"Expected the root element 'definitions' of DMN 1.1 to 1.6, but the file has {name.localname!r} of the "
                f"namespace {namespace!r}. Export the model as DMN 1.3."
            )
        self.root = root
        self.problems = problems
        self.version = version
        self._prefix = f"{{{namespace}}}"
        self._language = self._is_feel(root.get("expressionLanguage", ""))

    def children(self, element: etree._Element, *names: str) -> list[etree._Element]:
        """Its children of these names, in their order."""
        tags = [self._prefix + name for name in names]
        return [child for child in element if child.tag in tags]

    def child(self, element: etree._Element, name: str) -> etree._Element | None:
        """Its first child of that name."""
        return element.find(self._prefix + name)

    def count_rules(self) -> int:
        """The rules of all decision tables of the file."""
        return sum(1 for _ in self.root.iter(self._prefix + "rule"))

    def name_of(self, element: etree._Element) -> str:
        """Its local name, if it is DMN's own, else ""."""
        tag = element.tag
        return tag.removeprefix(self._prefix) if isinstance(tag, str) and tag.startswith(self._prefix) else ""

    def check_children(self, element: etree._Element, place: str, known: Collection[str]) -> None:
        """Name those that nobody will look at. Elements of other namespaces are extensions, and nobody has to."""
        for child in element:
            name = self.name_of(child)
            if name and name not in known and name not in _ANYWHERE:
                self.problems.add(
                    place,
                    f"Expected no element {name!r} here, but there is one in line {child.sourceline}. Take it out; "
                    f"what may stand here is {', '.join(sorted(known)) or 'nothing'}.",
                )

    def text(self, element: etree._Element | None) -> str:
        """What stands in its `text` child or, if it has none, in itself, as in a description."""
        if element is None:
            return ""
        inner = self.child(element, "text")
        return "".join(map(str, (element if inner is None else inner).itertext())).strip()

    def check_language(self, element: etree._Element, place: str) -> None:
        """Texts have to be FEEL: by what the element says, or else the whole file."""
        own = element.get("expressionLanguage")
        if not (self._language if own is None else self._is_feel(own)):
            language = own if own is not None else self.root.get("expressionLanguage", "")
            self.problems.add(place, f"Expected an expression in FEEL, but its language is {language!r}. Write it in FEEL.")
        if self.child(element, "importedValues") is not None:
            self.problems.add(place, "Expected a text, but it imports its values. Write them out: there are no imports.")

    @staticmethod
    def _is_feel(language: str) -> bool:
        return language.strip().lower() in _FEEL or _shorten(language) in _FEEL


def find_version(namespace: str) -> str | None:
    """The version of DMN that a namespace stands for, if it is one of DMN's."""
    return VERSIONS.get(_shorten(namespace))


def _shorten(namespace: str) -> str:
    return _SCHEME.sub("", namespace.strip(), count=1).rstrip("/")


def clean_name(name: str | None) -> str:
    """A name with single spaces between its words, as expressions see it."""
    return " ".join((name or "").split())


def clean_type(type_ref: str | None) -> str:
    """The name of a type, without the prefix that DMN 1.1 puts before it (`feel:string`)."""
    return clean_name(type_ref).rpartition(":")[2]


def describe(kind: str, element: etree._Element, inside: str = "") -> str:
    """Where an element stands, for a person: "decision 'Risk' (id risk, line 12)"."""
    name = clean_name(element.get("name"))
    marks = [f"id {element.get('id')}"] if element.get("id") else []
    marks.append(f"line {element.sourceline}")
    text = f"{kind} {name!r}" if name else kind
    return f"{inside + ', ' if inside else ''}{text} ({', '.join(marks)})"
