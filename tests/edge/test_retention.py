"""Retention and compaction on a running Edge: what goes, what stays, and what is said about it.

The runs are those of live agents; only the clock is moved, so that they are old.
"""

import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
import websockets

from factwire.edge.records import Records, read_records
from factwire.edge.records.edge_records import RECORDS_FILE
from factwire.facts.shapes import decode_fact
from factwire.journal import FactBatch, RemovalResult, RetentionPolicy, open_journal
from factwire.projection import Projection
from factwire.runtime.configuration import Configuration, Limits, RetentionSettings
from tests.edge.edge_process import Client, EdgeProcess, new_client
from tests.edge.edges import TOKEN, WAIT_SECONDS, RunningEdge, configuration_in, running_edge
from tests.edge.test_paths_worktrees import run_change, with_repository
from tests.journal import nats_server as nats_servers
from tests.journal import postgres_server
from tests.journal.nats_server import NatsServer
from tests.journal.postgres_server import PostgresServer
from tests.runtime.hostile_repository import git
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.asyncio

postgres = postgres_server.postgres
nats_server = nats_servers.nats_server

OLD, NEW, NOW = (f"2030-0{month}-01T00:00:00.000Z" for month in (1, 5, 6))
RULES = {"keepDays": 60}
"""What ended at `OLD` goes, what ended at `NEW` stays."""


@pytest.fixture(params=["sqlite", "postgres", "nats"])
def configuration(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Configuration]:
    """An Edge on each kind of journal."""
    plain = configuration_in(tmp_path)
    if request.param == "sqlite":
        yield plain
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        yield configuration_in(tmp_path, journal=server.url(f"edge-{tmp_path.name}"))
    else:
        other: NatsServer = request.getfixturevalue("nats_server")
        yield configuration_in(tmp_path, journal=other.url())


async def talk(edge: RunningEdge, thread_id: str, when: str, *prompts: str) -> list[str]:
    """Have an agent do what prompts say, at a time; the ids of the runs."""
    edge.machine.mint.clock = lambda: when
    runs: list[str] = []
    for prompt in prompts:
        agent = "shell" if prompt.startswith("echo") else "demo"
        run = await edge.start(prompt, agent, threadId=thread_id)
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"
        # The next prompt would be queued while the runtime is still noting the end of this one.
        await (await edge.machine.runtime.thread(thread_id)).wait_idle()
        runs.append(run["runId"])
    edge.machine.mint.clock = lambda: NOW
    return runs


async def add_thread(edge: RunningEdge, title: str) -> str:
    edge.machine.mint.clock = lambda: OLD
    project = await edge.post("/v1/projects", {"name": "Shed"}, status=201)
    body = {"title": title, "projectId": project["projectId"]}
    return (await edge.post("/v1/threads", body, status=201))["threadId"]


async def remove(edge: RunningEdge, **rules: Any) -> dict[str, Any]:
    return await edge.post("/v1/retention/runs", rules or RULES)


async def read_facts(edge: RunningEdge, **params: Any) -> list[dict[str, Any]]:
    """Facts as they are served now, with their seqs."""
    found: list[dict[str, Any]] = []
    while True:
        page = await edge.get("/v1/facts", limit=1000, **params)
        found += page["items"]
        if "next" not in page:
            return found
        params["cursor"] = page["next"]


async def read_state(edge: RunningEdge, thread_id: str) -> Any:
    return (await edge.get(f"/v1/threads/{thread_id}/projection"))["state"]


def project(facts: list[dict[str, Any]], thread_id: str) -> Any:
    """What facts come to, without an Edge."""
    projection = Projection(thread_id)
    for row in facts:
        projection.replay(decode_fact(json.dumps(row["fact"]).encode()))
    return json.loads(projection.snapshot())


