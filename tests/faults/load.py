"""Load that never lets up: workflows of every kind, and conversations with numbered signals. It remembers what it was told.

Callers do what callers should: what the store could not take is sent again under the same key. Some send only once, without
a key: what they are told is compared with what happened.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from holdfast import Workflow
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from tests.eventually import eventually
from tests.faults.callers import Caller
from tests.faults.flows import Said, chain, conversation, family, naps, relay, stumbles
from tests.faults.nodes import PATIENCE

T = TypeVar("T")

CONVERSATIONS: Final = 2
SENDERS: Final = 2
RELAYED: Final = 12
ONCE: Final = "once"
"""The sender whose signals have no key and no end."""


class Told(Enum):
    """What a caller was told who sent something once."""

    YES = auto()
    NO = auto()
    PERHAPS = auto()


class Load(AbstractAsyncContextManager["Load"]):
    """Runs from `async with` on, until it is finished."""

    def __init__(self, engine: Caller, seed: int, *, pace: float = 0.05, most_open: int = 24) -> None:
        """`pace` is the seconds between two rounds; in each, a workflow is started and each sender sends."""
        self._engine = engine
        self._random = random.Random(seed)
        self._pace = pace
        self._room = asyncio.Semaphore(most_open)
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []
        self._started = 0
        self.done = 0
        """How many workflows ended, with the right result."""
        self.sent = 0
        """How many signals were accepted."""
        self.troubles = 0
        """How often a caller was told to try again."""
        self.expected: dict[str, str] = {}
        """The workflow of each id that was started."""
        self.said: dict[tuple[str, str], int] = {}
        """How many signals each conversation accepted of each sender: those from 0 on, up to this number."""
        self.told: dict[tuple[str, int], Told] = {}
        """What was told to those who sent a signal once, by conversation and number."""
        self.started_once: dict[str, Told] = {}
        """What was told to those who started a workflow once, by its id."""
        self.heard: dict[str, list[Said]] = {}
        """The results of the conversations."""

    async def __aenter__(self) -> Self:
        for number in range(CONVERSATIONS):
            self._spawn(self._converse(f"talk-{number}"))
        self._spawn(self._start_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Begin nothing new, and wait until all that was begun has ended. Raises if a result is wrong."""
        self._is_over = True
        try:
            async with asyncio.timeout(PATIENCE):
                for task in self._tasks:  # those that are begun meanwhile too
                    await task
        except TimeoutError:
            waiting = "\n".join(sorted({self.describe(task) for task in self._tasks if not task.done()}))
            raise AssertionError(f"Expected all to end within {PATIENCE:g} s, but these wait:\n{waiting}") from None

    async def go_on(self, count: int) -> None:
        """Wait until so many more workflows have ended: it works, again or still."""
        goal = self.done + count
        await eventually(lambda: self.done >= goal, f"{count} more workflows to end", PATIENCE)
        self.check()

    async def be_refused(self, count: int) -> None:
        """Wait until so many more calls were refused."""
        goal = self.troubles + count
        await eventually(lambda: self.troubles >= goal, f"{count} more calls to be refused", PATIENCE)

    def check(self) -> None:
        """Raise what has gone wrong so far."""
        for task in self._tasks:
            if task.done():
                task.result()

    def _spawn(self, coro: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(coro))

    @staticmethod
    def describe(task: asyncio.Task[None]) -> str:
        """Where a caller waits, from the outside in."""
        places: list[str] = []
        waits: Any = task.get_coro()
        while (frame := getattr(waits, "cr_frame", None)) is not None:
            places.append(f"{frame.f_code.co_name}:{frame.f_lineno} {_show(frame.f_locals)}")
            waits = getattr(waits, "cr_await", None)
        return " > ".join(places)

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until the store takes it."""
        while True:
            try:
                return await call()
            except StoreUnavailable:
                self.troubles += 1
                await asyncio.sleep(self._random.uniform(0.01, 0.1))

    # --- workflows ---

    async def _start_all(self) -> None:
        while not self._is_over:
            await self._room.acquire()
            self._started += 1
            self._spawn(self._start_one(self._started))
            await asyncio.sleep(self._pace)

    async def _start_one(self, number: int) -> None:
        try:
            match self._random.randrange(6):
                case 0:
                    await self._start_once(f"once-{number}")
                case 1:
                    await self._run(naps, [0, 2, 4], 3, 0.05, workflow_id=f"naps-{number}")
                case 2:
                    await self._run(stumbles, None, workflow_id=f"stumbles-{number}")
                case 3:
                    await self._run(family, [[0, 2], [0, 2], [0, 2]], 3, 2, workflow_id=f"family-{number}")
                case _:
                    await self._run(chain, [0, 2, 4, 6], 4, workflow_id=f"chain-{number}")
        finally:
            self._room.release()

    async def _run(self, workflow: Workflow[..., Any], result: Any, *args: Any, workflow_id: str) -> None:
        self.expected[workflow_id] = workflow.name
        handle = await self._insist(
            lambda: self._engine.start(workflow, *args, workflow_id=workflow_id, idempotency_key=workflow_id)
        )
        found = await self._insist(handle.result)
        assert found >= 3 if result is None else found == result, f"{workflow_id} returned {found!r}"
        self.done += 1

    async def _start_once(self, workflow_id: str) -> None:
        told = await self._ask_once(lambda: self._engine.start(chain, 2, workflow_id=workflow_id))
        self.started_once[workflow_id] = told

    async def _ask_once(self, call: Callable[[], Awaitable[Any]]) -> Told:
        try:
            await call()
        except OutcomeUnknown:
            return Told.PERHAPS
        except StoreUnavailable:
            return Told.NO
        return Told.YES

    # --- conversations ---

    async def _converse(self, workflow_id: str) -> None:
        relays = f"{workflow_id}-relay"
        senders = [f"{workflow_id}-{number}" for number in range(SENDERS)]
        self.expected |= {workflow_id: conversation.name, relays: relay.name}
        handle = await self._insist(
            lambda: self._engine.start(
                conversation, [*senders, relays], [], workflow_id=workflow_id, idempotency_key=workflow_id
            )
        )
        await self._insist(
            lambda: self._engine.start(relay, workflow_id, RELAYED, workflow_id=relays, idempotency_key=relays)
        )
        once = asyncio.create_task(self._speak_once(workflow_id))
        try:
            await asyncio.gather(*(self._speak(workflow_id, sender, once) for sender in senders))
        finally:
            once.cancel()
        self.said[workflow_id, relays] = RELAYED
        self.heard[workflow_id] = await self._insist(handle.result)
        self.done += 1

    async def _speak(self, workflow_id: str, sender: str, once: asyncio.Task[None]) -> None:
        number = 0
        while not self._is_over:
            await self._say(workflow_id, Said(sender, number), f"{sender}-{number}")
            number += 1
            self.said[workflow_id, sender] = number
            await asyncio.sleep(self._pace)
        await asyncio.wait([once])  # a conversation that has ended could not hear them
        await self._say(workflow_id, Said(sender, number, is_last=True), f"{sender}-{number}")
        self.said[workflow_id, sender] = number + 1

    async def _say(self, workflow_id: str, said: Said, request_id: str) -> None:
        await self._insist(lambda: self._engine.signal_workflow(workflow_id, "said", said, request_id=request_id))
        self.sent += 1

    async def _speak_once(self, workflow_id: str) -> None:
        number = 0
        while not self._is_over:
            said = Said(ONCE, number)
            self.told[workflow_id, number] = await self._ask_once(
                lambda said=said: self._engine.signal_workflow(workflow_id, "said", said)  # type: ignore[misc]
            )
            number += 1
            await asyncio.sleep(self._pace)


def _show(names: dict[str, Any]) -> str:
    shown = {name: names[name] for name in ("workflow_id", "number", "sender", "request", "execution_id") if name in names}
    return str(shown) if shown else ""
