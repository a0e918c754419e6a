"""The definitions and activities that an engine has. Definitions may come and go while it runs.

A definition is found by its organisation (or any), its name and its version. Several versions of one workflow stand side by
side; the newest is the one that was added last. An execution that is pinned is taken by exactly its version, every other one
by the newest. Definitions of the execution's own organisation come before those that every organisation has. Deployed
processes are those of their organisation: see `holdfast.engine.processes`.

Only the engine's own thread changes a catalog or makes programs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.activities.definitions import Activity, index_activities
from holdfast.code.definitions import Workflow, check_workflows
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.options import JobType
from holdfast.core.program_limits import NO_PROGRAM_LIMITS, ProgramLimits
from holdfast.core.rebuilt_errors import KnownErrors, find_sources
from holdfast.core.routes import PROCESS_ROUTE_NAME
from holdfast.errors import DuplicateName, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.execution import Execution
    from holdfast.core.program import Program
    from holdfast.engine.processes.deployed_processes import DeployedProcesses


class Versions:
    """The versions of one workflow: never none."""

    __slots__ = ("by_version", "newest")

    def __init__(self, first: Definition) -> None:
        self.by_version: dict[str, Definition] = {first.version: first}
        """In the order in which they were added."""
        self.newest = first

    def add(self, definition: Definition) -> None:
        """Make a version the newest. Raises DuplicateName if another definition has its version."""
        known = self.by_version.get(definition.version, definition)
        if not known.is_same_as(definition):
            called = f"two are called '{definition.name}'"
            if definition.version:
                called += f" in version '{definition.version}'"
            raise DuplicateName(
                f"Expected each workflow to have its own name, but {called}: {known.describe()} and "
                f"{definition.describe()}. Rename one: @workflow(name='…'), or give each its own version='…'."
            )
        self.by_version.pop(definition.version, None)
        self.by_version[definition.version] = self.newest = known

    def remove(self, version: str) -> bool:
        """Remove a version; whether any is left."""
        del self.by_version[version]
        if not self.by_version:
            return False
        self.newest = next(reversed(self.by_version.values()))
        return True


class Catalog:
    """What one engine can run: definitions by organisation, name and version, and activities by name."""

    def __init__(
        self,
        workflows: Iterable[Workflow[..., Any]] = (),
        activities: Iterable[Activity[..., Any]] = (),
        processes: DeployedProcesses | None = None,
    ) -> None:
        self.processes = processes
        """The processes that organisations have deployed; None: there is no store to find them in."""
        self._of_any: dict[str, Versions] = {}
        """Workflows of every organisation, by name."""
        self._of_one: dict[tuple[str, str], Versions] = {}
        """Workflows of single organisations, by (org, name)."""
        for workflow in check_workflows(workflows):
            self.add(workflow)
        self.activities: Mapping[str, Activity[..., Any]] = index_activities(activities)

    # --- changing ---

    def add(self, definition: Definition) -> None:
        """Take a definition, as the newest version of its name.

        One that is there already becomes the newest. Raises DuplicateName if another has its name and version, or
        InvalidDefinition if it cannot run.
        """
        known = self._find_versions_of(definition.org, definition.name)
        definition.prepare()
        if known is not None:
            known.add(definition)
        elif definition.org is None:
            self._of_any[definition.name] = Versions(definition)
        else:
            self._of_one[definition.org, definition.name] = Versions(definition)

    def remove(self, name: str, version: str | None = None, org: str | None = None) -> None:
        """Remove a version of a workflow, or all of them. Raises UnknownWorkflow that lists what there is."""
        known = self._find_versions_of(org, name)
        if known is None:
            raise self._unknown(name)
        if version is not None and version not in known.by_version:
            raise _unknown_version(name, version, known)
        if version is not None and known.remove(version):
            return
        if org is None:
            del self._of_any[name]
        else:
            del self._of_one[org, name]

    # --- asking ---

    def find(self, workflow: Workflow[..., Any] | str, version: str | None = None, org: str = DEFAULT_ORG) -> Definition:
        """The newest version of a workflow that an organisation has, or the one asked for. Raises UnknownWorkflow.

        Who passes the code itself means the code, whatever processes there are.
        """
        name = workflow.name if isinstance(workflow, Workflow) else workflow
        known = self._find_versions(org, name) if isinstance(name, str) else None
        if known is None or not isinstance(workflow, Workflow):
            process = self._find_process(name, version, org)
            if process is not None:
                return process
        if known is None:
            raise self._unknown(name)
        if version is None:
            return known.newest
        own = known.by_version.get(check_identifier(version, "the version of a workflow"))
        if own is None:
            raise _unknown_version(name, version, known)
        return own

    def _find_process(self, name: object, version: str | None, org: object) -> Definition | None:
        """The process that a start means; None if its name is none of the org's. Raises ProcessNotStartable."""
        if self.processes is None or not isinstance(name, str) or not isinstance(org, str):
            return None
        return self.processes.find_start(org, name, version)

    def find_newest(self, name: str, org: str = DEFAULT_ORG) -> Definition | None:
        """The newest version of a workflow, if it is here; of a process, the newest that may start something."""
        if self.processes is not None and self.processes.has(org, name):
            return self.processes.find_newest(org, name)
        known = self._find_versions(org, name)
        return None if known is None else known.newest

    def find_version(self, name: str, version: str, org: str = DEFAULT_ORG) -> Definition | None:
        """One version of a workflow, if it is here."""
        if self.processes is not None and (process := self.processes.find_version(org, name, version)) is not None:
            return process
        known = self._find_versions(org, name)
        return None if known is None else known.by_version.get(version)

    def find_for(self, execution: Execution) -> Definition | None:
        """The definition that takes an execution's turns here: its own version if it is pinned, else the newest."""
        if execution.details.route_name:
            return None if self.processes is None else self.processes.find_for(execution)
        known = self._find_versions(execution.org, execution.workflow)
        if known is None:
            return None
        return known.by_version.get(execution.code_version) if execution.details.pinned else known.newest

    def make_program(self, execution: Execution, limits: ProgramLimits = NO_PROGRAM_LIMITS) -> Program:
        """The program of an execution, before its first event. Raises UnknownWorkflow if its definition is not here."""
        definition = self.find_for(execution)
        if definition is not None:
            return definition.make_program(execution, limits)
        if execution.details.route_name and self.processes is not None:
            raise self.processes.refuse(execution)
        known = self._find_versions(execution.org, execution.workflow)
        if known is None:
            raise self._unknown(execution.workflow)
        raise _unknown_version(execution.workflow, execution.code_version, known)

    def is_outdated(self, execution: Execution, program: Program) -> bool:
        """Whether an execution's program was made by a definition that no longer takes its turns."""
        return program.definition is not None and program.definition is not self.find_for(execution)

    def __iter__(self) -> Iterator[Definition]:
        """Every version of every workflow but deployed processes."""
        for versions in (*self._of_any.values(), *self._of_one.values()):
            yield from versions.by_version.values()

    def find_errors(self) -> KnownErrors:
        """Where callers find the classes of what workflows and activities raise.

        Not among Python's own: a `TimeoutError` that a workflow failed with is not one of the call that waits for it.
        """
        activities = self.activities.values()
        functions = [one.function for one in self if isinstance(one, Workflow)] + [one.function for one in activities]
        registered = [cls for one in activities for cls in one.errors]
        return find_sources(*functions, registered=registered, has_builtins=False)

    def find_job_type(self, name: str) -> JobType | None:
        """What is known of the activity that a task of a process asks for; None if it is not here."""
        activity = self.activities.get(name)
        return None if activity is None else JobType(activity.parameters, activity.options)

    @property
    def route_names(self) -> Sequence[str]:
        """What stands for workflows in the routes of processes that can be interpreted here."""
        return () if self.processes is None else (PROCESS_ROUTE_NAME,)

    def list_names(self) -> set[str]:
        """The names of all workflows and processes, of whatever organisation."""
        return {one.name for one in self} | (set() if self.processes is None else self.processes.list_names())

    @property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each workflow that every organisation has, by name, the newest last."""
        return {name: list(known.by_version) for name, known in sorted(self._of_any.items())}

    # --- parts ---

    def _find_versions(self, org: str, name: str) -> Versions | None:
        """The versions that an organisation sees: its own, or else everybody's."""
        if self._of_one and (own := self._of_one.get((org, name))) is not None:
            return own
        return self._of_any.get(name)

    def _find_versions_of(self, org: str | None, name: str) -> Versions | None:
        """The versions that belong to exactly one organisation, or to all."""
        return self._of_any.get(name) if org is None else self._of_one.get((org, name))

    def _unknown(self, name: object) -> UnknownWorkflow:
        shown, known = getattr(name, "__name__", name), sorted({one.name for one in self})
        return UnknownWorkflow(
            f"Expected workflow {shown!r} to be registered with the engine, but it is not (known: "
            f"{', '.join(known) or 'none'}). Decorate it with @workflow and pass it in Engine(..., workflows=[...]), or "
            "deploy its diagram.",
            workflow=str(shown),
            known=known,
        )


def _unknown_version(name: object, version: str, known: Versions) -> UnknownWorkflow:
    versions = [repr(one) if one else "one without a name" for one in known.by_version]
    return UnknownWorkflow(
        f"Expected version {version!r} of workflow {name!r} to be registered with the engine, but it is not "
        f"(known versions: {', '.join(versions)}). Pass it in Engine(..., workflows=[...]), or call add_workflow.",
        workflow=str(name),
        version=version,
        known=versions,
    )
