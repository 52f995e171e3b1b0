"""Every kind of request, asked of a real Edge."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from factwire.client import AsyncClient, Client, EdgeProblem
from factwire.evidence import verify_pack
from factwire.facts import read_fact
from factwire.facts.resources import Approval, Run
from tests.cli.cli_recordings import turn
from tests.edge.edges import TOKEN, RunningEdge, running_edge

pytestmark = pytest.mark.asyncio

PATIENCE = 60.0
MEBIBYTE = 1024 * 1024


def client(edge: RunningEdge) -> AsyncClient:
    return AsyncClient(edge.url, token=TOKEN)


async def until(asking: AsyncClient, run: Run, *statuses: str) -> Run:
    """A run that has come to one of these; told by its events, never by the clock."""
    async with (
        asyncio.timeout(PATIENCE),
        asking.events(
            cursor=(await asking.past_events().page()).as_of, run_id=run.run_id
        ) as events,
    ):
        while True:
            now = await asking.run(run.run_id)
            if now.status in statuses:
                return now
            await anext(events)


async def decide_until_ended(
    asking: AsyncClient, run: Run, decision: Any = "allow"
) -> list[Approval]:
    """Answer whatever a run asks, until it ends."""
    approvals: list[Approval] = []
    while (await until(asking, run, "waiting", "finished", "failed")).status == "waiting":
        for each in (await asking.approvals(run_id=run.run_id, status="pending").page()).items:
            key, shown = each.approval_id, each.args_hash or ""
            approvals += [
                await asking.decide(run.run_id, key, decision, args_hash=shown, reason="why")
            ]
    return approvals


@pytest.mark.requirement("client.addresses")
async def test_projects_conversations_and_threads_are_made_changed_and_left(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        project = await asking.create_project("one", work_dir=str(tmp_path / "workspace"))
        assert (await asking.change_project(project.project_id, name="two")).name == "two"
        talk = await asking.create_conversation(title="talk", project_id=project.project_id)
        joined = await asking.add_member(talk.conversation_id, "ada", "user")
        assert joined.members == {"ada": "user"}
        assert [each.title async for each in asking.conversations()] == ["talk"]
        made = await asking.create_thread(title="first", project_id=project.project_id)
        changed = await asking.change_thread(made.thread_id, title="second")
        assert (changed.title, changed.seq) == ("second", made.seq)
        fork = await asking.fork_thread(made.thread_id, title="fork")
        assert fork.parent_thread_id == made.thread_id
        assert (await asking.archive_thread(made.thread_id)).status == "archived"
        assert [each.title async for each in asking.threads(status="archived")] == ["second"]
        for thread in (made, fork):
            await asking.delete_thread(thread.thread_id)
        await asking.delete_project(project.project_id)
        assert [each async for each in asking.projects()] == []


@pytest.mark.requirement("client.paging")
async def test_a_list_is_gone_through_whole_and_nothing_comes_twice(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        made = [(await asking.create_thread(title=str(number))).thread_id for number in range(7)]
        found = [each.thread_id async for each in asking.threads(limit=3)]
        assert found == made[::-1]
        page = await asking.threads(limit=3).page()
        rest = [each.thread_id async for each in asking.threads(cursor=page.next, limit=2)]
        assert [each.thread_id for each in page.items] + rest == found

        def list_thread_ids() -> list[str]:
            with Client(edge.url, token=TOKEN) as other:
                return [each.thread_id for each in other.threads(limit=2)]

        assert await asyncio.to_thread(list_thread_ids) == found
        events = [each async for each in asking.past_events(limit=3)]
        assert [each.seq for each in events] == sorted({each.seq for each in events})
        assert page.as_of == events[-1].cursor


@pytest.mark.requirement("client.addresses")
async def test_a_run_is_approved_read_and_tried_again(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        run = await asking.start_run("demo", "approve")
        approvals = await decide_until_ended(asking, run)
        assert {each.status for each in approvals} == {"approved"}
        assert (await asking.run(run.run_id)).status == "finished"
        items = [each.type async for each in asking.items(run.thread_id or "", limit=2)]
        assert {"user_message", "agent_message", "tool"} <= set(items)
        artifact = (await asking.artifacts(run_id=run.run_id).page()).items[0]
        assert (await asking.artifact(artifact.artifact_id)).artifact == artifact
        async with asking.artifact_content(artifact.artifact_id) as content:
            assert (await content.read()).startswith(b"# Notes")
        async with asking.blob(artifact.content_ref or "") as content:
            assert content.length == len(await content.read())
        log = await asking.log(run.run_id)
        assert log.next_offset == len(log.data) > 0
        rest = await asking.log(run.run_id, offset=4, limit=3, process_id=log.process_id)
        assert (rest.data, rest.next_offset) == (log.data[4:7], 7)
        assert (await asking.diff(run.run_id)).available is False
        again = await asking.retry_run(run.run_id)
        assert again.retry_of == run.run_id
        await until(asking, again, "waiting")
        await asking.cancel_run(again.run_id, reason="enough")
        assert (await until(asking, again, "cancelled")).status == "cancelled"
        assert [each.run_id async for each in asking.runs()] == [again.run_id, run.run_id]
        types = [each.type async for each in asking.run_events(run.run_id, view="conversation")]
        assert "approval.requested" in types


@pytest.mark.requirement("client.addresses")
async def test_messages_wait_are_promoted_steered_and_removed(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        run = await asking.start_run("demo", "approve")
        thread = run.thread_id or ""
        await until(asking, run, "waiting")
        one = await asking.send_message(thread, "one")
        two = await asking.send_message(thread, "two")
        assert [each.prompt for each in (await asking.queue(thread)).items] == ["one", "two"]
        promoted = await asking.promote(thread, two.run_id)
        assert [each.run_id for each in promoted.items] == [two.run_id, one.run_id]
        with pytest.raises(EdgeProblem) as refused:
            await asking.send_message(thread, "three", mode="refuse")
        assert (refused.value.status, refused.value.code) == (409, "active_run_exists")
        left = await asking.remove_queued(thread, two.run_id)
        assert [each.run_id for each in left.items] == [one.run_id]
        steered = await asking.steer(thread, "be quick")
        assert (steered.thread_id, steered.turn_id) == (thread, run.turn_id)
        assert (await asking.steer_queued(thread, one.run_id)).items == []
        await asking.cancel_run(run.run_id)


@pytest.mark.requirement("client.addresses")
async def test_a_thread_is_read_as_it_was(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        thread = (await asking.create_thread(title="before")).thread_id
        before = await asking.state(thread)
        await asking.change_thread(thread, title="after")
        assert (await asking.state(thread, at=before.as_of)).state == before.state
        model = await asking.read_model(thread, at=before.as_of)
        assert (model.as_of, model.read_model["threadId"]) == (before.as_of, thread)


@pytest.mark.requirement("client.addresses")
async def test_outside_facts_become_a_thread_with_tasks_and_evidence(tmp_path: Path):
    facts = [read_fact(each, "facts") for each in turn("outside", title="Outside")]
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        accepted = await asking.post_facts(facts)
        assert (accepted.accepted, accepted.repeated) == (len(facts), 0)
        assert (await asking.post_facts(facts)).repeated == len(facts)
        assert (await asking.thread("outside")).runtime_id == "r"
        with pytest.raises(EdgeProblem) as refused:
            await asking.send_message("outside", "hello")
        assert (refused.value.status, refused.value.code) == (409, "thread_owned_elsewhere")
        pack = await asking.export_evidence("outside")
        assert await asking.evidence_pack(pack.evidence_id) == pack
        assert [each async for each in asking.evidence()] == [pack]
        path = tmp_path / "pack.zip"
        async with asking.evidence_content(pack.evidence_id) as content:
            path.write_bytes(await content.read())
        assert verify_pack(path).ok
        assert [each async for each in asking.tasks(thread_id="outside")] == []
        with pytest.raises(EdgeProblem, match="unknown_task"):
            await asking.task("none")


@pytest.mark.requirement("client.addresses")
async def test_the_edge_itself_can_be_asked(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        health = await asking.health()
        assert (health.status, health.details is not None) == ("ok", True)
        agents = await asking.agents()
        assert (agents.default, agents.items[0].available) == ("demo", True)
        ticket = await asking.create_ticket()
        assert ticket.ticket not in repr(ticket)
        assert "factwire" in await asking.metrics()
        assert "/v1/runs" in (await asking.openapi())["paths"]
        assert (await asking.asyncapi())["asyncapi"]


PROBLEMS: list[tuple[Callable[[AsyncClient], Awaitable[object]], int, str]] = [
    (lambda asking: asking.thread("none"), 404, "unknown_thread"),
    (lambda asking: asking.run("none"), 404, "unknown_run"),
    (lambda asking: asking.project("none"), 404, "unknown_project"),
    (lambda asking: asking.start_run("nobody", "x"), 400, "unknown_agent"),
    (lambda asking: asking.create_thread(title=""), 400, "invalid_request"),
    (
        lambda asking: asking.decide("run", "none", "allow", args_hash="sha256:1"),
        404,
        "unknown_approval",
    ),
    (lambda asking: asking.create_project("x", work_dir="/"), 403, "workspace_not_allowed"),
    (lambda asking: asking.post_facts([]), 400, "batch_size"),
    (lambda asking: asking.threads(limit=0).page(), 400, "invalid_request"),
    (lambda asking: asking.blob("blob:none").__aenter__(), 404, "unknown_blob"),
    (lambda asking: asking.previews(cursor="x").page(), 400, "cursor_invalid"),
    (lambda asking: asking.past_events(cursor="x").page(), 400, "cursor_invalid"),
    (lambda asking: asking.create_preview("none"), 404, "unknown_run"),
    (lambda asking: asking.delete_worktree("none"), 404, "unknown_run"),
]


@pytest.mark.requirement("client.problems")
async def test_what_an_edge_refuses_is_raised(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        for ask, status, code in PROBLEMS:
            with pytest.raises(EdgeProblem) as refused:
                await ask(asking)
            error = refused.value
            assert (error.status, error.code, bool(error.detail)) == (status, code, True)
            assert error.trace_id


@pytest.mark.requirement("client.content")
async def test_content_of_any_length_is_never_held_whole(tmp_path: Path):
    async def long() -> AsyncIterator[bytes]:
        for number in range(48):
            yield bytes([number]) * MEBIBYTE

    async with running_edge(tmp_path) as edge, client(edge) as asking:
        ref = await edge.machine.blobs.put(long(), kind="raw")
        tracemalloc.start()
        try:
            seen = largest = 0
            async with asking.blob(ref.ref) as content:
                assert content.length == 48 * MEBIBYTE
                async for piece in content:
                    seen, largest = seen + len(piece), max(largest, len(piece))
            _, peak = tracemalloc.get_traced_memory()
            assert (seen, largest <= 64 * 1024) == (48 * MEBIBYTE, True)
            assert peak < 8 * MEBIBYTE
            seen = await asyncio.to_thread(_waited_for, edge.url, ref.ref)
            assert seen == 48 * MEBIBYTE
            assert tracemalloc.get_traced_memory()[1] < 8 * MEBIBYTE
        finally:
            tracemalloc.stop()


def _waited_for(url: str, ref: str) -> int:
    with Client(url, token=TOKEN) as waiting, waiting.blob(ref) as content:
        return sum(map(len, content))


async def test_content_is_opened_before_it_is_read(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        with pytest.raises(RuntimeError, match="async with"):
            await asking.blob("x").read()
