"""An Edge uploads its journal to a Hub over HTTP, and the Hub says what it has."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from factwire.edge.hub_access import HubAccess, HubTarget, HubUnreachable, UploadUnsupported
from factwire.edge.hub_upload import CHAIN_MEDIA_TYPE, UPLOAD_FILE, HubUpload
from factwire.edge.startup import EdgeSettings
from factwire.journal import ChainPoint, JournalUnavailable
from factwire.journal.sqlite.journal import SqliteJournal
from tests.cli.cli_commands import COMMAND
from tests.edge.edges import TOKEN, RunningEdge, running_edge
from tests.hub.mirrors import HUB_TOKEN, RunningMirror, running_mirror
from tests.hub.test_mirror_store import make_turn, read_lines


def settings_for(target: HubTarget) -> EdgeSettings:
    return EdgeSettings(token=TOKEN, hub=target)


async def ensure_equal(edge: RunningEdge, hub: RunningMirror) -> None:
    """The mirror of an Edge, once it has come so far, is the Edge's journal."""
    journal = edge.machine.journal
    assert isinstance(journal, SqliteJournal)
    await hub.wait_for(edge.machine.edge_id, (await journal.head()).seq)
    async with hub.store.use(edge.machine.edge_id) as mirror:
        assert await read_lines(mirror.journal) == await read_lines(journal)
        original, mirrored = await journal.verify(), await mirror.journal.verify()
        ends = [(each.ok, each.head, each.intact) for each in (original, mirrored)]
        assert ends[0] == ends[1]


@pytest.mark.requirement("mirror.upload")
@pytest.mark.asyncio
async def test_an_edge_goes_on_uploading_after_restarts_of_either_side(tmp_path: Path):
    folder = tmp_path / "edge"
    folder.mkdir()
    async with running_mirror(tmp_path / "hub") as hub:
        target = hub.target
        async with running_edge(folder, settings=settings_for(target)) as edge:
            await edge.allow_all((await edge.start("first"))["runId"])
            await ensure_equal(edge, hub)
    async with running_edge(folder, settings=settings_for(target)) as edge:
        await edge.allow_all((await edge.start("while the Hub is gone"))["runId"])
        async with running_mirror(tmp_path / "hub", hub.port) as back:
            await edge.allow_all((await edge.start("the Hub is back"))["runId"])
            await ensure_equal(edge, back)
            status = (await back.http.get(f"/v1/edges/{edge.machine.edge_id}/mirror")).json()
            assert (status["former"], status["refused"]) == ([], [])
            async with back.store.use(edge.machine.edge_id) as mirror:
                reports = [
                    await verify_journal(path)
                    for path in (folder / "journal.db", mirror.folder / mirror.file)
                ]
            assert reports[0]["ok"]
            assert reports[0] == reports[1]


@pytest.mark.requirement("mirror.upload")
@pytest.mark.asyncio
@pytest.mark.parametrize("epoch", ["../../x", "/tmp/x", "a\0b", "a" * 3_000, "A" * 16, "a" * 15])
async def test_a_mirror_has_no_file_outside_of_its_folder(tmp_path: Path, epoch: str):
    async with running_mirror(tmp_path / "hub") as hub:
        start = {"epoch": epoch, "runtimeId": "rt_1"}
        answer = await hub.http.post("/v1/edges/edge_1/mirror/sessions", json=start)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert await asyncio.to_thread(lambda: list(tmp_path.rglob("*.db"))) == []


async def verify_journal(path: Path) -> dict[str, Any]:
    """What the command line finds."""
    command = [*COMMAND, "journal", "verify", str(path), "--json"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True)
    return msgspec.json.decode(done.stdout)