async def ask_all_faces(edge: RunningEdge, thread_id: str, cursor: str) -> set[str]:
    """What is answered to somebody who comes with a cursor, by every way there is."""
    codes: set[str] = set()
    url = f"{edge.socket_url}/v1/events?cursor={cursor}"
    async with websockets.connect(
        url, additional_headers={"authorization": f"Bearer {TOKEN}"}
    ) as ws:
        codes.add(json.loads(await ws.recv())["payload"]["code"])
    streamed = await edge.http.get(
        "/v1/facts", params={"cursor": cursor}, headers={"accept": "text/event-stream"}
    )
    codes.update(line for line in ("cursor_expired", "cursor_invalid") if line in streamed.text)
    fork = {"at": cursor}
    for answer in (
        await edge.http.get("/v1/events", params={"cursor": cursor}),
        await edge.http.get("/v1/facts", params={"cursor": cursor, "threadId": thread_id}),
        await edge.http.get(f"/v1/threads/{thread_id}/projection", params={"at": cursor}),
        await edge.http.get(f"/v1/threads/{thread_id}/read-model", params={"at": cursor}),
        await edge.http.post(f"/v1/threads/{thread_id}:fork", json=fork),
    ):
        codes.add(answer.json().get("code", answer.text[:200]))
    return codes


async def read_lists(edge: RunningEdge) -> dict[str, Any]:
    paths = ("threads", "runs", "approvals", "artifacts", "tasks", "evidence", "projects")
    return {path: (await edge.get(f"/v1/{path}"))["items"] for path in paths}


@pytest.mark.requirement("edge.retention.honest")
async def test_what_is_old_goes_and_everything_says_so(  # noqa: PLR0915 - one story
    configuration: Configuration, tmp_path: Path
):
    async with running_edge(tmp_path, configuration=configuration) as edge:
        thread_id = await add_thread(edge, "Garden")
        gone = await talk(edge, thread_id, OLD, "help", "approve")
        other = await add_thread(edge, "Shed")
        await talk(edge, other, NEW, "help")
        [kept] = await talk(edge, thread_id, NEW, "echo still here")
        pack = await edge.post("/v1/evidence", {"threadId": thread_id}, status=201)
        before, whole = await read_lists(edge), await read_facts(edge)
        untouched = await read_state(edge, other)
        # States that were asked for before are kept, and must not be shown afterwards.
        assert await read_state(edge, thread_id) != untouched
        rehearsed = await remove(edge, **RULES, dryRun=True)
        assert (await read_facts(edge), await read_lists(edge)) == (whole, before)

        done = await remove(edge)
        assert done == {key: value for key, value in rehearsed.items() if key != "dryRun"}
        left = await read_facts(edge)
        cut = next(row["seq"] for row in whole if row["fact"].get("runId") == kept) - 1
        lost = [row for row in whole if row["fact"].get("threadId") == thread_id]
        lost = [row for row in lost if row["seq"] <= cut]
        assert left[:-2] == [row for row in whole if row not in lost]
        assert (done["facts"], done["runs"], done["threads"]) == (len(lost), 2, 1)
        announced, ended = (row["fact"] for row in left[-2:])
        assert (announced["eventClass"], announced["payload"]["aboutThread"]) == (
            "history.removed",
            thread_id,
        )
        assert (ended["eventClass"], ended["payload"]["run"]) == ("retention.completed", done)

        after = await read_lists(edge)
        removal = {
            "at": NOW,
            "before": OLD,
            "facts": len(lost),
            "runs": 2,
            "by": {"name": edge.machine.user, "via": "api"},
        }
        rows = {row["threadId"]: row for row in before["threads"]}
        rows[thread_id]["historyRemoved"] = removal
        assert {row["threadId"]: row for row in after["threads"]} == rows
        assert after["runs"] == [row for row in before["runs"] if row["runId"] not in gone]
        approvals = [row for row in before["approvals"] if row["runId"] not in gone]
        assert after["approvals"] == approvals
        assert (after["evidence"], after["projects"]) == (before["evidence"], before["projects"])
        own = await read_facts(edge, threadId=thread_id)
        assert await read_state(edge, thread_id) == project(own, thread_id)
        assert await read_state(edge, other) == untouched
        check = await edge.get(f"/v1/evidence/{pack['evidenceId']}/verification")
        assert (check["report"]["ok"], check["journal"]["state"]) == (True, "compacted")

        early, late = lost[3]["cursor"], left[-3]["cursor"]
        assert await ask_all_faces(edge, thread_id, early) == {"cursor_expired"}
        resumed = await read_facts(edge, cursor=late)
        assert resumed == left[-2:]
        moment = await edge.get(f"/v1/threads/{other}/projection", at=str(left[-3]["cursor"]))
        assert moment["state"] == untouched
        assert (await edge.http.get(f"/v1/runs/{gone[0]}")).json()["code"] == "unknown_run"
        metrics = (await edge.http.get("/v1/metrics")).text
        assert f"factwire_edge_retention_facts_total {float(len(lost))}" in metrics
        assert (await edge.machine.journal.verify()).ok

    async with running_edge(tmp_path, configuration=configuration) as edge:
        assert await read_lists(edge) == after
        assert (await edge.get("/v1/retention"))["last"] == done
        assert await read_state(edge, thread_id) == project(own, thread_id)
        (tmp_path / "nothing").mkdir()
        fresh, _ = await read_records(edge.machine.journal, tmp_path / "nothing")
        assert lists_of(fresh) == lists_of(edge.machine.records)
        await talk(edge, thread_id, NOW, "help")
        own = await read_facts(edge, threadId=thread_id)
        assert await read_state(edge, thread_id) == project(own, thread_id)


