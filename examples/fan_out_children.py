"""Fan out to child workflows, each with its own history, and gather what they return."""

import asyncio

from holdfast import Context, Engine, activity, workflow

TEXTS = {"one.txt": "to be or not to be", "two.txt": "that is the question", "three.txt": ""}


@activity
async def count_words(file: str) -> int:
    return len(TEXTS[file].split())


@workflow
async def analyse(ctx: Context, file: str) -> int:
    words = await ctx.run(count_words, file)
    if not words:
        raise ValueError(f"{file} is empty")
    return words


@workflow
async def analyse_all(ctx: Context, files: list[str]) -> dict[str, int | None]:
    children = [ctx.run_child(analyse, file, workflow_id=f"analyse/{file}") for file in files]
    results = await asyncio.gather(*children, return_exceptions=True)
    return {file: result if isinstance(result, int) else None for file, result in zip(files, results, strict=True)}


async def main() -> None:
    async with Engine("memory://", workflows=[analyse, analyse_all], activities=[count_words]) as engine:
        handle = await engine.start(analyse_all, list(TEXTS), workflow_id="analyse")
        print(await handle.result())
        children = await engine.list(parent_execution_id=handle.execution_id)
        for child in sorted(children, key=lambda one: one.workflow_id):
            print(child.workflow_id, child.status)


if __name__ == "__main__":
    asyncio.run(main())
