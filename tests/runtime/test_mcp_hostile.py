"""Servers that die, stay silent or mean harm: each costs its call, and nothing else."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from factwire.runtime.configuration import McpServer
from factwire.runtime.toolbox import Toolbox, mcp_connection, mcp_content, mcp_transports
from factwire.runtime.toolbox.limits import NAME_CHARACTERS
from factwire.runtime.toolbox.mcp_content import OfferedTool, build_tool_name
from tests.runtime.mcp_library_server import make_server
from tests.runtime.mcp_turns import make_kept, raw, serve_http, turn
from tests.runtime.toolboxes import Used

pytestmark = pytest.mark.asyncio

ECHO = ("mcp__raw__echo", {"text": "hi"})


async def with_raw(folder: Path, how: str, *steps: Any, **settings: Any) -> Used:
    return await turn(make_kept(folder, raw=raw(how, **settings)), *steps or (ECHO,))


def failure_of(used: Used) -> dict[str, Any]:
    [fact] = used.facts_of_class("tool.failed")
    return fact.payload


@pytest.mark.requirement("runtime.mcp.death")
@pytest.mark.fault
async def test_a_connection_that_is_not_given_up_stays_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without the new start, the test below would fail."""
    monkeypatch.setattr(mcp_connection.McpConnection, "is_open", property(lambda _: True))
    used = await with_raw(tmp_path, "dies", *[ECHO] * 2)

    assert [each.ok for each in used.outcomes] == [False, False]


@pytest.mark.requirement("runtime.mcp.death")
@pytest.mark.fault
async def test_a_server_that_dies_costs_one_call_and_is_started_again(tmp_path: Path):
    used = await with_raw(tmp_path, "dies", ECHO, ECHO)

    assert [each.category for each in used.outcomes] == ["server_died", None]
    assert "exit code 3: out of paper" in failure_of(used)["message"]
    assert "the server is restarted" in failure_of(used)["recoveryHint"]
    assert used.outcomes[1].text == "echo: hi"
    assert len(used.facts_of_class("process.started")) == 2
    assert len(used.facts_of_class("process.failed")) == 1


@pytest.mark.requirement("runtime.mcp.death")
@pytest.mark.fault
async def test_an_http_server_that_is_gone_fails_the_call_and_a_new_one_is_used(tmp_path: Path):
    add = ("mcp__lib__add", {"a": 1, "b": 2})
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        url = await first.enter_async_context(serve_http(make_server()))
        port = urlsplit(url).port or 0

        async def leave(toolbox: Toolbox) -> None:
            del toolbox
            await first.aclose()

        async def come_back(toolbox: Toolbox) -> None:
            del toolbox
            await second.enter_async_context(serve_http(make_server(), port=port))

        means = make_kept(tmp_path, lib=McpServer(url=url, seconds=60, start_seconds=60))
        used = await turn(means, add, leave, add, come_back, add)

    assert [each.category for each in used.outcomes] == [None, "server_died", None]


@pytest.mark.requirement("runtime.mcp.start")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (raw("slow", start_seconds=0.3), "raw was not ready after 0.3 seconds"),
        (raw("broken"), "exit code 7: no licence"),
        (McpServer(command=("no-such-program",)), "no-such-program"),
        (McpServer(url="http://127.0.0.1:9/mcp"), "raw could not be reached"),
    ],
)
async def test_a_server_that_does_not_start_says_why_and_others_are_offered(
    tmp_path: Path, settings: McpServer, message: str
):
    found: list[OfferedTool] = []

    async def look(toolbox: Toolbox) -> None:
        # The second time it is not tried again.
        for _ in range(2):
            found[:] = await toolbox.list_server_tools()

    used = await turn(make_kept(tmp_path, raw=settings, other=raw()), look, ECHO)

    assert [tool.name for tool in found] == ["mcp__other__echo"]
    [warning] = used.facts_of_class("runtime.warning")
    assert warning.payload["code"] == "server_unavailable"
    assert message in warning.payload["message"]
    assert "factwire doctor" in warning.payload["recoveryHint"]
    assert used.outcome.category == "server_unavailable"
    assert message in used.outcome.text


@pytest.mark.requirement("runtime.mcp.timeout")
async def test_a_silent_server_is_told_that_its_call_is_cancelled(tmp_path: Path):
    means = make_kept(tmp_path, raw=raw("silent", seconds=0.5))
    used = await turn(means, ECHO)

    assert used.outcome.category == "timeout"
    assert "Raise `seconds`" in failure_of(used)["recoveryHint"]
    assert (means.workspace / "cancelled").exists()


@pytest.mark.requirement("runtime.mcp.garbage")
async def test_garbage_on_stdout_is_passed_over_with_one_warning(tmp_path: Path):
    used = await with_raw(tmp_path, "garbage")

    assert used.outcome.text == "echo: hi"
    [warning] = used.facts_of_class("runtime.warning")
    assert warning.payload["code"] == "mcp_not_protocol"
    assert "Welcome to the server!" in warning.payload["message"]


@pytest.mark.requirement("runtime.mcp.bounds")
async def test_a_huge_result_is_behind_a_ref(tmp_path: Path):
    means = make_kept(tmp_path, raw=raw("huge"))
    used = await turn(means, ECHO)

    [result] = used.facts_of_class("tool.result")
    assert "output" not in result.payload
    assert len(await means.content(result.payload["outputRef"]["ref"])) == 3_000_000
    assert max(len(str(fact.payload)) for fact in used.facts) < 20_000