def lists_of(records: Records) -> dict[str, Any]:
    tables = {
        "threads": records.threads,
        "runs": records.runs,
        "approvals": records.approvals,
        "artifacts": records.artifacts,
        "tasks": records.tasks,
        "evidence": records.evidence,
        "places": records.places,
        "removals": records.removals,
        "retention": records.retention_runs,
    }
    return {
        name: {key: row for (_, key), row in table.newest_by_key()}
        for name, table in tables.items()
    }


@pytest.mark.requirement("edge.retention.compact")
async def test_compaction_changes_no_state_and_no_cursor(
    configuration: Configuration, tmp_path: Path
):
    async with running_edge(tmp_path, configuration=configuration) as edge:
        threads = [await add_thread(edge, title) for title in ("One", "Two")]
        for thread_id in threads:
            await talk(edge, thread_id, NEW, "help", "echo words")
        states = [await read_state(edge, thread_id) for thread_id in threads]
        whole = await read_facts(edge)
        async with connect(edge, whole[0]["cursor"]) as socket:
            rehearsed = await remove(edge, compact=True, dryRun=True)
            done = await remove(edge, compact=True)
            assert (done["deltas"], done.get("facts", 0)) == (rehearsed["deltas"], 0)
            assert done["deltas"] > 0
            left = await read_facts(edge)
            kept = {row["seq"] for row in left}
            assert left[:-1] == [row for row in whole if row["seq"] in kept]
            assert len(whole) - len(left) + 1 == done["deltas"]
            followed = [json.loads(await socket.recv())["seq"] for _ in range(len(left) - 1)]
        # What the reader saw before the removal may include what was removed, but in order.
        assert followed == sorted(set(followed))
        for row in whole[:: len(whole) // 20]:
            expected = [each for each in left if each["seq"] > row["seq"]]
            assert await read_facts(edge, cursor=row["cursor"]) == expected
        for thread_id, state in zip(threads, states, strict=True):
            own = await read_facts(edge, threadId=thread_id)
            replayed, served = project(own, thread_id), await read_state(edge, thread_id)
            for counted in (replayed, served, state):
                assert counted.pop("hydration")["status"] == "live"
            assert replayed == served == state
        assert (await edge.machine.journal.verify()).ok


def connect(edge: RunningEdge, cursor: str) -> Any:
    headers = {"authorization": f"Bearer {TOKEN}"}
    url = f"{edge.socket_url}/v1/facts?cursor={cursor}"
    return websockets.connect(url, additional_headers=headers)


class Cut(Exception):
    """What ends a process in the middle of a removal."""


@pytest.mark.requirement("edge.retention.crash")
@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_removal_that_was_cut_short_is_finished_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
):
    """Once before the facts are removed, once after it, with lists that still show them."""
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        gone = await talk(edge, thread_id, OLD, "help")
        kept = await talk(edge, thread_id, NEW, "help")
    # The lists that are saved now are those that a killed Edge leaves behind.
    saved = (tmp_path / "data" / RECORDS_FILE).read_bytes()
    async with running_edge(tmp_path) as edge:
        edge.machine.mint.clock = lambda: NOW
        retain = edge.machine.journal.retain

        async def stop(policy: RetentionPolicy) -> None:
            if is_removed:
                await retain(policy)
            raise Cut

        monkeypatch.setattr(edge.machine.journal, "retain", stop)
        answer = await edge.http.post("/v1/retention/runs", json=RULES)
        assert answer.status_code == 500
        announced = await edge.get(f"/v1/threads/{thread_id}")
        assert (await edge.get("/v1/retention"))["pendingThreads"] == 1
    (tmp_path / "data" / RECORDS_FILE).write_bytes(saved)
    async with running_edge(tmp_path) as edge:
        assert (await edge.get("/v1/retention")).get("pendingThreads", 0) == 0
        runs = [row["runId"] for row in (await edge.get("/v1/runs"))["items"]]
        assert (runs, gone[0] in str(await read_facts(edge, threadId=thread_id))) == (kept, False)
        assert await edge.get(f"/v1/threads/{thread_id}") == announced
        own = await read_facts(edge, threadId=thread_id)
        assert await read_state(edge, thread_id) == project(own, thread_id)
        assert (await edge.machine.journal.verify()).ok


