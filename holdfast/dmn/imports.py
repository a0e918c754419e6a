"""Models that import each other: the files of one deployment, and where a reference from one into another leads (DMN 6.3.3).

The first file is the model that is evaluated; of the others, those count that it imports, or that these import in turn. Its
elements keep their ids. Those of the others are known by namespace and id, "urn:rates#_1", as references write them, so that
one graph holds them all.

An import with a name puts all that it brings behind that name: `Rates.Base rate`, `Rates.tPercent`. One without a name (DMN
1.5) adds the names to those of the importing model, which come first, and what it brings is brought along to whoever imports
this model in turn. Models may import each other in circles; decisions that need each other in circles are refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from lxml import etree

from holdfast.dmn.elements import Elements, clean_name, describe, find_version
from holdfast.dmn.model import Import
from holdfast.dmn.problems import Problems
from holdfast.dmn.reading import read_xml

_KINDS: Final = ("decision", "inputData", "businessKnowledgeModel", "decisionService")
"""Elements that references lead to."""


class ModelFile(Elements):
    """The elements of one file, and what its references mean among the files given with it."""

    def __init__(self, root: etree._Element, problems: Problems, files: Mapping[str, ModelFile], *, is_main: bool) -> None:
        super().__init__(root, problems)
        self._files = files
        self.is_main = is_main
        self.namespace = root.get("namespace", "").strip()
        self.name = clean_name(root.get("name"))
        self.prefix = "" if is_main else f"{self.namespace}#"
        self.imports = tuple(
            Import(clean_name(child.get("name")), child.get("namespace", "").strip(), describe("import", child))
            for child in self.children(root, "import")
            if _is_model(child)
        )
        self._ids = frozenset(child.get("id") for child in self.children(root, *_KINDS))

    def find_key(self, element: etree._Element) -> str:
        """How the graph knows an element of this file: by its id; else by its name, which only people can refer to."""
        own = element.get("id") or clean_name(element.get("name")) or f"line {element.sourceline}"
        return self.prefix + own

    def resolve(self, namespace: str, id_: str, place: str) -> str | None:
        """What a reference leads to, as the graph knows it; None, and a problem, if it leads into an unknown model."""
        if namespace and namespace != self.namespace:
            if all(namespace != one.namespace for one in self.imports):
                self.problems.add(
                    place, f"Expected an import of {namespace!r}, but there is none, and '#{id_}' is in it. Add the import."
                )
                return None
            other = self._files.get(namespace)
            return None if other is None else other.prefix + id_  # that it is missing is a problem of the import
        for file in list_unnamed(self, self._files):
            if id_ in file._ids:
                return file.prefix + id_
        return self.prefix + id_


class _Importing(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def imports(self) -> tuple[Import, ...]: ...


One = TypeVar("One", bound=_Importing)


def list_unnamed(start: One, known: Mapping[str, One]) -> Iterator[One]:
    """A model, then those whose names it sees as its own: imported without a name, the nearest first."""
    seen = {start.namespace}
    waiting = [start]
    while waiting:
        model = waiting.pop(0)
        yield model
        for namespace in (one.namespace for one in model.imports if not one.name):
            if namespace in known and namespace not in seen:
                seen.add(namespace)
                waiting.append(known[namespace])


def read_files(sources: Sequence[str | bytes], problems: Problems) -> list[ModelFile]:
    """The first file, and those that it imports, directly or not. What is imported and was not given is a problem."""
    files: dict[str, ModelFile] = {}
    main: ModelFile | None = None
    for source in sources:
        file = ModelFile(read_xml(source), problems, files, is_main=main is None)
        main = main or file
        if file.namespace in files:
            problems.add(
                f"model {file.name!r}",
                f"Expected a namespace of its own, but model {files[file.namespace].name!r} has {file.namespace!r} too. "
                "Change one of them, or leave one out.",
            )
            continue
        files[file.namespace] = file
    assert main is not None  # noqa: S101 - the caller gives at least one
    found = {main.namespace: main}
    waiting = [main]
    while waiting:
        file = waiting.pop(0)
        _check_imports(file, files, problems)
        for namespace in (one.namespace for one in file.imports):
            if namespace in files and namespace not in found:
                found[namespace] = files[namespace]
                waiting.append(files[namespace])
    return list(found.values())


def _check_imports(file: ModelFile, files: Mapping[str, ModelFile], problems: Problems) -> None:
    names: set[str] = set()
    with problems.inside_model("" if file.is_main else file.name):
        for child in file.children(file.root, "import"):
            if not _is_model(child):
                problems.add(
                    describe("import", child),
                    f"Expected an import of a decision model, but its importType is {child.get('importType')!r}. "
                    "Copy what is needed into the model.",
                )
        for one in file.imports:
            if one.namespace not in files:
                problems.add(
                    one.place,
                    f"Expected the model with the namespace {one.namespace!r} beside this one, but it was not given. "
                    "Load both together: dmn.load([model, imported]).",
                )
            if one.name and one.name in names:
                problems.add(one.place, "Expected a name of its own, but another import has it too. Rename one.")
            names.add(one.name)


def _is_model(element: etree._Element) -> bool:
    kind = element.get("importType", "").strip()
    return not kind or find_version(kind) is not None