@pytest.mark.requirement("mirror.upload")
@pytest.mark.asyncio
async def test_content_that_facts_refer_to_is_uploaded_before_them(tmp_path: Path):
    async with (
        running_mirror(tmp_path / "hub") as hub,
        running_edge(tmp_path, settings=settings_for(hub.target)) as edge,
    ):
        content = b"what was attached " * 100_000
        stored = await edge.machine.blobs.put(content, kind="artifact")
        journal = edge.machine.journal
        payload = {"outputRef": stored.ref, "lostRef": f"output:sha256:{'0' * 64}"}
        await journal.append([make_turn(1, 1)[0], _with_payload(payload)])
        await hub.wait_for(edge.machine.edge_id, (await journal.head()).seq)
        path = f"/v1/edges/{edge.machine.edge_id}/blobs"
        answer = await hub.http.get(f"{path}/{stored.ref}")
        assert (answer.status_code, answer.content) == (200, content)
        lost = await hub.http.get(f"{path}/{payload['lostRef']}")
        assert (lost.status_code, lost.json()["code"]) == (404, "unknown_blob")


def _with_payload(payload: dict[str, Any]) -> Any:
    return msgspec.structs.replace(make_turn(2, 1)[0], payload=payload)


@pytest.mark.requirement("mirror.backoff")
@pytest.mark.asyncio
async def test_pauses_grow_up_to_half_a_minute_and_are_shortened_by_chance(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    pauses: list[float] = []
    done = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            done.set()
            await asyncio.Event().wait()

    async with running_edge(tmp_path) as edge:
        chances = iter([1.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.0, 1.0])
        target = HubTarget(url=f"http://127.0.0.1:{port}", token=HUB_TOKEN)
        access = HubAccess(target)
        upload = HubUpload(edge.machine, access, sleep=sleep, chance=lambda: next(chances))
        async with upload.run():
            await asyncio.wait_for(done.wait(), 60)
            assert upload.trouble is not None
    assert pauses == [0.5, 0.5, 2.0, 3.0, 8.0, 16.0, 30.0, 15.0, 30.0]


@pytest.mark.requirement("mirror.upload")
@pytest.mark.asyncio
async def test_an_upload_outlives_a_journal_or_a_disk_that_fails_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    faults = iter([JournalUnavailable("gone"), OSError(28, "No space left"), KeyError("odd")])
    read_chain = SqliteJournal.read_chain

    async def fail_at_first(journal: SqliteJournal, *args: Any) -> Any:
        for fault in faults:
            raise fault
        return await read_chain(journal, *args)

    monkeypatch.setattr(SqliteJournal, "read_chain", fail_at_first)
    async with (
        running_mirror(tmp_path / "hub") as hub,
        running_edge(tmp_path, settings=settings_for(hub.target)) as edge,
    ):
        await ensure_equal(edge, hub)
    assert list(faults) == []


@pytest.mark.requirement("mirror.upload")
@pytest.mark.asyncio
async def test_an_answer_that_is_none_of_a_hub_counts_as_no_answer():
    token = {"accessToken": "one", "expiresIn": 900}
    pages = [
        b"<html>Maintenance</html>",
        b"{}",
        b'{"accessToken":"one"}',
        b'{"accessToken":"\xff"}',
    ]
    answers = iter([*pages, msgspec.json.encode(token)])
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=next(answers)))
    access = HubAccess(HubTarget(url="http://127.0.0.1", token=HUB_TOKEN))
    async with httpx.AsyncClient(base_url=access.target.url, transport=transport) as http:
        for _ in pages:
            with pytest.raises(HubUnreachable):
                await access.token(http)
        assert await access.token(http) == "one"


