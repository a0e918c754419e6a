"""Instances of processes as a case looks at them: everything is read from their histories, when it is asked for."""

from __future__ import annotations

import msgspec

from holdfast.core import events
from holdfast.core.activities import ENDING, is_ending
from holdfast.core.publications import SubscriptionKind
from holdfast.engine.task_views import TaskInfo
from holdfast.engine.views import ExecutionInfo, History
from holdfast.testing import process_cases as cases
from holdfast.testing.engine import TestEngine
from holdfast.testing.process_models import CaseFailed, CaseModels, ProcessModel, describe
from holdfast.testing.process_progress import ElementInstance, ElementStanding, ProcessProgress


class OpenJob(msgspec.Struct, frozen=True):
    """A job that waits for its outcome."""

    execution_id: str
    process_id: str
    element: str
    type: str
    number: int
    attempt: int


class FoundTask(msgspec.Struct, frozen=True):
    """A user task with the element that it belongs to."""

    info: TaskInfo
    process_id: str
    element: str


class MessageWait(msgspec.Struct):
    """A wait of an instance for a message."""

    number: int
    name: str
    key: str
    is_open: bool = True
    is_correlated: bool = False


class Instance:
    """One instance of a process, as its history tells it."""

    def __init__(self, info: ExecutionInfo, history: History, process: ProcessModel) -> None:
        self.info = info
        self.process = process
        self.progress = ProcessProgress()
        self.jobs: dict[int, events.ActivityScheduled] = {}
        """The open jobs, by number."""
        self.messages: dict[int, MessageWait] = {}
        self.incidents: dict[int, events.IncidentRaised] = {}
        """The open incidents, by number."""
        for recorded in history:
            self._take(recorded.event)

    def _take(self, event: events.AnyEvent) -> None:
        match event:
            case events.ProcessAdvanced():
                self.progress.take(event)
            case events.ActivityScheduled():
                self.jobs[event.number] = event
            case events.Subscribed(kind=SubscriptionKind.MESSAGE):
                self.messages[event.number] = MessageWait(event.number, event.name, event.key)
            case events.SubscriptionTriggered() | events.SubscriptionFailed() | events.Unsubscribed():
                self._end_wait(event)
            case events.IncidentRaised():
                self.incidents[event.number] = event
            case events.IncidentResolved():
                self.incidents.pop(event.number, None)
            case _ if isinstance(event, ENDING) and is_ending(event, event.number):
                self.jobs.pop(event.number, None)
            case _ if type(event) in events.CLOSING:
                self._close()
            case _:
                pass

    def _end_wait(self, event: events.SubscriptionTriggered | events.SubscriptionFailed | events.Unsubscribed) -> None:
        wait = self.messages.get(event.number)
        if wait is not None:
            wait.is_correlated |= isinstance(event, events.SubscriptionTriggered)
            wait.is_open = False

    def _close(self) -> None:
        """Nothing is open in it any more."""
        self.jobs.clear()
        self.incidents.clear()
        for wait in self.messages.values():
            wait.is_open = False
        self.progress.close()

    # --- what is asked about it ---

    @property
    def execution_id(self) -> str:
        """The execution id of the instance."""
        return self.info.execution_id

    def list_elements(self, selector: cases.ElementSelector) -> list[ElementInstance]:
        """The instances of the elements that a selector means, in the order in which they were entered."""
        return [one for one in self.progress.elements if self.process.matches(selector, one.element)]

    def find_active(self, selector: cases.ElementSelector) -> ElementInstance:
        """The element that a selector means, which is active. Raises CaseFailed if none is."""
        found = [one for one in self.list_elements(selector) if one.standing is ElementStanding.ACTIVE]
        if not found:
            raise CaseFailed(
                f"Expected the element with {describe(selector)} to be active, but it is not. {self.describe_active()}"
            )
        return found[0]

    def describe_active(self) -> str:
        """Which elements are active, as a sentence."""
        active = [one.element for one in self.progress.elements if one.standing is ElementStanding.ACTIVE]
        return f"Active {'is' if len(active) == 1 else 'are'}: {', '.join(active)}." if active else "Nothing is active."


