"""Ask a person: a task with candidates, a form, and a record of who did what."""

import asyncio
from dataclasses import dataclass

from holdfast import Context, Engine, NotTaskCandidate, TaskFormMismatch, workflow


@dataclass
class Approval:
    approved: bool
    note: str = ""


@workflow
async def purchase(ctx: Context, amount: int) -> str:
    form = await ctx.human_task("approve", Approval, candidates=["managers"], payload={"amount": amount})
    return f"{amount}: {'bought' if form.approved else 'refused'} ({form.note})"


async def main() -> None:
    async with Engine("memory://", workflows=[purchase]) as engine:
        handle = await engine.start(purchase, 900)
        [task] = await engine.tasks(candidate_group="managers")
        task_id = task.task_id
        try:
            await engine.claim_task(task_id, by="eve", groups=["staff"])
        except NotTaskCandidate:
            print("eve may not claim it")
        await engine.claim_task(task_id, by="ann", groups=["managers"])
        try:
            await engine.complete_task(task_id, {"note": "no decision"}, by="ann")
        except TaskFormMismatch:
            print("a form without a decision is refused")
        await engine.complete_task(task_id, {"approved": True, "note": "fine"}, by="ann")
        print(await handle.result())
        print([f"{event.kind} by {event.by}" for event in await engine.task_events(task_id)])


if __name__ == "__main__":
    asyncio.run(main())