@pytest.mark.requirement("runtime.mcp.bounds")
@pytest.mark.fault
@pytest.mark.parametrize(
    ("bound", "seconds", "category"),
    [(1_000_000, 60.0, "server_died"), (10**12, 1.0, "timeout")],
)
async def test_a_message_without_end_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int, seconds: float, category: str
):
    """Without the bound, only the time of the call ends it."""
    monkeypatch.setattr(mcp_transports, "MESSAGE_BYTES", bound)
    used = await with_raw(tmp_path, "endless", seconds=seconds)

    assert used.outcome.category == category
    if category == "server_died":
        assert "a message of more than 1000000 bytes" in used.outcome.text


@pytest.mark.requirement("runtime.mcp.bounds")
@pytest.mark.parametrize(
    "answer",
    [
        b"content-type: application/json\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000,
        b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
        b"content-type: text/event-stream\r\n\r\ndata: " + b"x" * 300_000,
    ],
)
async def test_an_http_answer_that_is_too_big_or_packed_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
):
    monkeypatch.setattr(mcp_transports, "MESSAGE_BYTES", 100_000)
    async with answering_http(b"HTTP/1.1 200 OK\r\n" + answer) as url:
        means = make_kept(tmp_path, raw=McpServer(url=url, start_seconds=30))
        used = await turn(means, ECHO)

    assert used.outcome.category == "server_unavailable"


@asynccontextmanager
async def answering_http(answer: bytes) -> AsyncGenerator[str]:
    """A web server that gives every request the same answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.requirement("runtime.mcp.failures")
@pytest.mark.parametrize(
    ("how", "message"),
    [("refuses", "never heard of tools/call (-32601)"), ("wrong", "answered wrongly")],
)
async def test_what_breaks_the_protocol_is_no_answer_of_the_tool(
    tmp_path: Path, how: str, message: str
):
    used = await with_raw(tmp_path, how)

    assert used.outcome.category == "protocol_error"
    assert message in used.outcome.text
    assert failure_of(used)["recoveryHint"]


@pytest.mark.requirement("runtime.mcp.bounds")
async def test_a_result_of_nonsense_is_said_to_be_that(tmp_path: Path):
    used = await with_raw(tmp_path, "binary")

    first, *_, last = used.outcome.text.split("\n")
    assert first == "[image image/png: not base64, not kept]"
    assert last == "(51 more parts are left out)"


@pytest.mark.requirement("runtime.mcp.bounds")
async def test_a_schema_that_came_with_a_tool_is_never_run(tmp_path: Path):
    """Its pattern would take years; what it is about is kept, the deep of it behind a ref."""
    used = await with_raw(tmp_path, "pattern")

    assert used.outcome.ok
    [result] = used.facts_of_class("tool.result")
    assert result.payload["structuredContentRef"]["mediaType"] == "application/json"


@pytest.mark.requirement("runtime.mcp.not-offered")
async def test_a_server_gets_the_workspace_as_root_and_no_model(tmp_path: Path):
    means = make_kept(tmp_path, raw=raw("samples"))
    used = await turn(means, ECHO)

    assert used.outcome.text == f'[-32600, ["{means.workspace.resolve().as_uri()}"]]'


@pytest.mark.requirement("runtime.mcp.names")
async def test_odd_and_doubled_names_are_made_safe_or_left_out(tmp_path: Path):
    found: dict[str, OfferedTool] = {}

    async def look(toolbox: Toolbox) -> None:
        found.update({tool.name: tool for tool in await toolbox.list_server_tools()})

    odd = build_tool_name("raw", "read file/now!")
    used = await with_raw(tmp_path, "odd", look, (odd, {"text": "hi"}))

    assert used.outcome.text == "read file/now!: hi"
    plain, changed, long, talkative = found.values()
    assert (plain.name, plain.description) == ("mcp__raw__echo", "the tool echo")
    assert changed.name == odd == "mcp__raw__read_file_now__" + odd[-8:]
    assert len(long.name) == NAME_CHARACTERS
    assert len(talkative.description) < 5_000
    warnings = [fact.payload["message"] for fact in used.facts_of_class("runtime.warning")]
    assert [line.rpartition(": ")[2] for line in warnings] == [
        "the server lists it twice; the first one is used",
        "its schema has more than 32000 characters",
    ]


@pytest.mark.requirement("runtime.mcp.names")
async def test_no_two_tools_share_a_name_and_none_is_another_servers():
    pairs = [("a", "b"), ("a", "b c"), ("a", "b_c"), ("a-b", "c"), ("a", "-b__c"), ("a", "ü")]
    made_names = [build_tool_name(server, tool) for server, tool in pairs]

    assert len(set(made_names)) == len(pairs)
    assert [mcp_content.parse_server_name(name) for name in made_names] == [
        server for server, _ in pairs
    ]
    assert mcp_content.parse_server_name("mcp__a") is mcp_content.parse_server_name("read") is None


@pytest.mark.requirement("runtime.mcp.bounds")
async def test_a_list_of_tools_without_end_comes_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mcp_connection, "PAGES", 4)

    async def look(toolbox: Toolbox) -> None:
        assert [tool.name for tool in await toolbox.list_server_tools()] == ["mcp__raw__echo"]

    used = await with_raw(tmp_path, "pages", look)

    assert len(used.facts_of_class("runtime.warning")) == 3
