"""The story: people chat, somebody orders a piano, the worker is killed, another one goes on, and the books are checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from holdfast.cli.demo.evidence import Evidence, gather_evidence
from holdfast.cli.demo.messages import Buy, Finish, Say
from holdfast.cli.demo.outside import Entry, Phase, SideEffectLedger, find_unfinished
from holdfast.cli.demo.process import Worker
from holdfast.cli.demo.proof import check_all, collect_runs, read_messages
from holdfast.cli.demo.screen import Screen
from holdfast.cli.demo.workflows import SLOW_SUBJECTS
from holdfast.errors import HoldfastError

ORDER: Final = "order-1001"
ITEMS: Final = ["lamp", "chair", "piano"]
ORDER_STEPS: Final = len(ITEMS) + 3
FIRST_MESSAGES: Final = [
    ("ann", "good morning"),
    ("ben", "what is a piano?"),
    ("cleo", "is anybody there?"),
    ("ann", "when will it come?"),
    ("ben", "how heavy is it?"),
    ("cleo", "write me a poem"),
]
BUFFERED: Final = ("cleo", "a short one, please")
UNANSWERED: Final = ("cleo", "with rhymes")
LAST_MESSAGES: Final = [("ann", "thank you"), ("ben", "I see"), ("cleo", "lovely")]
MESSAGES: Final = len(FIRST_MESSAGES) + 2 + len(LAST_MESSAGES)
LONGEST_WAIT: Final = 60.0
LOOK_EVERY: Final = 0.05


class Story:
    """Tells it once. `pace` stretches the pauses; 1 is for people."""

    def __init__(self, folder: Path, pace: float, screen: Screen) -> None:
        self.folder = folder
        self.pace = pace
        self.screen = screen
        self.ledger = SideEffectLedger(folder)
        self.sent: list[Say] = []
        self.killed_at = datetime.now(UTC)

    async def tell(self) -> bool:
        """The whole story; whether every claim at its end holds."""
        self.screen.show_title()
        await self.tell_beginning()
        await self.tell_pause()
        await self.tell_recovery()
        return await self.tell_proof()

    async def tell_beginning(self) -> None:
        """A worker process does its work until it is killed in the middle."""
        screen = self.screen
        screen.begin_scene("1  A worker process opens a new database")
        async with self.hire() as worker:
            with screen.show_progress():
                async with self.watch():
                    await self.order(worker)
                    for person, text in FIRST_MESSAGES:
                        await self.chat(worker, person, text)
                    screen.say("the order: charge, retried while the bank does not answer; a timer; a child for each item")
                    await self.wait_until(self.is_in_the_middle)
                    await self.chat(worker, *BUFFERED, note="kept: the poem comes first")
            await self.pause(0.8)
            await self.kill(worker)

    async def kill(self, worker: Worker) -> None:
        """SIGKILL, right after a message was sent and before anybody answered."""
        message = self.make_message(*UNANSWERED)
        worker.tell(message)
        await asyncio.sleep(0)
        await worker.kill()
        self.killed_at = datetime.now(UTC)
        self.screen.announce_kill(worker.pid)
        cut_off = ", ".join(f"{entry.activity} ({entry.subject})" for entry in find_unfinished(self.ledger.read()))
        self.screen.say(f"In the middle of: {cut_off}")
        self.screen.say(f'"{message.text}" was sent and not acknowledged: nobody knows whether it arrived.')

    async def tell_pause(self) -> None:
        """Between the two worker processes: print what the database alone knows, without any engine."""
        self.screen.begin_scene("2  Nothing runs. What the database says:")
        evidence = await self.gather()
        self.screen.show_executions([told.info for told in evidence.executions])
        person, text = UNANSWERED
        chat = evidence.find(f"chat-{person}")
        has_arrived = chat is not None and text in read_messages(chat)
        self.screen.say(f'"{text}" {"had arrived, only the answer was lost" if has_arrived else "had not arrived"}.')
        await self.pause(2.0)

    async def tell_recovery(self) -> None:
        """Another worker process goes on where the first one was cut off."""
        screen = self.screen
        screen.begin_scene("3  A second worker process opens the database")
        async with self.hire() as worker:
            screen.show_report(worker.report)
            with screen.show_progress():
                async with self.watch():
                    unanswered = self.sent[-1]
                    accepted = await worker.deliver(unanswered)
                    screen.say(
                        f'cleo: "{unanswered.text}" sent again under the same request id: event {accepted.sequence}, once'
                    )
                    for person, text in LAST_MESSAGES:
                        await self.chat(worker, person, text, last=True)
                    people = sorted({say.person for say in self.sent})
                    await worker.ask(Finish([ORDER, *(f"chat-{person}" for person in people)]))
            await worker.stop()

    async def tell_proof(self) -> bool:
        """What the histories and the ledger say, and whether it is what was promised."""
        screen = self.screen
        evidence = await self.gather()
        screen.begin_scene("4  The histories")
        screen.show_histories(evidence)
        screen.begin_scene("5  What the activities did, by a ledger outside of the engine")
        screen.show_runs(collect_runs(evidence))
        screen.begin_scene("6  Nothing was lost and nothing counted twice")
        checks = check_all(evidence)
        screen.show_checks(checks)
        return all(check.holds for check in checks)

    # --- parts ---

    @asynccontextmanager
    async def hire(self) -> AsyncIterator[Worker]:
        """A worker process that is gone afterwards, however the scene ends."""
        worker = await Worker.start(self.folder, self.pace)
        self.screen.say(f"process {worker.pid} is ready", style="green")
        try:
            yield worker
        finally:
            await worker.abandon()

    async def gather(self) -> Evidence:
        """What is there to see so far."""
        return await gather_evidence(self.folder, self.sent, self.killed_at)

    async def order(self, worker: Worker) -> None:
        """Somebody orders. The timer is long enough to be running when the worker is killed."""
        await worker.deliver(Buy(ORDER, "dora", ITEMS, patience=max(3.0, 7 * self.pace)))
        self.screen.say(f"{ORDER}: started for {', '.join(ITEMS)}")

    async def chat(self, worker: Worker, person: str, text: str, *, last: bool = False, note: str = "") -> None:
        """A person writes, and the engine acknowledges: from then on the message cannot be lost."""
        await self.pause(0.25)
        accepted = await worker.deliver(self.make_message(person, text, last=last))
        what = "a conversation begins" if accepted.created else "the same conversation"
        where = f"{what}, event {accepted.sequence}"
        self.screen.say(f'{person}: "{text}" -> {where}{", " + note if note else ""}')

    def make_message(self, person: str, text: str, *, last: bool = False) -> Say:
        message = Say(person, text, last, request_id=f"message-{len(self.sent) + 1}")
        self.sent.append(message)
        return message

    def is_in_the_middle(self, entries: list[Entry]) -> bool:
        """Whether only what takes long is still running: every quick activity of the beginning is done."""
        done = sum(entry.phase is Phase.DONE for entry in entries)
        quick = len(FIRST_MESSAGES) - 1 + 1 + len(ITEMS) - 1
        return done == quick and {entry.subject for entry in find_unfinished(entries)} == set(SLOW_SUBJECTS)

    async def wait_until(self, condition: Callable[[list[Entry]], bool]) -> None:
        """Look into the ledger until it shows something. Raises HoldfastError if it never does."""
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                while not condition(self.ledger.read()):  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise HoldfastError(
                f"Expected the worker to get to the middle of the story, but it did not within {LONGEST_WAIT:.0f} s. "
                "Run it again with --keep and look into its worker.log."
            ) from None

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Move the bars while the scene goes on."""
        watcher = asyncio.create_task(self._move_bars())
        try:
            yield
        finally:
            watcher.cancel()
            self._show_bars()

    async def _move_bars(self) -> None:
        while True:
            self._show_bars()
            await asyncio.sleep(LOOK_EVERY)

    def _show_bars(self) -> None:
        done = [entry.activity for entry in self.ledger.read() if entry.phase is Phase.DONE]
        replies = done.count("reply")
        self.screen.advance("messages answered", replies, MESSAGES)
        self.screen.advance("steps of the order", len(done) - replies, ORDER_STEPS)

    async def pause(self, seconds: float) -> None:
        """Time to read; none of the correctness rests on it."""
        await asyncio.sleep(seconds * self.pace)
