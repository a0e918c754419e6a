"""A code workflow calls the process in `code_and_diagram.bpmn`, which calls another one: each where it is clearer."""

import asyncio
from pathlib import Path

from holdfast import Context, Engine, activity, workflow

DIAGRAM = Path(__file__).with_suffix(".bpmn")


@activity
async def ask(hotel: str, city: str) -> int:
    return {"Ritz": 400, "Inn": 90}[hotel] + len(city)


@activity(name="book-room")
async def book(city: str, offer: dict[str, object]) -> dict[str, str]:
    return {"room": f"{offer['hotel']} in {city}"}


@workflow
async def find_offer(ctx: Context, city: str) -> dict[str, str | int]:
    """Many calls at once are easier to write than to draw: a call activity of the diagram runs this."""
    hotels = ["Ritz", "Inn"]
    prices = await asyncio.gather(*(ctx.run(ask, hotel, city) for hotel in hotels))
    price, hotel = min(zip(prices, hotels, strict=True))
    return {"hotel": hotel, "price": price}


@workflow
async def trip(ctx: Context, cities: list[str], budget: int) -> str:
    """Tries one city after another; each booking is an execution of the process."""
    for city in cities:
        booking = await ctx.run_child("booking", {"city": city, "budget": budget})
        if "room" in booking:
            return f"{booking['room']} for {booking['offer']['price']}"
    return "stay at home"


async def main() -> None:
    async with Engine("memory://", workflows=[trip, find_offer], activities=[ask, book]) as engine:
        await engine.deploy(DIAGRAM)
        for budget in (95, 10):
            handle = await engine.start(trip, ["Amsterdam", "Rome"], budget)
            print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