@pytest.mark.requirement("mirror.keeps")
@pytest.mark.asyncio
async def test_lists_follow_a_mirror_that_begins_again(tmp_path: Path):
    async with (
        running_mirror(tmp_path / "hub") as hub,
        running_edge(tmp_path, settings=settings_for(hub.target)) as edge,
    ):
        await edge.allow_all((await edge.start("one"))["runId"])
        await ensure_equal(edge, hub)
        edge_id, epoch = edge.machine.edge_id, (await edge.machine.journal.head()).epoch
        path = f"/v1/edges/{edge_id}/threads"
        before = (await hub.http.get(path)).json()
        start = {"epoch": epoch, "runtimeId": "factwire", "restart": True}
        begun = (await hub.http.post(f"/v1/edges/{edge_id}/mirror/sessions", json=start)).json()
        assert (begun["session"], begun["ackedSeq"]) == (2, 0)
        assert (await hub.http.get(path)).json()["items"] == []
        await edge.allow_all((await edge.start("two"))["runId"])
        await ensure_equal(edge, hub)
        after = await edge.get("/v1/threads")
        assert (await hub.http.get(path)).json() == after
        assert len(after["items"]) == len(before["items"]) + 1
        status = (await hub.http.get(f"/v1/edges/{edge_id}/mirror")).json()
        assert len(status["former"]) == 1


@pytest.mark.requirement("mirror.hold")
@pytest.mark.asyncio
async def test_retention_waits_for_the_hub_and_the_mirror_keeps_what_then_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    target = HubTarget(url=f"http://127.0.0.1:{port}", token=HUB_TOKEN)
    async with running_edge(tmp_path, settings=settings_for(target)) as edge:
        for prompt in ("one", "two"):
            await edge.allow_all((await edge.start(prompt))["runId"])
        journal = edge.machine.journal
        assert isinstance(journal, SqliteJournal)
        followers = (await journal.stats()).followers
        assert [each.position for each in followers if "hub-upload" in each.name] == [0]
        written = await read_lines(journal)
        waiting = await edge.post("/v1/retention/runs", {"keepFacts": 1, "compact": True})
        assert waiting.get("deltas", 0) == 0
        assert any("hub-upload" in name for name in waiting["heldBy"])
        assert (await read_lines(journal)).items() >= written.items()
        async with running_mirror(tmp_path / "hub", port) as hub:
            await hub.wait_for(edge.machine.edge_id, (await journal.head()).seq)
            written = await read_lines(journal)
            done = await edge.post("/v1/retention/runs", {"keepFacts": 1, "compact": True})
            assert done.get("facts", 0) + done.get("deltas", 0) > 0
            await hub.wait_for(edge.machine.edge_id, (await journal.head()).seq)
            async with hub.store.use(edge.machine.edge_id) as mirror:
                held = await read_lines(mirror.journal)
                assert held.items() >= written.items()
                original, mirrored = await journal.verify(), await mirror.journal.verify()
                assert (mirrored.ok, mirrored.head) == (True, original.head)
                assert mirrored.facts > original.facts
        monkeypatch.setattr("factwire.edge.hub_upload.UPLOAD_HOLD_FACTS", 0)
        await edge.allow_all((await edge.start("three"))["runId"])
        async with asyncio.timeout(60):
            while True:
                free = await edge.post("/v1/retention/runs", {"keepFacts": 1, "compact": True})
                if free.get("facts", 0) + free.get("deltas", 0) > 0:
                    break


@pytest.mark.requirement("mirror.free")
@pytest.mark.asyncio
async def test_an_edge_without_a_hub_pays_nothing_for_one(tmp_path: Path):
    code = "import sys, factwire.edge.startup; sys.exit('httpx' in sys.modules)"
    assert (await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code])).returncode == 0
    async with running_edge(tmp_path) as edge:
        await edge.allow_all((await edge.start("alone"))["runId"])
        followers = (await edge.machine.journal.stats()).followers
        assert [each.name for each in followers if "hub" in each.name] == []
        assert [task for task in asyncio.all_tasks() if "hub" in task.get_name()] == []
        assert not (edge.machine.data / UPLOAD_FILE).exists()


