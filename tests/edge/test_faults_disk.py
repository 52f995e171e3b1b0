"""A full or broken disk under an Edge: told clearly, reads go on, and no restart is needed."""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw
import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from factwire.edge import startup
from factwire.edge.startup import PersistenceFailures
from factwire.journal.blobs import BlobUnwritable, FileBlobs
from factwire.journal.sqlite import SqliteJournal
from factwire.runtime import LiveThread
from factwire.runtime.configuration import PolicySettings, SandboxSettings
from tests.edge.edge_process import HEADERS
from tests.edge.edges import WAIT_SECONDS, RunningEdge, configuration_in, running_edge
from tests.edge.fault_load import batch_of
from tests.edge.streaming import until
from tests.journal.disks import FaultyDisk
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = [pytest.mark.fault, pytest.mark.asyncio]

FAULTS: list[dict[str, type[apsw.Error]]] = [
    {"fault": apsw.FullError},
    {"fault": apsw.IOError},
    {"sync_fault": apsw.IOError},
    {"fault": apsw.ReadOnlyError},
]
CHATTER = "echo $$ > pid\nwhile :; do echo chatter; sleep 0.01; done\n"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Generator[FaultyDisk]:
    """The disk that journals of Edges lie on."""
    faulty = FaultyDisk()

    class Journal(SqliteJournal):
        async def __aexit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            # SQLite closes in spite of a full disk; a fault raised in Python it hands on.
            faulty.fault = faulty.sync_fault = None
            await super().__aexit__(kind, error, trace)

    def open_journal(url: str) -> SqliteJournal:
        return Journal(url.removeprefix("sqlite:"), vfs=faulty.name)

    monkeypatch.setattr(startup, "open_journal", open_journal)
    yield faulty
    faulty.unregister()


@asynccontextmanager
async def edge_in(folder: Path) -> AsyncGenerator[RunningEdge]:
    configuration = configuration_in(
        folder,
        policy=PolicySettings(allow=("Bash(sh chatter.sh)", "Bash(echo again)")),
        sandbox=SandboxSettings(mode="off"),
    )
    (folder / "workspace" / "chatter.sh").write_text(CHATTER)
    async with running_edge(folder, configuration=configuration) as edge:
        yield edge


async def start_chatter(edge: RunningEdge, thread_id: str | None = None) -> dict[str, Any]:
    """A run that never stops telling something."""
    more = {} if thread_id is None else {"threadId": thread_id}
    run = await edge.start("sh chatter.sh", "shell", **more)
    await until_told(edge, run["runId"], "process.output")
    return run


async def until_told(edge: RunningEdge, run_id: str, *classes: str) -> dict[str, Any]:
    """The first fact of one of these classes about a run."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            seen = edge.machine.feed.cursor.seq
            page = await edge.get("/v1/facts", runId=run_id, classes=",".join(classes), limit=1)
            if page["items"]:
                return page["items"][0]["fact"]
            await edge.machine.feed.wait_for(seen + 1)


def refusal_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["code"], answer.headers.get("retry-after")


async def until_failed(edge: RunningEdge, thread_id: str) -> None:
    """Wait until a thread's runtime knows that its facts are not taken."""
    thread = await edge.machine.runtime.thread(thread_id)
    await until(lambda: thread.failure is not None)


async def next_fact(stream: ClientConnection) -> str:
    async with asyncio.timeout(WAIT_SECONDS):
        while (frame := json.loads(await stream.recv())).get("type") == "checkpoint":
            pass
    return frame["fact"]["id"]


async def check_refusals(edge: RunningEdge, thread_id: str, number: int) -> None:
    """Whoever wants to write is told; whoever reads notices nothing."""
    unwritable = (503, "journal_unwritable", "1")
    batch = {"facts": batch_of(0, number)}
    assert refusal_of(await edge.http.post("/v1/facts", json=batch)) == unwritable
    change = {"title": f"Title {number}"}
    assert refusal_of(await edge.http.patch(f"/v1/threads/{thread_id}", json=change)) == unwritable
    run = {"agentId": "demo", "prompt": "help"}
    assert refusal_of(await edge.http.post("/v1/runs", json=run)) == unwritable
    for path in ("/v1/facts", "/v1/events", "/v1/threads", f"/v1/threads/{thread_id}/projection"):
        await edge.get(path)


@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("edge.faults.disk")
async def test_a_disk_that_refuses_is_told_and_forgiven_without_a_restart(
    disk: FaultyDisk, tmp_path: Path
):
    async with edge_in(tmp_path) as edge:
        other = await edge.post("/v1/threads", {"title": "Other"}, status=201)
        url = f"{edge.socket_url}/v1/facts?since=now&threadId=lane-0"
        async with connect(url, additional_headers=HEADERS) as stream:
            for number in range(count_trials(full=100, share=2 * len(FAULTS))):
                run = await start_chatter(edge)
                for name, fault in FAULTS[number % len(FAULTS)].items():
                    setattr(disk, name, fault)
                await until_failed(edge, run["threadId"])
                await check_refusals(edge, other["threadId"], number)
                disk.fault = disk.sync_fault = None
                batch = {"facts": batch_of(0, number)}
                assert (await edge.post("/v1/facts", batch))["accepted"] == 3
                assert [await next_fact(stream) for _ in range(3)] == [
                    fact["id"] for fact in batch["facts"]
                ]
                await check_run(edge, run)
                await edge.http.patch(f"/v1/threads/{other['threadId']}", json={"title": "x"})
                await edge.get("/v1/health")


