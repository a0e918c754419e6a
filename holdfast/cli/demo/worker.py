"""The worker process of the demo: an engine on the story's database, told what to do through its standard input.

Run as `python -m holdfast.cli.demo.worker FOLDER PACE`. It is killed without warning, so it prepares for nothing.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from holdfast import Engine, HoldfastError
from holdfast.cli.demo.messages import (
    DATABASE,
    Answer,
    Buy,
    Finish,
    Ready,
    Request,
    RequestAccepted,
    RequestRefused,
    Say,
    WorkflowsEnded,
    decode_request,
    encode_line,
)
from holdfast.cli.demo.outside import SideEffectLedger
from holdfast.cli.demo.workflows import ACTIVITIES, WORKFLOWS, DemoSettings, Message, Purchase, conversation, order


async def serve(folder: Path) -> None:
    """Run the engine until standard input ends."""
    url = f"sqlite:///{folder / DATABASE}"
    engine = Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, shutdown_grace=0.5)
    answer(Ready(await engine.open()))
    try:
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            answer(await handle(engine, decode_request(line)))
    except HoldfastError as error:
        answer(RequestRefused(error.message))
    finally:
        await engine.shutdown()


async def handle(engine: Engine, request: Request) -> Answer:
    """Do what was asked; the answer means that it is durable."""
    match request:
        case Say(person, text, last, request_id):
            response = await engine.signal_with_start_workflow(
                f"chat-{person}",
                conversation,
                person,
                signal_name="message",
                signal_value=Message(text, last),
                request_id=request_id,
            )
            return RequestAccepted(bool(response.workflow_created), response.signal_event_sequence)
        case Buy(order_id, account, items, patience):
            handle = await engine.start(order, Purchase(account, items, patience), workflow_id=order_id)
            return RequestAccepted(bool(handle.created), 1)
        case Finish(workflow_ids):
            await asyncio.gather(*(engine.handle(one).result() for one in workflow_ids))
            return WorkflowsEnded()


def answer(message: Answer) -> None:
    """Write an answer to standard output, where the storyteller reads it, and flush it."""
    sys.stdout.buffer.write(encode_line(message))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    here = Path(sys.argv[1])
    DemoSettings.ledger, DemoSettings.pace = SideEffectLedger(here), float(sys.argv[2])
    asyncio.run(serve(here))
