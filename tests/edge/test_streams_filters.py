"""What a reader asks for: filters, what is passed over, and queries that are not understood."""

from typing import Any

import pytest

from factwire.journal import Journal
from tests.edge import streaming_fixtures
from tests.edge.streaming import Served, message, messages, refusal, until
from tests.edge.streaming_fixtures import seqs, some
from tests.journal.contract import make_fact

pytestmark = pytest.mark.asyncio

journal, server = streaming_fixtures.journal, streaming_fixtures.server


@pytest.mark.requirement("edge.stream.filters")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"threadId": "a"}, [1, 4, 6]),
        ({"projectId": "p"}, [2, 4]),
        ({"runId": "r"}, [3, 4]),
        ({"threadId": "a", "projectId": "p"}, [4]),
        ({"classes": "tool"}, [5, 6]),
        ({"classes": "tool.started,model"}, [1, 2, 3, 4, 5]),
        ({"classes": "tool.", "threadId": "a"}, [6]),
    ],
)
@pytest.mark.parametrize("live", [False, True])
async def test_only_facts_of_what_is_named_are_told(
    journal: Journal, server: Served, query: dict[str, str], expected: list[int], live: bool
):
    batch = [
        make_fact(1, "a"),
        make_fact(2, "b", project_id="p"),
        make_fact(3, "b", run_id="r"),
        make_fact(4, "a", project_id="p", run_id="r"),
        make_fact(5, "b", event_class="tool.started", tool_call_id="c"),
        make_fact(6, "a", event_class="tool.result", tool_call_id="c"),
        make_fact(7, "b", event_class="toolbox.opened"),
    ]
    if not live:
        await journal.append(batch)
    async with server.socket(**query) as client:
        if live:
            await until(lambda: server.streams.stats().readers == 1)
            await journal.append(batch)
        assert [events["seq"] for events in await messages(client, len(expected))] == expected
        if expected[-1] < 7:
            assert (await message(client))["type"] == "checkpoint"


@pytest.mark.requirement("edge.stream.types")
async def test_types_are_those_of_the_envelope_in_its_view(journal: Journal, server: Served):
    payload: dict[str, Any] = {
        "payload": {"delta": "a"},
        "message_id": "m",
        "run_id": "r",
        "turn_id": "u",
    }
    await journal.append(
        [
            make_fact(1, "t", **payload),
            make_fact(2, event_class="tool.started", tool_call_id="c", run_id="r"),
            make_fact(3, "t", **payload),
        ]
    )
    for query in (
        {"types": "run.agent.text_delta"},
        {"types": "run.agent.text_delta", "view": "runtime"},
        {"types": "message.delta", "view": "conversation"},
        {"types": "message", "view": "conversation"},
        {"types": "approval,message.", "view": "conversation"},
    ):
        async with server.socket("/v1/events", **query) as client:
            events = await messages(client, 2)
        assert [each["seq"] for each in events] == [1, 3]
        assert {each["type"] for each in events} == {
            "message.delta" if query.get("view") == "conversation" else "run.agent.text_delta"
        }
    async with server.socket("/v1/events", types="message") as client:
        assert await message(client) == {
            "type": "checkpoint",
            "cursor": str(await journal.head()),
            "seq": 3,
        }


@pytest.mark.requirement("edge.stream.checkpoints")
async def test_facts_passed_over_advance_the_reader_in_few_frames(journal: Journal, server: Served):
    async with server.socket(threadId="mine", since="now") as client:
        assert (await message(client))["seq"] == 0
        for number in range(1, 201):
            await journal.append([make_fact(number, "other")])
        events: list[dict[str, Any]] = []
        while not events or events[-1]["seq"] < 200:
            events.append(await message(client))
        assert {each["type"] for each in events} == {"checkpoint"}
        assert len(events) < 50
        await journal.append([make_fact(201, "mine")])
        assert (await messages(client, 1))[0]["seq"] == 201
    assert await seqs(server, 1, cursor=events[-1]["cursor"], threadId="mine") == [201]


@pytest.mark.requirement("edge.stream.checkpoints")
async def test_a_long_way_without_anything_to_tell_is_marked_on_the_way(
    journal: Journal, server: Served
):
    for start in range(0, 20_000, 2_000):
        await journal.append(some(start, start + 1_999))
    await server.feed.wait_for(20_000)
    async with server.socket("/v1/events", types="project.created") as client:
        events = [await message(client) for _ in range(3)]
    assert [each["type"] for each in events] == ["checkpoint"] * 3
    assert [each["seq"] for each in events] == [8_192, 16_384, 20_000]


@pytest.mark.requirement("edge.stream.query")
@pytest.mark.parametrize("over", ["socket", "events"])
@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("/v1/facts", "threadid=t", "unknown_parameter"),
        ("/v1/facts", "types=a", "unknown_parameter"),
        ("/v1/events", "classes=a", "unknown_parameter"),
        ("/v1/events", "view=mine", "invalid_parameter"),
        ("/v1/events", "threadId=", "invalid_parameter"),
        ("/v1/events", "threadId=a&threadId=b", "repeated_parameter"),
        ("/v1/events", "since=yesterday", "invalid_parameter"),
        ("/v1/events", "since=now&cursor=fw1.x", "conflicting_parameters"),
        ("/v1/events", "types=a,,b", "invalid_parameter"),
        ("/v1/events", "types=" + ",".join(f"t{n}" for n in range(65)), "invalid_parameter"),
        ("/v1/events", "cursor=" + "x" * 513, "invalid_parameter"),
        ("/v1/events", "limit=0", "invalid_parameter"),
        ("/v1/events", "cursor=%ff", "invalid_query"),
        ("/v1/events", "&".join(["types=a"] * 200), "invalid_query"),
        ("/v1/threads/t/projection/stream", "since=now", "unknown_parameter"),
    ],
)
async def test_a_query_that_is_not_understood_is_refused_before_the_stream(
    server: Served, over: str, path: str, query: str, code: str
):
    status, problem = await refusal(server, over, f"{path}?{query}")
    assert (status, problem["code"]) == (400, code)
    assert problem["status"] == 400
    assert problem["traceId"]
