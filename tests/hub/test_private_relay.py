"""What a private thread has does not exist for whoever comes by way of a Hub."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from factwire.edge import link_work
from factwire.edge.edge_app import PROBLEM_CODES
from factwire.edge.hub_frames import MIRRORED_ROUTES, RelayCommandCreated
from factwire.edge.private_threads import BODY_IDS, UNKNOWN, read_privacy
from factwire.edge.routes.api_types import DecisionBody, RequestBody
from factwire.hub.link.deliveries import NewDelivery, add_delivery
from factwire.hub.link.relay import RELAY_ROLES
from factwire.hub.people.accounts import new_id
from factwire.hub.records.grant_records import NeededRight
from tests.edge.edges import running_edge
from tests.hub.sent_decisions import NewDecision, send_decision
from tests.hub.served_hubs import WAIT, served_hub
from tests.hub.test_link_live import LinkedEdge
from tests.journal.contract import make_fact

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.requirement("link.private"),
]

SECRET = "what-only-this-machine-may-know"
RELAYED_ROUTES = sorted(
    route
    for route in RELAY_ROLES
    if not (route.startswith("GET ") and route[4:] in MIRRORED_ROUTES)
)
NAMING_ROUTES = [
    route for route in RELAYED_ROUTES if set(re.findall(r"{(\w+)}", route)) & UNKNOWN.keys()
]
OUTSIDE_THREADS = {
    "agent_id",
    "conversation_id",
    "from_item_id",
    "member_id",
    "project_id",
}
"""Ids of requests that lead to no thread but one that the request names otherwise."""

BODIES: dict[str, dict[str, Any]] = {
    "PATCH /v1/threads/{thread_id}": {"title": "seen"},
    "POST /v1/threads/{thread_id}/messages": {"text": "help", "agentId": "demo"},
    "POST /v1/threads/{thread_id}:fork": {},
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def linked(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[LinkedEdge]:
    folder: Path = tmp_path_factory.mktemp("private")
    async with served_hub(folder) as hub, running_edge(folder) as edge:
        ada = await hub.first_admin()
        linked = LinkedEdge(hub, edge, ada, ada)
        await linked.join()
        yield linked


@pytest.fixture(autouse=True)
def pass_time(linked: LinkedEdge) -> None:
    """A Hub reads only so many frames of a device in a second of its clock."""
    linked.hub.clock.advance(5)


async def create_private(linked: LinkedEdge) -> str:
    body = {"title": SECRET, "private": True}
    return (await linked.edge.post("/v1/threads", body, status=201))["threadId"]


async def create_named(linked: LinkedEdge, names: list[str]) -> dict[str, str]:
    """A private thread, and of it what a route names."""
    edge, thread_id = linked.edge, await create_private(linked)
    ids = {"thread_id": thread_id, "run_id": "run_none"}
    if "thread_id" in names:
        return ids
    prompt = f"echo {SECRET}"
    if names == ["approval_id"]:
        run = await edge.start(prompt, "shell", threadId=thread_id)
        approval = await edge.wait_for_approval(run["runId"])
        return {**ids, "approval_id": approval["approvalId"]}
    if names == ["rule_id"]:
        run = await edge.start(prompt, "shell", threadId=thread_id)
        approval = await edge.wait_for_approval(run["runId"])
        assert (await edge.decide(approval, "allow", always="thread")).status_code == 200
        rules = (await edge.get("/v1/standing-rules"))["items"]
        [rule] = [each for each in rules if each["threadId"] == thread_id]
        return {**ids, "rule_id": rule["ruleId"]}
    run = await edge.start(prompt, "shell", threadId=thread_id)
    await edge.allow_all(run["runId"])
    ids["run_id"] = run["runId"]
    if names == ["evidence_id"]:
        pack = await edge.post("/v1/evidence", {"threadId": thread_id}, status=201)
        ids["evidence_id"] = pack["evidenceId"]
    if names == ["preview_id"]:
        preview = await edge.post("/v1/previews", {"runId": run["runId"]}, status=201)
        ids["preview_id"] = preview["previewId"]
    return ids


async def ask(linked: LinkedEdge, route: str, ids: dict[str, str]) -> tuple[int, str]:
    """The status of an answer, and what it says but for the ids that were named."""
    method, _, template = route.partition(" ")
    path = template.removeprefix("/v1").format_map(ids)
    answer = await linked.ada.request(method, linked.path + path, BODIES.get(route))
    text = re.sub(r'"traceId":"\w+"', "", answer.text)
    for value in ids.values():
        text = text.replace(value, "ID")
    return answer.status_code, text


@pytest.mark.parametrize("protects", [True, False])
@pytest.mark.parametrize("route", NAMING_ROUTES)
async def test_a_relayed_request_for_what_is_private_is_answered_as_for_what_does_not_exist(
    linked: LinkedEdge, route: str, protects: bool, monkeypatch: pytest.MonkeyPatch
):
    names = re.findall(r"{(\w+)}", route)
    ids = await create_named(linked, names)
    unknown = await ask(linked, route, {name: f"none_{name}" for name in names})
    assert unknown[0] == 404
    if not protects:

        async def allow_all(*_: object) -> None:
            return

        monkeypatch.setattr(link_work, "ensure_public", allow_all)
    found = await ask(linked, route, {name: ids[name] for name in names})
    assert (found == unknown) is protects, found


async def test_every_id_of_a_relayed_request_is_known_to_lead_to_a_thread_or_to_none():
    named = {name for route in RELAYED_ROUTES for name in re.findall(r"{(\w+)}", route)}
    for body in RequestBody.__subclasses__():
        # A decision is not relayed: it goes by the Hub's approvals.
        if body is not DecisionBody:
            named |= {name for name in body.__struct_fields__ if name.endswith("_id")}
    assert named - UNKNOWN.keys() == OUTSIDE_THREADS
    assert set(BODY_IDS.values()) <= UNKNOWN.keys()
    assert {code for code, _ in UNKNOWN.values()} <= PROBLEM_CODES.keys()


@pytest.mark.parametrize(
    ("path", "name", "more"),
    [
        ("/runs", "threadId", {"agentId": "demo", "prompt": "help"}),
        ("/evidence", "threadId", {}),
        ("/previews", "runId", {}),
    ],
)
async def test_a_relayed_request_cannot_name_what_is_private_in_its_body(
    linked: LinkedEdge, path: str, name: str, more: dict[str, Any]
):
    ids = await create_named(linked, [BODY_IDS[name]])
    answers: list[tuple[int, str]] = []
    for value in (ids[BODY_IDS[name]], "none"):
        answer = await linked.ada.request("POST", linked.path + path, {name: value, **more})
        answers.append((answer.status_code, answer.json()["code"]))
    code, _ = UNKNOWN[BODY_IDS[name]]
    assert answers == [(404, code)] * 2


async def relay(linked: LinkedEdge, path: str) -> tuple[int, Any]:
    """What the Edge answers to a read that no Hub of ours would pass on."""
    services, delivery_id = linked.hub.hub.services, new_id("dlv")
    command = RelayCommandCreated(
        command_id=delivery_id,
        delivery_id=delivery_id,
        method="GET",
        path=path,
        person={"name": "Mallory", "userId": linked.ada.person_id},
        scopes=["read", "decide", "run"],
    )
    async with services.events.change() as change:
        delivery = NewDelivery(
            delivery_id=delivery_id,
            device_id=linked.device_id,
            person_id=linked.ada.person_id,
            kind="relay",
            payload=command,
            right=NeededRight(role="viewer"),
            expires_at=change.now + WAIT * 1000,
        )
        await add_delivery(change, delivery)
    until = asyncio.get_running_loop().time() + WAIT
    row = await linked.hub.hub.links.link.wait_for_answer(delivery_id, until)
    return msgspec.json.decode(row["answer"])["status"], msgspec.json.decode(row["content"])


async def test_an_edge_relays_nothing_that_its_mirror_answers(linked: LinkedEdge):
    thread_id = await create_private(linked)
    for template in sorted(MIRRORED_ROUTES):
        path = re.sub(r"{\w+}", thread_id, template)
        status, answer = await relay(linked, path)
        assert (status, answer["code"]) == (403, "not_relayed"), path


async def test_rules_and_earlier_requests_of_private_threads_are_not_relayed(linked: LinkedEdge):
    edge = linked.edge
    ids = await create_named(linked, ["rule_id"])
    open_run = await edge.start(f"echo {SECRET}", "shell")
    shown = await edge.wait_for_approval(open_run["runId"])
    path = f"/approvals/{shown['approvalId']}/standing-rule"
    seen = {
        "/standing-rules": (await edge.http.get("/v1/standing-rules")).text,
        path: (await edge.http.get(f"/v1{path}")).text,
    }
    for path, own in seen.items():
        relayed = await linked.ada.request("GET", linked.path + path)
        assert relayed.status_code == 200
        assert (ids["thread_id"] in own, ids["thread_id"] in relayed.text) == (True, False), path
    await edge.allow_all(open_run["runId"])


async def test_a_task_for_a_private_thread_fails_as_for_an_unknown_one(linked: LinkedEdge):
    thread_id = await create_private(linked)
    task = await linked.dispatch("help", threadId=thread_id)
    failed = await linked.wait_for(task["taskId"], "failed")
    assert failed["error"]["code"] == "unknown_thread"
    assert (await linked.edge.get("/v1/runs", threadId=thread_id))["items"] == []


@pytest.mark.parametrize("is_private", [True, False])
async def test_the_end_of_a_task_says_nothing_of_a_thread_that_was_made_private(
    linked: LinkedEdge, is_private: bool
):
    task = await linked.dispatch("approve")
    approval = await linked.wait_for_approval(task["taskId"])
    if is_private:
        await make_private(linked, approval["threadId"])
    await linked.edge.allow_all(approval["runId"])
    done = await linked.wait_for(task["taskId"], "done")
    assert bool(done["resultSummary"]) is not is_private
    assert bool(done["usage"]) is not is_private


async def make_private(linked: LinkedEdge, thread_id: str) -> None:
    changed = await linked.edge.http.patch(f"/v1/threads/{thread_id}", json={"private": True})
    assert changed.status_code == 200, changed.text


async def test_a_task_of_a_thread_that_was_made_private_can_be_stopped(linked: LinkedEdge):
    task = await linked.dispatch("approve")
    approval = await linked.wait_for_approval(task["taskId"])
    await make_private(linked, approval["threadId"])
    await linked.ada.post(f"/v1/agent-tasks/{task['taskId']}:cancel", None, 202)
    ended = await linked.wait_for(task["taskId"], "cancelled")
    assert ended["error"]["message"] == "the thread of this task is private"


async def test_a_decision_about_what_became_private_is_refused(linked: LinkedEdge):
    task = await linked.dispatch("approve")
    approval = await linked.wait_for_approval(task["taskId"])
    await make_private(linked, approval["threadId"])
    services, link = linked.hub.hub.services, linked.hub.hub.links.link
    async with services.events.change() as change:
        new = NewDecision(
            person_id=linked.ada.person_id,
            device_id=linked.device_id,
            run_id=approval["runId"],
            approval_id=approval["approvalId"],
            decision="allow",
            args_hash=approval["argsHash"],
        )
        delivery_id = await send_decision(change, new)
    row = await link.wait_for_answer(delivery_id, asyncio.get_running_loop().time() + WAIT)
    assert (row["state"], row["code"]) == ("refused", "unknown_approval")
    await linked.edge.allow_all(approval["runId"])


async def test_threads_below_a_private_one_are_private_to_a_hub(linked: LinkedEdge):
    machine = linked.edge.machine
    parent = await create_private(linked)
    child = make_fact("c1", "child-of-private", parent_thread_id=parent)
    result = await machine.journal.append([child, make_fact("o1", "child-of-none")])
    await machine.wait_for_records(result.cursor.seq)
    is_private = await read_privacy(machine)
    assert (is_private("child-of-private"), is_private("child-of-none")) == (True, False)
