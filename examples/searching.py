"""States and business references: a workflow says how far it is, and lists find it by that."""

import asyncio
import tempfile
from pathlib import Path

from holdfast import BusinessReference, Context, Engine, workflow


@workflow
async def claim(ctx: Context, amount: int) -> str:
    ctx.set_state(step="filed", amount=amount)
    decision = await ctx.wait_for_signal("decide", str)
    ctx.set_state(step=decision)
    return decision


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(f"sqlite:///{Path(folder) / 'claims.db'}", workflows=[claim]) as engine:
            for number, amount in enumerate([120, 80, 4000]):
                reference = BusinessReference(f"2026-{number}", {"policy": "P-7" if number else "P-1"})
                await engine.start(claim, amount, workflow_id=f"claim-{number}", business_reference=reference)
            await engine.signal_workflow("claim-1", "decide", "paid")

            large = await engine.list(where="state.step = 'filed' AND state.amount > 100", order_by="state.amount desc")
            print("large and open:", *[info.workflow_id for info in large])
            policy = await engine.list(where="reference.policy = 'P-7'", order_by="reference")
            print("policy P-7:", *[info.workflow_id for info in policy])
            print("decided:", await engine.count(where="NOT state.step = 'filed'"))


if __name__ == "__main__":
    asyncio.run(main())