async def check_run(edge: RunningEdge, run: dict[str, Any]) -> None:
    """The run whose facts were refused is closed and told of, and its thread takes another."""
    fact = await until_told(edge, run["runId"], "run.persistence_error")
    assert (fact["runId"], fact["threadId"]) == (run["runId"], run["threadId"])
    error = fact["payload"]["error"]
    assert error.startswith("journal_unwritable: ")
    assert error.count("could not be written") == 1
    page = await edge.get("/v1/events", runId=run["runId"], types="run.persistence_error")
    assert page["items"][0]["payload"]["error"] == error
    ended = await edge.run_until(run["runId"])
    assert (ended["status"], ended["error"]["failureCategory"]) == ("failed", "unrecorded")
    again = await edge.start("echo again", "shell", threadId=run["threadId"])
    assert (await edge.run_until(again["runId"]))["status"] == "finished"


async def test_without_the_telling_a_run_would_look_alive_for_ever(
    disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The test above bites: nobody else closes the run or says what became of it."""

    def note(self: PersistenceFailures, thread: LiveThread) -> None:
        del self, thread

    monkeypatch.setattr(PersistenceFailures, "record_failure", note)
    async with edge_in(tmp_path) as edge:
        run = await start_chatter(edge)
        disk.fault = apsw.FullError
        await until_failed(edge, run["threadId"])
        disk.fault = None
        for number in range(20):
            await edge.post("/v1/facts", {"facts": batch_of(0, number)})
        assert (await edge.get(f"/v1/runs/{run['runId']}"))["status"] == "running"
        page = await edge.get("/v1/facts", classes="run.persistence_error")
        assert page["items"] == []


@pytest.mark.requirement("edge.faults.disk")
async def test_content_that_cannot_be_stored_is_refused_with_its_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def full(*_: object, **__: object) -> None:
        raise BlobUnwritable("No space left on device")

    async with running_edge(tmp_path) as edge:
        [fact, *_] = batch_of(0, 0)
        big = {"facts": [fact | {"payload": {"status": "running", "note": "x" * 100_000}}]}
        with monkeypatch.context() as patch:
            patch.setattr(FileBlobs, "put", full)
            refused = await edge.http.post("/v1/facts", json=big)
            assert refusal_of(refused) == (503, "blob_unwritable", "1")
        assert (await edge.get("/v1/facts", threadId="lane-0"))["items"] == []
        assert (await edge.post("/v1/facts", big))["accepted"] == 1


@pytest.mark.requirement("edge.faults.stop")
async def test_a_stop_on_a_full_disk_still_comes_to_its_end(disk: FaultyDisk, tmp_path: Path):
    async with edge_in(tmp_path) as edge:
        run = await start_chatter(edge)
        disk.fault = apsw.FullError
        await until_failed(edge, run["threadId"])
    async with edge_in(tmp_path) as edge:
        ended = await edge.run_until(run["runId"])
        assert (ended["status"], ended["error"]["code"]) == ("failed", "EDGE_RESTARTED")


@pytest.mark.requirement("edge.observing.health.writes")
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_health_is_degraded_from_the_first_refused_write_until_one_is_taken(
    disk: FaultyDisk, tmp_path: Path, fault: dict[str, type[apsw.Error]]
):
    async with edge_in(tmp_path) as edge:
        assert (await edge.get("/v1/health"))["status"] == "ok"
        for name, error in fault.items():
            setattr(disk, name, error)
        refused = await edge.http.post("/v1/threads", json={"title": "x"})
        assert refusal_of(refused) == (503, "journal_unwritable", "1")
        answer = await edge.http.get("/v1/health")
        health = answer.json()
        assert (answer.status_code, health["status"]) == (503, "degraded")
        assert health["code"] == "journal_unwritable"
        assert health["details"]["reason"] == refused.json()["detail"]
        stranger = await edge.http.get("/v1/health", headers={"authorization": ""})
        assert stranger.json() == {name: health[name] for name in ("status", "version", "code")}
        disk.fault = disk.sync_fault = None
        # Nobody writes; the Edge finds out by itself.
        await until(lambda: edge.machine.writes.refusal is None)
        answer = await edge.http.get("/v1/health")
        assert (answer.json()["status"], "code" in answer.json()) == ("ok", False)
        assert "reason" not in answer.json()["details"]
        page = await edge.get("/v1/facts", classes="runtime.warning")
        (warning,) = [each["fact"]["payload"] for each in page["items"]]
        assert warning["code"] == "journal_recovered"
        assert refused.json()["detail"] in warning["message"]
