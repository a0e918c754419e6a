"""Deployed definitions: versions never change their content, deployments exclude each other, organisations never meet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import StoreError
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.definitions import CatalogChanges, DefinitionFilter, DefinitionKind, DefinitionState, StateChange
from holdfast.store.pauses import PauseRow
from holdfast.store.publications import StartSubscriptionRow
from holdfast.store.rows import NodeRow
from tests.store.builders import NOW, ORG, OTHER, commit, make_closing, make_row, make_start
from tests.store.conftest import Backend
from tests.store.definition_builders import (
    deploy,
    make_definition,
    make_deployment,
    make_process,
    make_resource,
    make_starting,
    read_number,
    read_starting,
    undeploy,
)
from tests.store.schedule_builders import make_schedule, put_schedule

BPMN = DefinitionKind.BPMN.value
DMN = DefinitionKind.DMN.value
LONG_AFTER = NOW + 10**10
"""When whatever has ended may go."""


async def test_P12_what_is_deployed_is_found_with_its_content(store: Store) -> None:
    row = make_definition(name="Order", version_tag="stable")

    number = await deploy(store, make_deployment(row, at=NOW))

    found = await store.definitions.find(ORG, BPMN, "order")
    assert found == replace(row, updated_at=NOW, changed=number)
    assert await store.definitions.read_resource(ORG, row.digest) == make_resource("v1")
    assert number == NOW
    assert await store.check() == []


async def test_P12_deployment_raises_the_settings_number_so_that_turns_by_an_earlier_one_are_lost(store: Store) -> None:
    before = await read_number(store)
    number = await deploy(store, make_deployment(make_definition()))
    transaction = await store.begin()

    lost = await transaction.write([make_start(make_row(1))], UnroutedWrite(settings=before))
    kept = await transaction.write([make_start(make_row(2))], UnroutedWrite(settings=number))
    await transaction.commit()

    assert (await store.read_settings()).number == number > before
    assert lost == {make_row(1).execution_id}
    assert kept == set()


async def test_P11_deployment_by_an_outdated_number_writes_nothing(store: Store) -> None:
    stale = await read_number(store)
    await store.put_pause(PauseRow(ORG, "queue", "slow", 7))
    write = make_deployment(
        make_definition(),
        starts=[make_starting("begin")],
        schedules=[make_schedule("nightly")],
        states=[undeploy()],
    )

    answer = await store.definitions.deploy(write, stale)

    assert answer is None
    assert await store.definitions.search(DefinitionFilter(ORG)) == []
    assert await store.definitions.read_resource(ORG, make_definition().digest) is None
    assert await read_starting(store, "begin") == []
    assert await store.list_schedules(ORG) == []


async def test_P11_two_deployments_at_once_never_give_one_version_to_two_contents(shared: Backend) -> None:
    nodes = [await shared.connect(f"node {number}") for number in range(4)]
    texts = [f"content {number}" for number in range(4)]

    async def deploy_one(node: Store, text: str) -> int:
        for _ in range(50):
            number = (await node.definitions.read_changed(0)).number
            latest = await node.definitions.find(ORG, BPMN, "order")
            version = 1 if latest is None else latest.version + 1
            resource = make_resource(text)
            write = make_deployment(make_definition(version=version, resource=resource), resources=[resource])
            if await node.definitions.deploy(write, number) is not None:
                return version
        raise AssertionError("no deployment came through")

    versions = await asyncio.gather(*map(deploy_one, nodes, texts))

    assert sorted(versions) == [1, 2, 3, 4]
    rows = await nodes[0].definitions.search(DefinitionFilter(ORG))
    assert {row.version: row.digest for row in rows} == {
        version: make_resource(text).digest for version, text in zip(versions, texts, strict=True)
    }
    assert len({row.changed for row in rows}) == 4
    assert await nodes[0].check() == []


async def test_X1_deployment_that_would_overwrite_a_version_is_refused_and_leaves_nothing(store: Store) -> None:
    row = make_definition()
    await deploy(store, make_deployment(row))
    before = await read_number(store)
    other = make_resource("other")
    again = make_deployment(
        make_definition("first", resource=other),
        make_definition(resource=other),
        resources=[other],
        states=[undeploy()],
        starts=[make_starting("begin")],
    )

    with pytest.raises(StoreError):
        await store.definitions.deploy(again, before)

    assert await read_number(store) == before
    [kept] = await store.definitions.search(DefinitionFilter(ORG))
    assert (kept.digest, kept.state) == (row.digest, "active")
    assert await store.definitions.read_resource(ORG, other.digest) is None
    assert await read_starting(store, "begin") == []


async def test_P11_content_that_is_there_stays_with_its_first_name(store: Store) -> None:
    first = make_resource("v1")
    await deploy(store, make_deployment(make_definition()))

    again = [replace(first, name="other.bpmn"), make_resource("v2")]
    await deploy(store, make_deployment(make_definition(version=2), resources=again))

    assert await store.definitions.read_resource(ORG, first.digest) == first
    assert await store.definitions.read_resource(ORG, make_resource("v2").digest) == make_resource("v2")


async def test_P11_newest_version_is_found_whether_it_is_disabled_or_not(store: Store) -> None:
    definitions = store.definitions
    await deploy(store, make_deployment(make_definition(), make_definition(version=2), make_definition(version=10)))

    await deploy(store, make_deployment(states=[StateChange(BPMN, "order", 10, DefinitionState.DISABLED.value)]))
    disabled = await definitions.find(ORG, BPMN, "order")
    await deploy(store, make_deployment(states=[undeploy(version=10)], at=NOW))
    undeployed = await definitions.find(ORG, BPMN, "order")
    await deploy(store, make_deployment(states=[undeploy(version=1), undeploy(version=2), undeploy("unknown", 7)]))

    assert disabled is not None
    assert (disabled.version, disabled.state) == (10, "disabled")
    assert undeployed is not None
    assert undeployed.version == 2
    assert await definitions.find(ORG, BPMN, "order") is None
    by_number = await definitions.find(ORG, BPMN, "order", version=10)
    assert by_number is not None
    assert (by_number.state, by_number.updated_at) == ("undeployed", NOW)


async def test_P11_version_is_found_by_tag_and_by_deployment(store: Store) -> None:
    definitions = store.definitions
    rows = [
        make_definition(version=1, version_tag="stable", deployment="a"),
        make_definition(version=2, version_tag="stable", deployment="b"),
        make_definition(version=3, version_tag="next", deployment="b"),
        make_definition(version=4, version_tag="stable", deployment="c", state=DefinitionState.UNDEPLOYED.value),
    ]
    await deploy(store, make_deployment(*rows))

    async def find(**how: Any) -> int | None:
        found = await definitions.find(ORG, BPMN, "order", **how)
        return None if found is None else found.version

    assert await find(version_tag="stable") == 2
    assert await find(version_tag="next") == 3
    assert await find(version_tag="gone") is None
    assert await find(deployment="a") == 1
    assert await find(deployment="b") == 3
    assert await find(deployment="c") is None
    assert await find(deployment="b", version_tag="stable") == 2


async def test_P12_what_changed_since_a_number_is_told(store: Store) -> None:
    definitions = store.definitions
    nothing = await definitions.read_changed(0)
    first = await deploy(store, make_deployment(make_definition("a"), make_definition("b"), at=50))
    second = await deploy(store, make_deployment(make_definition("a", 2), at=40))
    third = await deploy(store, make_deployment(states=[undeploy("b")]))

    def names(changes: CatalogChanges) -> list[tuple[str, int]]:
        return [(row.definition_id, row.version) for row in changes.definitions]

    assert (nothing.number, nothing.definitions, nothing.is_whole) == (0, [], True)
    assert first < second < third
    everything = await definitions.read_changed(0)
    assert (everything.number, everything.is_whole) == (third, True)
    assert names(everything) == [("a", 1), ("a", 2), ("b", 1)]
    assert names(await definitions.read_changed(first)) == [("a", 2), ("b", 1)]
    assert names(await definitions.read_changed(second)) == [("b", 1)]
    assert names(await definitions.read_changed(third)) == []
    assert names(await definitions.read_changed(0, 3)) == names(everything)


async def test_P12_who_knows_too_little_is_told_to_read_anew(store: Store) -> None:
    definitions = store.definitions
    number = await deploy(store, make_deployment(make_definition("a"), make_definition("b"), make_definition("c")))

    too_many = await definitions.read_changed(0, 2)
    ahead = await definitions.read_changed(number + 1)
    number_alone = await definitions.read_changed(0, 0)
    known = await definitions.read_changed(number, 0)

    assert (too_many.number, too_many.definitions, too_many.is_whole) == (number, (), False)
    assert (ahead.number, ahead.definitions, ahead.is_whole) == (number, (), False)
    assert (number_alone.number, number_alone.is_whole) == (number, False)
    assert (known.number, list(known.definitions), known.is_whole) == (number, [], True)


async def test_definitions_are_listed_by_kind_and_id_the_newest_version_first(store: Store) -> None:
    decision = make_resource("d", kind=DMN)
    rows = [make_definition("b", 2), make_definition("b", 10), make_definition("a"), make_definition("b", 1)]
    contents = [*(make_resource(f"v{version}") for version in (1, 2, 10)), decision]
    await deploy(store, make_deployment(*rows, make_definition("a", resource=decision), resources=contents))
    everything = [(BPMN, "a", 1), (BPMN, "b", 10), (BPMN, "b", 2), (BPMN, "b", 1), (DMN, "a", 1)]

    async def search(**conditions: Any) -> list[tuple[str, str, int]]:
        return [row.key for row in await store.definitions.search(DefinitionFilter(ORG, **conditions))]

    assert await search() == everything
    assert await search(kind=DMN) == everything[4:]
    assert await search(definition_id="a") == [everything[0], everything[4]]
    assert await search(kind=BPMN, definition_id="b") == everything[1:4]
    assert await search(deployment="d1") == [everything[0], everything[3], everything[4]]
    assert await search(digest=make_resource("v2").digest) == [(BPMN, "b", 2)]
    assert await search(digest=make_resource("v2").digest, kind=DMN) == []
    assert await search(is_latest_only=True) == [everything[0], everything[1], everything[4]]
    pages: list[tuple[str, str, int]] = []
    while page := await search(limit=2, after=pages[-1] if pages else None):
        pages += page
    assert pages == everything


async def test_latest_version_is_the_newest_that_is_not_undeployed(store: Store) -> None:
    await deploy(store, make_deployment(make_definition(version=1), make_definition(version=2), make_definition(version=3)))
    disable = StateChange(BPMN, "order", 2, DefinitionState.DISABLED.value)
    await deploy(store, make_deployment(states=[undeploy(version=3), disable]))

    async def search(**conditions: Any) -> list[int]:
        return [row.version for row in await store.definitions.search(DefinitionFilter(ORG, **conditions))]

    assert await search(is_latest_only=True) == [2]
    assert await search(is_latest_only=True, states=["active"]) == []
    assert await search(states=["active", "undeployed"]) == [3, 1]
    assert await search(states=["disabled"]) == [2]


async def test_I5_organisations_never_see_each_others_definitions(store: Store) -> None:
    definitions = store.definitions
    theirs = make_resource("v1", org=OTHER)
    await deploy(store, make_deployment(make_definition(), starts=[make_starting("begin", "ours")]))
    write = make_deployment(make_definition(resource=theirs), make_definition("only", resource=theirs), org=OTHER)
    await deploy(store, replace(write, starts=[make_starting("begin", "theirs", org=OTHER)]))

    await deploy(store, make_deployment(states=[undeploy()], ended_starts=["ours", "theirs"]))

    assert await definitions.find(ORG, BPMN, "order") is None
    found = await definitions.find(OTHER, BPMN, "order")
    assert found is not None
    assert (found.org, found.state) == (OTHER, "active")
    assert await definitions.find(ORG, BPMN, "only", version=1) is None
    assert [row.definition_id for row in await definitions.search(DefinitionFilter(ORG))] == ["order"]
    assert await definitions.read_resource("third", theirs.digest) is None
    assert await read_starting(store, "begin") == []
    assert await read_starting(store, "begin", org=OTHER) == [("begin", "theirs", "")]


async def test_P12_start_subscriptions_of_a_process_are_replaced_and_those_of_others_stay(store: Store) -> None:
    await store.put_starts("node", [StartSubscriptionRow("message", "begin", "order", "default", "r", "7")])
    starts = [make_starting("begin"), make_starting("again"), make_starting("begin", "invoice")]
    await deploy(store, make_deployment(make_definition(), make_definition("invoice"), starts=starts))

    new = [make_starting("begin", version="2"), make_starting("begin", version="2")]
    await deploy(store, make_deployment(make_definition(version=2), ended_starts=["order"], starts=new))

    assert await read_starting(store, "begin", "again") == [
        ("begin", "invoice", ""),
        ("begin", "order", ""),
        ("begin", "order", "node"),
    ]


async def test_P12_deployed_start_subscriptions_stay_when_nodes_leave(store: Store) -> None:
    await deploy(store, make_deployment(make_definition(), starts=[make_starting("begin")]))
    await store.beat(NodeRow("node", NOW, NOW), [], [])
    await store.put_starts("node", [StartSubscriptionRow("message", "begin", "code", "default", "r")])

    await store.put_starts("node", [])
    await store.leave("node")
    await store.remove_nodes(["node"])

    assert await read_starting(store, "begin") == [("begin", "order", "")]


async def test_T4_start_timers_are_replaced_with_the_deployment(store: Store) -> None:
    await put_schedule(store, make_schedule("mine"))
    timers = [make_schedule("a", due=10), make_schedule("b", due=20), make_schedule("c", due=30)]
    await deploy(store, make_deployment(make_definition(), schedules=timers))
    fired = make_schedule("b", due=21, version=2)
    await put_schedule(store, fired)

    new = [make_schedule("b", due=50, owner="definition"), make_schedule("c", due=60)]
    await deploy(store, make_deployment(ended_schedules=["a", "c", "unknown"], schedules=new))

    rows = {row.schedule_id: row for row in await store.list_schedules(ORG)}
    assert set(rows) == {"mine", "b", "c"}
    assert rows["b"] == replace(new[0], version=3)
    assert rows["c"] == new[1]
    assert rows["mine"] == make_schedule("mine")


async def test_T4_schedules_of_other_orgs_with_the_same_id_stay(store: Store) -> None:
    await deploy(store, make_deployment(make_definition(), schedules=[make_schedule("nightly")]))
    theirs = make_schedule("nightly", org=OTHER, due=5)
    await deploy(store, make_deployment(org=OTHER, schedules=[theirs]))

    await deploy(store, make_deployment(ended_schedules=["nightly"]))

    assert await store.list_schedules(ORG) == []
    assert await store.list_schedules(OTHER) == [theirs]


async def test_X1_rolled_back_turn_of_a_process_leaves_no_trace(store: Store) -> None:
    transaction = await store.begin()
    await transaction.write([make_start(make_row(1))], UnroutedWrite())
    await transaction.rollback()

    assert await commit(store, make_start(make_row(1))) == set()
    assert await store.check() == []


# --- retention ------------------------------------------------------------------------------------------------------------


async def list_versions(store: Store) -> list[tuple[str, int]]:
    """(id, version) of all definitions of an org."""
    return [(row.definition_id, row.version) for row in await store.definitions.search(DefinitionFilter(ORG))]


async def test_D3_definition_goes_with_its_last_execution_and_takes_its_content_along(store: Store) -> None:
    await deploy(store, make_deployment(make_definition(), make_definition(version=2)))
    rows = [make_process(1), make_process(2), make_process(3, 2)]
    await commit(store, *map(make_start, rows))
    await commit(store, make_closing(rows[0]), make_closing(rows[2]))
    await deploy(store, make_deployment(states=[undeploy(version=1), undeploy(version=2)], at=NOW))

    assert await store.purge(LONG_AFTER, 10) == 2
    held_by_an_open_one = await list_versions(store)
    await commit(store, make_closing(rows[1]))
    before_it_is_purged = await store.purge(NOW, 10), await list_versions(store)
    assert await store.purge(LONG_AFTER, 10) == 1

    assert held_by_an_open_one == [("order", 1)]
    assert before_it_is_purged == (0, [("order", 1)])
    assert await list_versions(store) == []
    assert await store.definitions.read_resource(ORG, make_resource("v1").digest) is None
    assert await store.definitions.read_resource(ORG, make_resource("v2").digest) is None
    assert await store.check() == []


async def test_D3_definition_that_is_not_undeployed_or_only_lately_stays(store: Store) -> None:
    rows = [make_definition("active"), make_definition("disabled"), make_definition("late"), make_definition("old")]
    await deploy(store, make_deployment(*rows))
    disable = StateChange(BPMN, "disabled", 1, DefinitionState.DISABLED.value)
    await deploy(store, make_deployment(states=[disable, undeploy("old")], at=NOW))
    await deploy(store, make_deployment(states=[undeploy("late")], at=NOW + 10))

    await store.purge(NOW + 5, 10)

    assert await list_versions(store) == [("active", 1), ("disabled", 1), ("late", 1)]


async def test_D3_content_stays_while_another_definition_is_made_of_it(store: Store) -> None:
    shared_content = make_resource("both")
    rows = [make_definition("a", resource=shared_content), make_definition("b", resource=shared_content)]
    await deploy(store, make_deployment(*rows, resources=[shared_content]))
    theirs = make_resource("both", org=OTHER)
    await deploy(store, make_deployment(make_definition("a", resource=theirs), resources=[theirs], org=OTHER))

    await deploy(store, make_deployment(states=[undeploy("a")]))
    await store.purge(NOW, 10)
    kept = await store.definitions.read_resource(ORG, shared_content.digest)
    await deploy(store, make_deployment(states=[undeploy("b")]))
    await store.purge(NOW, 10)

    assert kept == shared_content
    assert await store.definitions.read_resource(ORG, shared_content.digest) is None
    assert await store.definitions.read_resource(OTHER, theirs.digest) == theirs
    assert await store.check() == []


async def test_D3_code_workflow_of_the_same_name_and_version_keeps_no_definition(store: Store) -> None:
    await deploy(store, make_deployment(make_definition()))
    await commit(store, make_start(make_row(1)), make_start(make_process(2, org=OTHER)))
    await deploy(store, make_deployment(states=[undeploy()]))

    await store.purge(NOW, 10)

    assert await list_versions(store) == []


async def test_D3_undeployed_decisions_and_forms_go_without_regard_to_executions(store: Store) -> None:
    decision = make_resource("d", kind=DMN)
    await deploy(store, make_deployment(make_definition(resource=decision), resources=[decision]))
    await commit(store, make_start(make_process(1)))
    await deploy(store, make_deployment(states=[undeploy(kind=DMN)]))

    await store.purge(NOW, 10)

    assert await list_versions(store) == []
    assert await store.check() == []


async def test_damaged_definitions_are_found(store: Store) -> None:
    wrong = replace(make_resource("wrong"), data=b"<other/>")
    lacking = make_definition("lacking", resource=make_resource("nowhere"))
    await deploy(
        store,
        make_deployment(
            make_definition("wrong", resource=wrong),
            lacking,
            replace(make_definition("odd", resource=wrong), details=b"?"),
            replace(make_definition("later", resource=wrong), state="from the future"),
            resources=[wrong, make_resource("unused")],
        ),
    )

    problems = sorted(await store.check())

    assert problems[0] == "deployed file 'unused.bpmn' of org 'default': no definition is made of it"
    assert problems[1].startswith("deployed file 'wrong.bpmn' of org 'default': its content is not what its digest")
    assert problems[2].endswith(f"of org 'default': its content, {lacking.digest}, is missing")
    assert "'odd' (bpmn) of org 'default': Expected to decode the details of a definition" in problems[3]
    assert len(problems) == 4
    [newer] = await store.list_newer()
    assert "its state is 'from the future', which is not known here" in newer
