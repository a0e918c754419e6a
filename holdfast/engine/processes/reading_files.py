"""From the files of a deployment to what they define, with everything that is wrong with them.

Takes a while for large files: to be called in a thread. Nothing here knows what is deployed already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from lxml import etree

from holdfast import dmn
from holdfast.bpmn import model
from holdfast.bpmn.checks import check
from holdfast.bpmn.problems import Problem, Severity
from holdfast.bpmn.reading import read
from holdfast.core.ids import check_identifier
from holdfast.core.publications import SubscriptionKind
from holdfast.engine.processes.known_definitions import SiblingKey, StartMark, TimerMark
from holdfast.engine.processes.source_files import SourceFile
from holdfast.errors import DmnError, InvalidIdentifier
from holdfast.safe_xml import XmlLimits, XmlRefused, parse_xml
from holdfast.store.definitions import DefinitionKind

MOST_DEFINITIONS: Final = 1_000
"""How many processes, decisions and forms one deployment may define."""
_XML: Final = XmlLimits(bytes=20_000_000, depth=200, elements=400_000)


class Defined(msgspec.Struct, frozen=True):
    """A process, decision or form that a file defines."""

    kind: DefinitionKind
    id: str
    file: SourceFile
    line: int = 0
    name: str = ""
    version_tag: str = ""
    starts: tuple[StartMark, ...] = ()
    timers: tuple[TimerMark, ...] = ()
    has_none_start: bool = True
    bound: tuple[SiblingKey, ...] = ()
    """What it calls by the binding `deployment`, as far as that is named by a constant."""


class FilesRead(msgspec.Struct, frozen=True):
    """What the files of a deployment define, and everything that was found about them."""

    defined: Sequence[Defined]
    problems: Sequence[Problem]

    @property
    def errors(self) -> list[Problem]:
        """Those findings that refuse the deployment."""
        return sorted(one for one in self.problems if one.severity is Severity.ERROR)

    @property
    def notices(self) -> list[Problem]:
        """Those findings that only tell of something."""
        return sorted(one for one in self.problems if one.severity is Severity.NOTICE)


def read_files(files: Sequence[SourceFile]) -> FilesRead:
    """Read and check all files. Never raises for what is in them."""
    defined: list[Defined] = []
    problems: list[Problem] = []
    for file in files:
        reader = _READERS[file.kind]
        defined += reader(file, problems)
    problems += _find_repeated(defined)
    if len(defined) > MOST_DEFINITIONS:
        message = f"Expected at most {MOST_DEFINITIONS} definitions in one deployment, but there are {len(defined)}."
        problems.append(Problem(files[0].name, 0, "", message, "Deploy the files in parts.", code="too-many-definitions"))
    return FilesRead(defined, problems)


# --- processes ---


def _read_processes(file: SourceFile, problems: list[Problem]) -> Iterator[Defined]:
    reading = read(file.data, file.name)
    problems += reading.problems
    if reading.definitions is None:
        return
    problems += check(reading.definitions)
    for process in reading.definitions.processes:
        if process.is_executable and _check_id(file, process.id, process.line, "process", problems):
            yield _describe_process(file, reading.definitions, process)


def _describe_process(file: SourceFile, definitions: model.Definitions, process: model.Process) -> Defined:
    starts: list[StartMark] = []
    timers: list[TimerMark] = []
    start_events = [node for node in process.nodes if isinstance(node, model.StartEvent)]
    for node in start_events:
        for event in node.definitions:
            if isinstance(event, model.MessageEventDefinition):
                starts.append(_mark(SubscriptionKind.MESSAGE, definitions.messages.get(event.message), node.id))
            elif isinstance(event, model.SignalEventDefinition):
                starts.append(_mark(SubscriptionKind.BROADCAST, definitions.signals.get(event.signal), node.id))
            elif isinstance(event, model.TimerEventDefinition) and event.when is not None and event.kind is not None:
                when = event.when
                timers.append(TimerMark(node.id, event.kind, when.text if when.is_static else f"={when.text}"))
    return Defined(
        DefinitionKind.BPMN,
        process.id,
        file,
        process.line,
        process.name,
        process.version_tag,
        tuple(starts),
        tuple(timers),
        # Without any start event, a process begins with all elements that no flow leads to.
        not start_events or any(not node.definitions for node in start_events),
        tuple(sorted(set(_list_bound(process)))),
    )


def _mark(kind: SubscriptionKind, declared: model.Message | model.Signal | None, element: str) -> StartMark:
    """What starts a process at an element. A name that is an expression begins with '='."""
    if declared is None:
        return StartMark(kind.value, "", element)
    title = declared.title
    return StartMark(kind.value, declared.name if title is None or title.is_static else f"={title.text}", element)


def _list_bound(container: model.AnyContainer) -> Iterator[SiblingKey]:
    for node in container.nodes:
        if isinstance(node, model.CallActivity) and (called := node.called) is not None:
            if called.binding is model.Binding.DEPLOYMENT and called.process.is_static:
                yield DefinitionKind.BPMN, called.process.text
        elif isinstance(node, model.BusinessRuleTask) and (decision := node.decision) is not None:
            if decision.binding is model.Binding.DEPLOYMENT and decision.decision.is_static:
                yield DefinitionKind.DMN, decision.decision.text
        elif isinstance(node, model.SubProcess):
            yield from _list_bound(node)


# --- decisions ---


def _read_decisions(file: SourceFile, problems: list[Problem]) -> Iterator[Defined]:
    try:
        loaded = dmn.load(file.data, strict=True)
        tags = _read_version_tags(file.data)
    except DmnError as error:
        problems += (
            Problem(file.name, 0, "", text, "Correct the decision model.", code="decision-model")
            for text in error.problems or (error.message,)
        )
        return
    except XmlRefused as error:
        problems.append(Problem(file.name, 0, "", str(error), "Correct the decision model.", code="decision-model"))
        return
    problems += (Problem(file.name, 0, "", text, "", Severity.NOTICE, "decision-model") for text in loaded.warnings)
    for one in (*loaded.decisions, *loaded.services):
        if _check_id(file, one.id, 0, "decision", problems):
            yield Defined(DefinitionKind.DMN, one.id, file, 0, one.name, tags.get(one.id, ""))


def _read_version_tags(data: bytes) -> dict[str, str]:
    """The version tags of decisions, by their ids."""
    found: dict[str, str] = {}
    for element in parse_xml(data, _XML).iter():
        if isinstance(element.tag, str) and etree.QName(element).localname == "versionTag":
            extensions = element.getparent()
            owner = None if extensions is None else extensions.getparent()
            if owner is not None and (owner_id := owner.get("id")) is not None:
                found[owner_id] = element.get("value") or (element.text or "").strip()
    return found


# --- forms ---


def _read_forms(file: SourceFile, problems: list[Problem]) -> Iterator[Defined]:
    try:
        content = msgspec.json.decode(file.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"Expected a form as JSON, but it cannot be read: {error}."
        problems.append(Problem(file.name, 0, "", message, "Correct the file.", code="form"))
        return
    if not isinstance(content, dict):
        message = f"Expected a form to be a JSON object, but it is {type(content).__name__}."
        problems.append(Problem(file.name, 0, "", message, "Export it from the form editor again.", code="form"))
        return
    form_id = content.get("id") or content.get("$id")
    if not isinstance(form_id, str):
        message = "Expected a form to have an id, but it has none."
        problems.append(
            Problem(file.name, 0, "", message, 'Give it one: "id": "…", or \'$id\' in a JSON Schema.', code="form")
        )
        return
    if _check_id(file, form_id, 0, "form", problems):
        tag, title = content.get("versionTag"), content.get("title")
        yield Defined(
            DefinitionKind.FORM,
            form_id,
            file,
            0,
            title if isinstance(title, str) else "",
            tag if isinstance(tag, str) else "",
        )


# --- parts ---


def _check_id(file: SourceFile, definition_id: str, line: int, what: str, problems: list[Problem]) -> bool:
    try:
        check_identifier(definition_id, f"the id of a {what}")
    except InvalidIdentifier as error:
        problems.append(Problem(file.name, line, definition_id[:80], error.message, "", code="invalid-id"))
        return False
    return True


def _find_repeated(defined: Iterable[Defined]) -> Iterator[Problem]:
    """What two files of one deployment both define."""
    known: dict[tuple[str, str], Defined] = {}
    for one in defined:
        first = known.setdefault((one.kind, one.id), one)
        if first is not one and first.file is not one.file:
            message = f"Expected one definition of '{one.id}' in a deployment, but {first.file.name} has it as well."
            remedy = "Leave one of the files out, or give it another id."
            yield Problem(one.file.name, one.line, one.id, message, remedy, code="defined-twice")


_READERS: Final = {
    DefinitionKind.BPMN: _read_processes,
    DefinitionKind.DMN: _read_decisions,
    DefinitionKind.FORM: _read_forms,
}
