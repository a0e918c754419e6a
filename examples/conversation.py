"""A chat: every message goes to the conversation of its user, which is started if there is none."""

import asyncio
from dataclasses import dataclass

from holdfast import Context, Engine, SignalWithStartResponse, activity, workflow


@dataclass
class Message:
    text: str
    last: bool = False


@activity
async def answer(user: str, text: str) -> str:
    return f"{user}, you said: {text}"


@workflow
async def conversation(ctx: Context, user: str) -> list[str]:
    answers: list[str] = []
    while True:
        message = await ctx.wait_for_signal("message", Message)
        answers.append(await ctx.run(answer, user, message.text))
        ctx.set_state({"turns": len(answers)})
        if message.last:
            return answers


def describe(response: SignalWithStartResponse) -> str:
    return "a new conversation" if response.workflow_created else "the same conversation"


async def main() -> None:
    async with Engine("memory://", workflows=[conversation], activities=[answer]) as engine:
        for message in (Message("hi"), Message("how are you?"), Message("bye", last=True)):
            response = await engine.signal_with_start_workflow(
                "conv-ann", conversation, "Ann", signal_name="message", signal_value=message
            )
            print(describe(response))
        for line in await engine.handle("conv-ann", workflow=conversation).result():
            print(line)

        # That conversation is over, so the next message begins another.
        response = await engine.signal_with_start_workflow(
            "conv-ann", conversation, "Ann", signal_name="message", signal_value=Message("me again", last=True)
        )
        print(describe(response))


if __name__ == "__main__":
    asyncio.run(main())