class Instances:
    """Finds the instances that a case is about, and what is open in them. Each look reads what has changed since."""

    def __init__(self, engine: TestEngine, models: CaseModels) -> None:
        self._engine = engine
        self._known: dict[str, Instance] = {}
        """By execution id, each instance as it was read last."""
        self.models = models

    async def list_all(self, process_id: str | None = None) -> list[Instance]:
        """All instances, or those of a process, in the order in which they began."""
        found: list[ExecutionInfo] = []
        cursor: str | None = None
        while True:
            page = await self._engine.list(workflow=process_id, cursor=cursor, limit=1000)
            found += page
            cursor = page.cursor
            if cursor is None:
                break
        found.reverse()  # the newest come first
        return [await self._read(info) for info in found]

    async def _read(self, info: ExecutionInfo) -> Instance:
        """An instance by its history, which is read again only if something has changed: a case may have many instances."""
        known = self._known.get(info.execution_id)
        if known is None or known.info != info:
            history = await self._engine.history(info.execution_id)
            known = Instance(info, history, self.models.find_process(info.workflow))
            self._known[info.execution_id] = known
        return known

    async def find_last(self, selector: cases.ProcessSelector) -> Instance:
        """The instance of a process that began last. Raises CaseFailed if there is none."""
        found = await self.list_all(selector.process_definition_id)
        if not found:
            raise CaseFailed(
                f"Expected an instance of process '{selector.process_definition_id}', but none was started. "
                "Check the process id, or create one."
            )
        return found[-1]

    # --- jobs ---

    async def list_jobs(self) -> list[OpenJob]:
        """All jobs that wait for their outcome, the oldest first."""
        found: list[OpenJob] = []
        for instance in await self.list_all():
            if not instance.jobs:
                continue
            pending = (await self._engine.query_status(instance.execution_id)).pending
            for activity in () if pending is None else pending.activities:
                event = instance.jobs.get(activity.number)
                if event is not None and event.options.job is not None:
                    element = event.options.job.element
                    found.append(
                        OpenJob(
                            instance.execution_id,
                            instance.process.id,
                            element,
                            event.name,
                            activity.number,
                            activity.attempt,
                        )
                    )
        return found

    async def find_job(self, selector: cases.JobSelector) -> OpenJob:
        """The oldest job that a selector means. Raises CaseFailed if none waits."""
        jobs = await self.list_jobs()
        for job in jobs:
            if (
                selector.job_type in (None, job.type)
                and selector.element_id in (None, job.element)
                and selector.process_definition_id in (None, job.process_id)
            ):
                return job
        waiting = ", ".join(f"'{job.type}' of '{job.element}'" for job in jobs)
        raise CaseFailed(
            f"Expected a job with {describe(selector)} to wait, but none does. "
            f"{f'Waiting are: {waiting}.' if waiting else 'No job waits.'}"
        )

    # --- messages and incidents ---

    async def list_message_waits(self, name: str) -> list[MessageWait]:
        """The open waits for a message, the oldest first."""
        return [
            wait for one in await self.list_all() for wait in one.messages.values() if wait.is_open and wait.name == name
        ]

    async def find_incident(self, selector: cases.IncidentSelector) -> tuple[Instance, int]:
        """The oldest open incident that a selector means. Raises CaseFailed if there is none."""
        known: list[str] = []
        for instance in await self.list_all(selector.process_definition_id):
            for number, incident in instance.incidents.items():
                if selector.element_id in (None, incident.element):
                    return instance, number
                known.append(f"'{incident.element}' ({incident.message})")
        told = f"Incidents are open at: {', '.join(known)}." if known else "No incident is open."
        raise CaseFailed(f"Expected an incident with {describe(selector)}, but there is none. {told}")

    # --- user tasks ---

    async def list_tasks(self, *, is_open: bool) -> list[FoundTask]:
        """The user tasks of all instances, the oldest first: those that are open, or all."""
        infos: list[TaskInfo] = []
        cursor: str | None = None
        while True:
            page = await self._engine.tasks(state=None if is_open else "all", cursor=cursor, limit=1000)
            infos += page
            cursor = page.cursor
            if cursor is None:
                break
        instances = {one.execution_id: one for one in await self.list_all()}
        return [
            FoundTask(info, info.workflow, instances[info.execution_id].progress.find_element(info.number))
            for info in infos
            if info.execution_id in instances
        ]

    async def find_task(self, selector: cases.UserTaskSelector, *, is_open: bool = True) -> FoundTask:
        """The oldest user task that a selector means. Raises CaseFailed if there is none."""
        tasks = await self.list_tasks(is_open=is_open)
        for task in tasks:
            if (
                selector.element_id in (None, task.element)
                and selector.task_name in (None, task.info.name)
                and selector.process_definition_id in (None, task.process_id)
            ):
                return task
        known = ", ".join(f"'{task.info.name}' of '{task.element}'" for task in tasks)
        raise CaseFailed(
            f"Expected a user task with {describe(selector)}, but there is none{' that is open' if is_open else ''}. "
            f"{f'There are: {known}.' if known else 'There is no user task at all.'}"
        )
