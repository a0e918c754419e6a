"""Wait for a person, for a recall, or for time to pass: whichever comes first decides."""

import asyncio
from dataclasses import dataclass

from holdfast import Context, Engine, workflow


@dataclass
class Decision:
    approved: bool
    by: str


@workflow
async def approval(ctx: Context, amount: int, patience: float) -> str:
    winner = await ctx.wait_any(ctx.signal("decision", Decision), ctx.signal("recall"), ctx.timer(patience))
    match winner.index, winner.value:
        case 0, Decision(approved=True, by=by):
            return f"{amount}: approved by {by}"
        case 0, Decision(by=by):
            return f"{amount}: refused by {by}"
        case 1, _:
            return f"{amount}: recalled"
        case _:
            return f"{amount}: nobody decided in time"


@workflow
async def short_approval(ctx: Context, amount: int) -> str:
    """With only one thing to wait for, a timeout is enough."""
    try:
        decision = await ctx.wait_for_signal("decision", Decision, timeout=0.1)
    except TimeoutError:
        return f"{amount}: nobody decided in time"
    return f"{amount}: {'approved' if decision.approved else 'refused'} by {decision.by}"


async def main() -> None:
    async with Engine("memory://", workflows=[approval, short_approval]) as engine:
        decided = await engine.start(approval, 100, 3600.0)
        recalled = await engine.start(approval, 200, 3600.0)
        forgotten = await engine.start(approval, 300, 0.1)
        short = await engine.start(short_approval, 400)

        await decided.signal("decision", Decision(approved=True, by="Ann"))
        await recalled.signal("recall")

        for handle in (decided, recalled, forgotten, short):
            print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
