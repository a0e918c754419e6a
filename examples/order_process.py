"""The process in `order_process.bpmn`: activities serve its tasks, a message moves it on, a boundary timer ends the wait."""

import asyncio
from pathlib import Path

from holdfast import Engine, activity

DIAGRAM = Path(__file__).with_suffix(".bpmn")


@activity(name="reserve-stock")
async def reserve(articles: list[str]) -> dict[str, int]:
    """Its argument is the variable of that name; what it returns becomes variables."""
    return {"reserved": len(articles)}


@activity(name="release-stock")
async def release(reserved: int) -> None:
    print(f"released {reserved}")


@activity(name="ship")
async def ship(order: str, reserved: int) -> dict[str, str]:
    """The task maps its inputs: `order` is what the process calls `orderId`."""
    return {"number": f"{order}-{reserved}"}


async def main() -> None:
    async with Engine("memory://", activities=[reserve, release, ship]) as engine:
        await engine.deploy(DIAGRAM)

        paid = await engine.start("order", {"orderId": "A-1", "articles": ["tea", "milk"], "patience": "PT1H"})
        await paid.wait_for(lambda status: status.waiting_kind == "message")
        await engine.send_message("paid", "A-1", {"by": "Ann"})
        variables = await paid.result()
        print(f"shipped as {variables['trackingNumber']}, paid by {variables['by']}")

        forgotten = await engine.start("order", {"orderId": "A-2", "articles": ["tea"], "patience": "PT0.1S"})
        variables = await forgotten.result()
        print("given up" if "trackingNumber" not in variables else "shipped")


if __name__ == "__main__":
    asyncio.run(main())