@pytest.mark.asyncio
async def test_an_edge_on_another_journal_says_that_it_cannot_upload(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        other = msgspec.structs.replace(edge.machine, journal=object())
        with pytest.raises(UploadUnsupported):
            HubUpload(other, HubAccess(HubTarget(url="http://127.0.0.1:1", token=HUB_TOKEN)))


@pytest.mark.requirement("mirror.refusals")
@pytest.mark.asyncio
async def test_each_upload_that_is_refused_has_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.hub.mirror.mirror_app.UPLOAD_BYTES_MOST", 1_000_000)
    async with (
        running_mirror(tmp_path / "hub") as hub,
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        SqliteJournal(str(tmp_path / "b.db")) as other,
    ):
        for number in range(4):
            await journal.append(make_turn(number, 100))
            await other.append(make_turn(number + 10, 100))
        base, epoch = "/v1/edges/edge_1/mirror", (await journal.head()).epoch
        start = {"epoch": epoch, "runtimeId": "r"}
        begun = (await hub.http.post(f"{base}/sessions", json=start)).json()
        assert begun["session"] == 1
        point = ChainPoint(0, b"")
        batch = await journal.read_chain(point, size=1_000_000)
        foreign = await other.read_chain(point, size=1_000_000)
        later = msgspec.structs.replace(batch, chunks=batch.chunks[1:])
        broken = msgspec.structs.replace(batch.chunks[0], hash=b"\0" * 32)
        wrong = msgspec.structs.replace(batch, chunks=(broken,))

        async def send(body: bytes, path: str = "chain?session=1") -> tuple[int, Any]:
            headers = {"content-type": CHAIN_MEDIA_TYPE}
            answer = await hub.http.post(f"{base}/{path}", content=body, headers=headers)
            problem = answer.json()
            return answer.status_code, problem.get("code", problem.get("ackedSeq"))

        encode = msgspec.msgpack.encode
        assert await send(encode(wrong)) == (422, "mirror_broken")
        first = msgspec.structs.replace(batch, chunks=batch.chunks[:1])
        assert await send(encode(first)) == (200, 102)
        assert await send(encode(first)) == (200, 102)
        elsewhere = msgspec.structs.replace(foreign, chunks=foreign.chunks[1:])
        assert await send(encode(elsewhere)) == (422, "mirror_broken")
        gap = msgspec.structs.replace(batch, chunks=batch.chunks[2:])
        assert await send(encode(gap)) == (409, "mirror_gap")
        assert await send(encode(later)) == (200, 408)
        assert await send(encode(foreign)) == (409, "mirror_conflict")
        assert await send(encode(batch), "chain?session=2") == (409, "upload_fenced")
        assert await send(b"\xc1") == (400, "upload_unreadable")
        assert await send(b"\xc1", "removed?session=1") == (400, "upload_unreadable")
        assert await send(b"\0" * 1_000_001) == (413, "upload_too_large")
        assert await send(encode(batch), "chain") == (400, "invalid_request")
        blob = f"{base}/blobs/output:sha256:{'0' * 64}?session=1"
        answer = await hub.http.put(blob, content=b"other")
        assert (answer.status_code, answer.json()["code"]) == (422, "blob_mismatch")
        answer = await hub.http.put(f"{base}/blobs/nothing?session=1", content=b"other")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_blob")
        status = (await hub.http.get(base)).json()
        assert (status["facts"], len(status["refused"])) == (408, 1)


@pytest.mark.requirement("mirror.refusals")
@pytest.mark.asyncio
async def test_nothing_is_answered_to_whom_it_is_none_of_the_business(tmp_path: Path):
    async with running_mirror(tmp_path / "hub") as hub:
        for path in ("mirror", "threads", "mirror/sessions", "events", ""):
            nobody = await hub.http.get(f"/v1/edges/edge_1/{path}", headers={"authorization": "x"})
            assert (nobody.status_code, nobody.json()["code"]) == (401, "unauthenticated")
        for edge_id in ("edge_foreign", "edge_unknown", "..%2f..", "a%20b"):
            for path in ("mirror", "threads"):
                answer = await hub.http.get(f"/v1/edges/{edge_id}/{path}")
                assert (answer.status_code, answer.json()["code"]) == (404, "unknown_edge")
