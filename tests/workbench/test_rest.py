"""What the page needs of REST beyond what other clients do: finding, attaching, any moment."""

import base64
from pathlib import Path

import pytest

from tests.edge.edges import running_edge
from tests.workbench.seeding import message_facts

pytestmark = pytest.mark.asyncio


@pytest.mark.requirement("workbench.search")
async def test_threads_are_found_by_words_of_their_title_or_their_id(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        titles = ("Fix the Parser", "Straße und Größe", "Write a parser test")
        for title in titles:
            await edge.post("/v1/threads", {"title": title}, status=201)

        async def find_titles(search: str) -> list[str]:
            rows = (await edge.get("/v1/threads", search=search))["items"]
            return [row["title"] for row in rows]

        assert await find_titles("PARSER") == [titles[2], titles[0]]
        assert await find_titles("parser fix") == [titles[0]]
        assert await find_titles("strasse") == [titles[1]]
        assert await find_titles("nothing of it") == []
        assert await find_titles("  ") == [*reversed(titles)]
        first = (await edge.get("/v1/threads", search="fix"))["items"][0]
        assert await find_titles(first["threadId"]) == [titles[0]]


@pytest.mark.requirement("workbench.upload")
async def test_an_attachment_is_stored_and_named_in_a_message(tmp_path: Path):
    content = bytes(range(256)) * 64
    async with running_edge(tmp_path) as edge:
        body = {"content": base64.b64encode(content).decode()}
        stored = await edge.post("/v1/blobs", body, status=201)
        assert stored == {"ref": stored["ref"], "bytes": len(content)}
        assert await edge.post("/v1/blobs", body, status=201) == stored
        assert (await edge.http.get(f"/v1/blobs/{stored['ref']}")).content == content
        thread = await edge.post("/v1/threads", {}, status=201)
        part = {"type": "asset", "kind": "document", "ref": stored["ref"], "name": "a.bin"}
        address = f"/v1/threads/{thread['threadId']}/messages"
        payload = await edge.post(address, {"text": "hello", "input": [part]}, status=202)
        await edge.allow_all(payload["run"]["runId"])
        state = (await edge.get(f"/v1/threads/{thread['threadId']}/projection"))["state"]
        assert stored["ref"] in str(state["messages"])
        refused = await edge.http.post("/v1/blobs", json={"content": "not base64!"})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")


@pytest.mark.requirement("workbench.moment")
async def test_a_thread_is_read_and_forked_as_it_was_at_an_event(tmp_path: Path):
    texts = ["one", "two", "three"]
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": list(message_facts("past", texts))})

        async def read_texts(thread_id: str, **at: str) -> list[str]:
            state = (await edge.get(f"/v1/threads/{thread_id}/projection", **at))["state"]
            return [part["text"] for message in state["messages"] for part in message["parts"]]

        assert await read_texts("past") == texts
        assert await read_texts("past", at="past-4") == texts[:2]
        events = (await edge.get("/v1/events", threadId="past", limit=1000))["items"]
        assert await read_texts("past", at=events[2]["id"]) == texts[:1]
        for walked in ("past-3", "past-5", "past-4", "past-4", "past-5"):
            assert await read_texts("past", at=walked) == texts[: int(walked[-1]) - 2]
        fork = await edge.post("/v1/threads/past:fork", {"at": "past-4"}, status=201)
        assert fork["parentThreadId"] == "past"
        assert await read_texts(fork["threadId"]) == texts[:2]
        unknown = await edge.http.get("/v1/threads/past/projection", params={"at": "nobody"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "cursor_invalid")