@pytest.mark.requirement("edge.retention.crash")
async def test_lists_that_were_saved_amid_a_removal_show_nothing_of_what_it_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A killed Edge leaves the lists that it saved last: here after the removal was announced,
    while the removal itself came to its end.
    """
    saved = tmp_path / "saved"
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        gone = await talk(edge, thread_id, OLD, "help")
        kept = await talk(edge, thread_id, NEW, "help")
        retain = edge.machine.journal.retain

        async def save_and_retain(policy: RetentionPolicy) -> RemovalResult:
            edge.machine.record_store._save()
            saved.mkdir()
            for path in (tmp_path / "data").glob(f"{RECORDS_FILE}*"):
                shutil.copy(path, saved)
            return await retain(policy)

        monkeypatch.setattr(edge.machine.journal, "retain", save_and_retain)
        assert (await remove(edge))["runs"] == len(gone)
        lists = await read_lists(edge)
    for path in (tmp_path / "data").glob(f"{RECORDS_FILE}*"):
        path.unlink()
    for path in saved.iterdir():
        shutil.copy(path, tmp_path / "data")
    async with running_edge(tmp_path) as edge:
        assert [row["runId"] for row in (await edge.get("/v1/runs"))["items"]] == kept
        assert await read_lists(edge) == lists
        assert (await edge.get("/v1/retention")).get("pendingThreads", 0) == 0


@pytest.mark.fault
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("edge.retention.crash")
async def test_an_edge_killed_while_it_removes_has_removed_all_of_a_thread_or_nothing(
    configuration: Configuration, tmp_path: Path
):
    """Killed at another moment in each round, while agents of other threads are at work. The first
    removal comes to its end and shows how long one takes.
    """
    everything = {"keepDays": 1e-9}
    edge = EdgeProcess.start(tmp_path, journal=configuration.journal)
    rounds, duration = count_trials(full=20, share=4), 0.0
    async with new_client() as http:
        client = Client(http, edge)
        for round_number in range(rounds):
            runs = [await client.post("/v1/runs", HELP) for _ in range(3)]
            for run in runs:
                assert (await client.run_until(run["runId"]))["status"] == "finished"
            whole = {run["threadId"]: await count_facts(client, run["threadId"]) for run in runs}
            await client.post("/v1/runs", HELP)
            began = time.monotonic()
            removing = asyncio.create_task(client.post("/v1/retention/runs", everything))
            patience = duration * round_number / rounds
            await asyncio.wait({removing}, timeout=patience if round_number else WAIT_SECONDS)
            duration = duration or time.monotonic() - began
            edge.kill()
            await edge.wait_for_end()
            await asyncio.gather(removing, return_exceptions=True)
            edge = EdgeProcess.start(tmp_path, journal=configuration.journal)
            client.turn_to(edge)
            assert (await client.get("/v1/retention")).get("pendingThreads", 0) == 0
            listed = {row["runId"] for row in (await client.get("/v1/runs"))["items"]}
            for run in runs:
                thread_id = run["threadId"]
                row = await client.get(f"/v1/threads/{thread_id}")
                left = 1 if "historyRemoved" in row else whole[thread_id]
                assert await count_facts(client, thread_id) == left
                assert (run["runId"] in listed) is ("historyRemoved" not in row)
                assert row["title"] == "help"
    edge.terminate()
    assert await edge.wait_for_end() == 0
    async with open_journal(configuration.journal) as journal:
        assert (await journal.verify()).ok


HELP = {"agentId": "demo", "prompt": "help"}


async def count_facts(client: Client, thread_id: str) -> int:
    page = await client.get("/v1/facts", threadId=thread_id, limit=1000)
    return len(page["items"])


@pytest.mark.requirement("edge.retention.keeps")
async def test_what_is_open_or_needed_stays(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        waiting = await add_thread(edge, "Waiting")
        await talk(edge, waiting, OLD, "help")
        edge.machine.mint.clock = lambda: OLD
        open_run = await edge.start("approve", threadId=waiting)
        await edge.wait_for_approval(open_run["runId"])
        ruled = await add_thread(edge, "Ruled")
        edge.machine.mint.clock = lambda: OLD
        granting = await edge.start("echo ruled", "shell", threadId=ruled)
        lasting = await edge.wait_for_approval(granting["runId"])
        await edge.decide(lasting, "allow", always="thread")
        await edge.run_until(granting["runId"])
        await talk(edge, ruled, OLD, "help")
        before = await read_facts(edge, threadId=waiting)

        done = await remove(edge)
        assert done["heldBy"] == [f"run {open_run['runId']} in thread {waiting}"]
        assert await read_facts(edge, threadId=waiting) == before
        left = [row["fact"]["eventClass"] for row in await read_facts(edge, threadId=ruled)]
        assert left == ["policy.changed", "snapshot.updated"]
        again = await edge.start("echo ruled", "shell", threadId=ruled)
        assert (await edge.run_until(again["runId"]))["status"] == "finished"
        assert (await edge.allow_all(open_run["runId"]))["status"] == "finished"
    async with running_edge(tmp_path) as edge:
        again = await edge.start("echo ruled", "shell", threadId=ruled)
        assert (await edge.run_until(again["runId"]))["status"] == "finished"
        assert "heldBy" not in await remove(edge)


@pytest.mark.requirement("edge.retention.keeps")
async def test_a_preview_and_a_worktree_hold_their_threads_until_they_are_gone(tmp_path: Path):
    async with running_edge(tmp_path, configuration=with_repository(tmp_path)) as edge:
        (tmp_path / "workspace" / "dist").mkdir()
        (tmp_path / "workspace" / "dist" / "index.html").write_text("shown")
        shown, worked = [await add_thread(edge, title) for title in ("Shown", "Worked")]
        [previewed] = await talk(edge, shown, OLD, "help")
        body = {"runId": previewed, "path": "dist"}
        preview = await edge.post("/v1/previews", body, status=201)
        edge.machine.mint.clock = lambda: OLD
        run = await run_change(edge, worktree=True, threadId=worked)
        edge.machine.mint.clock = lambda: NOW
        before = await read_facts(edge, threadId=shown), await read_facts(edge, threadId=worked)

        held = await remove(edge)
        assert sorted(held["heldBy"]) == sorted(
            [f"a preview in thread {shown}", f"a worktree in thread {worked}"]
        )
        after = await read_facts(edge, threadId=shown), await read_facts(edge, threadId=worked)
        assert after == before
        await edge.post(f"/v1/previews/{preview['previewId']}:stop")
        git(tmp_path / "workspace", "worktree", "remove", "--force", run["workDir"])
        done = await remove(edge)
        assert ("heldBy" in done, done["runs"]) == (False, 2)
        for gone in (previewed, run["runId"]):
            assert (await edge.http.get(f"/v1/runs/{gone}")).status_code == 404


@pytest.mark.requirement("edge.retention.keeps")
async def test_as_many_facts_are_kept_as_a_rule_says_and_the_newest_of_them(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        runs = [*await talk(edge, thread_id, OLD, *["help"] * 3)]
        runs += await talk(edge, thread_id, NEW, "help")
        whole = await read_facts(edge)
        ends = [
            place
            for place, row in enumerate(whole)
            if row["fact"]["eventClass"] == "turn.completed"
        ]
        begun = [
            row["fact"]["sequence"]
            for row in whole
            if row["fact"]["eventClass"] == "turn.submitted"
        ]
        sizes = [
            whole[end]["fact"]["sequence"] - first + 1
            for end, first in zip(ends, begun, strict=True)
        ]
        keep = len(whole) - sum(sizes[:2])
        done = await remove(edge, keepFacts=keep)
        assert "heldBy" not in done
        found = [(await edge.http.get(f"/v1/runs/{run}")).status_code for run in runs]
        assert found == [404, 404, 200, 200]
        own = await read_facts(edge, threadId=thread_id)
        kept = [row["seq"] for row in own if row["seq"] <= whole[-1]["seq"]]
        wanted = [row["seq"] for row in whole if row["fact"].get("sequence", 0) >= begun[2]]
        assert kept == wanted
        assert await read_state(edge, thread_id) == project(own, thread_id)


@pytest.mark.requirement("edge.retention.keeps")
async def test_one_removal_runs_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        await talk(edge, thread_id, OLD, "help")
        begun, may_go = asyncio.Event(), asyncio.Event()
        journal = edge.machine.journal
        stats = journal.stats

        async def wait_with_stats() -> Any:
            begun.set()
            await may_go.wait()
            return await stats()

        monkeypatch.setattr(journal, "stats", wait_with_stats)
        first = asyncio.create_task(remove(edge))
        await begun.wait()
        second = await edge.http.post("/v1/retention/runs", json=RULES)
        assert (second.status_code, second.json()["code"]) == (409, "retention_running")
        assert (await edge.get("/v1/retention"))["isRunning"] is True
        may_go.set()
        assert (await first)["runs"] == 1
        assert (await edge.get("/v1/retention")).get("isRunning", False) is False


@pytest.mark.requirement("edge.retention.keeps")
async def test_a_reader_holds_a_removal_until_it_has_read(
    configuration: Configuration, tmp_path: Path
):
    async with running_edge(tmp_path, configuration=configuration) as edge:
        thread_id = await add_thread(edge, "Garden")
        await talk(edge, thread_id, OLD, "help")
        await talk(edge, thread_id, NEW, "help")
        whole = await read_facts(edge)
        reader = cast("AsyncGenerator[FactBatch]", edge.machine.journal.read(whole[4]["cursor"]))
        async with aclosing(reader) as batches:
            first = await anext(batches)
            held = await remove(edge)
            seen = [*first.seqs, *[seq async for batch in batches for seq in batch.seqs]]
        assert [seq for seq in seen if seq <= whole[-1]["seq"]] == [r["seq"] for r in whole[5:]]
        done = await remove(edge)
        assert held.get("facts", 0) + done.get("facts", 0) > 0
        assert (await edge.get("/v1/retention")).get("pendingThreads", 0) == 0
        own = await read_facts(edge, threadId=thread_id)
        assert own[0]["fact"]["eventClass"] == "turn.submitted"
        assert await read_state(edge, thread_id) == project(own, thread_id)


@pytest.mark.requirement("edge.retention.keeps")
async def test_blobs_go_with_the_last_fact_that_refers_to_them(tmp_path: Path):
    configuration = configuration_in(tmp_path, limits=Limits(output_bytes=1_000))
    async with running_edge(tmp_path, configuration=configuration) as edge:
        threads = [await add_thread(edge, title) for title in ("Old", "New")]
        alone, shared = ("echo; seq 1 40000", "echo; seq 2 40000")
        await talk(edge, threads[0], OLD, alone, shared)
        refs = [find_ref(row) for row in await read_facts(edge, threadId=threads[0])]
        await talk(edge, threads[1], NEW, shared)
        blobs = [path for path in (tmp_path / "journal.db.blobs").rglob("*") if is_blob(path)]
        for path in blobs:
            os.utime(path, (0, 0))
        done = await remove(edge)
        left = [path for path in blobs if path.exists()]
        assert (done["blobs"], len(left)) == (len(blobs) - len(left), len(left))
        still = {find_ref(row) for row in await read_facts(edge)} - {None}
        for ref in {*refs} - {None}:
            answer = await edge.http.get(f"/v1/blobs/{ref}")
            assert (ref, answer.status_code) == (ref, 200 if ref in still else 404)
        assert done["blobs"] > 0 < len(still)


def find_ref(row: dict[str, Any]) -> str | None:
    found = re.search(r"output:sha256:[0-9a-f]{64}", json.dumps(row))
    return found and found[0]


def is_blob(path: Path) -> bool:
    return path.is_file() and re.fullmatch("[0-9a-f]{40,64}", path.name) is not None


async def test_settings_are_carried_out_by_themselves(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        [gone] = await talk(edge, thread_id, "2001-01-01T00:00:00.000Z", "help")
        state = await edge.get("/v1/retention")
        assert state == {}
        refused = await edge.http.post("/v1/retention/runs")
        assert (refused.status_code, refused.json()["code"]) == (400, "retention_not_set")
    settings = RetentionSettings(keep_days=30, compact=True)
    configuration = configuration_in(tmp_path, retention=settings)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        async with asyncio.timeout(WAIT_SECONDS):
            while "last" not in (state := await edge.get("/v1/retention")):
                await edge.machine.feed.wait_for(edge.machine.feed.cursor.seq + 1)
        assert state["last"]["by"] == {"name": "Factwire", "via": "retention"}
        assert (state["rules"], state["everySeconds"]) == ({"keepDays": 30, "compact": True}, 3600)
        assert state["last"]["trigger"] == "schedule"
        assert (await edge.http.get(f"/v1/runs/{gone}")).status_code == 404


async def test_a_viewer_of_a_shortened_thread_comes_again_for_what_is_left(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        thread_id = await add_thread(edge, "Garden")
        await talk(edge, thread_id, OLD, "help")
        await talk(edge, thread_id, NEW, "help")
        headers = {"authorization": f"Bearer {TOKEN}"}
        url = f"{edge.socket_url}/v1/threads/{thread_id}/projection/stream"
        async with websockets.connect(url, additional_headers=headers) as socket:
            shown = json.loads(await socket.recv())
            await remove(edge)
            async with asyncio.timeout(WAIT_SECONDS):
                await socket.wait_closed()
            assert socket.close_code == 1012
        again = f"{url}?cursor={shown['cursor']}"
        async with websockets.connect(again, additional_headers=headers) as socket:
            left = json.loads(await socket.recv())
        assert (left["type"], left["state"]) == (
            "projection.snapshot",
            await read_state(edge, thread_id),
        )
        assert left["state"] != shown["state"]


@pytest.mark.requirement("edge.retention.outside-turns")
@pytest.mark.parametrize("above", [{}, {"parentTaskId": "plan"}, {"workerId": "w1"}])
async def test_turns_of_a_thread_that_all_name_a_worker_or_a_task_above_go_when_they_are_old(
    tmp_path: Path, above: dict[str, str]
):
    async with running_edge(tmp_path) as edge:
        edge.machine.mint.clock = lambda: NOW
        facts: list[dict[str, Any]] = [
            {
                "type": name,
                "id": f"{turn}-{name}",
                "runtimeId": "mine",
                "sessionId": "s",
                "threadId": "outside",
                "turnId": turn,
                "createdAt": OLD,
                "payload": {},
                **above,
            }
            for turn in ("one", "two")
            for name in ("turn.submitted", "turn.started", "turn.completed")
        ]
        await edge.post("/v1/facts", {"facts": facts})
        assert len(await read_facts(edge, threadId="outside")) >= len(facts)
        done = await remove(edge)
        left = [row["fact"]["turnId"] for row in await read_facts(edge, threadId="outside")]
        assert (done["threads"], done["runs"], done["facts"], left) == (1, 1, 5, ["two"])
