"""The openai agent: what a model is told of the past, and what a person attaches."""

import base64
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import AssetInput, CapabilityInput, InputPart, TextInput, WorkspaceInput
from factwire.runtime.agents import ShellAgent
from factwire.runtime.agents.openai_input import PastCall, PastTurn, Round, window
from tests.runtime.agents import wait_for_end
from tests.runtime.fake_model import FakeModel, calls, refusal, text
from tests.runtime.fake_model_runs import agent, talk
from tests.runtime.toolboxes import Kept

pytestmark = pytest.mark.asyncio

UNKNOWN = "Unknown tool name: 'hover'. Available tools: 'patch', 'read', 'run', 'search', 'write'"

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def read_messages(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Messages without the first instructions: role, and what was said or called."""
    return [
        (each["role"], each.get("content") or [c["function"] for c in each["tool_calls"]])
        for each in messages
        if each["role"] != "system"
    ]


@pytest.mark.requirement("runtime.agents.openai.history")
async def test_a_model_is_told_the_earlier_turns_with_their_calls(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "a").write_text("alpha")
    done, model = await talk(
        tmp_path,
        calls(("read", {"path": "a"})),
        text("It says alpha."),
        text("You asked for a."),
        prompt=("What is in a?", "What did I ask?"),
        kept=kept,
    )

    assert read_messages(model.requests[2].messages) == [
        ("user", "What is in a?"),
        ("assistant", [{"name": "read", "arguments": '{"path":"a"}'}]),
        ("tool", "alpha"),
        ("assistant", "It says alpha."),
        ("user", "What did I ask?"),
    ]
    call, result = model.requests[2].messages[2:4]
    [tool] = done.state.tools.values()
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == tool.tool_call_id
    windows = [each for each in done.payloads_of("context.resolved") if each["kind"] == "history"]
    [context] = windows
    assert (context["turns"], context["turnsLeftOut"]) == (1, 0)


@pytest.mark.requirement("runtime.agents.openai.history")
async def test_denied_failed_and_broken_calls_are_told_as_what_they_were(tmp_path: Path):
    wanted = calls(("run", {"command": "false"}), ("read", {"path": "none"}), ("hover", {}))
    _, model = await talk(
        tmp_path, wanted, refusal(500, "gone"), text("Yes."), prompt=("try", "again")
    )

    assert model.requests[2].contents_of("tool") == [
        "Failed (nonzero_exit, exit code 1): exit code 1",
        "Failed (not_found): none: No such file or directory",
        f"Failed (unknown_tool): {UNKNOWN}",
    ]
    assert model.requests[2].contents_of("user") == ["try", "again"]


@pytest.mark.requirement("runtime.agents.openai.history")
async def test_long_output_of_the_past_is_told_out_of_its_blob(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "long").write_text("word " * 4_000)
    wanted = calls(("read", {"path": "long"}))
    _, model = await talk(
        tmp_path, wanted, text("Long."), text("Yes."), prompt=("read it", "sure?"), kept=kept
    )

    assert model.requests[2].contents_of("tool") == ["word " * 4_000]


@pytest.mark.requirement("runtime.agents.openai.history")
async def test_what_another_agent_did_on_the_thread_is_told_too(tmp_path: Path):
    kept = Kept(tmp_path)
    async with FakeModel(text("You ran echo.")) as model:
        agents = {"shell": ShellAgent(), "openai": agent(model)}
        async with kept.run_agents(dict(agents)) as runtime:
            await runtime.submit("thread", "shell", "echo one", turn_id="first")
            assert await wait_for_end(runtime, "first") == "completed"
            await runtime.submit("thread", "openai", "What did I run?", turn_id="second")
            assert await wait_for_end(runtime, "second") == "completed"

    assert read_messages(model.requests[0].messages) == [
        ("user", "echo one"),
        ("assistant", [{"name": "run", "arguments": '{"command":"echo one"}'}]),
        ("tool", "one\n"),
        ("user", "What did I run?"),
    ]


@pytest.mark.requirement("runtime.agents.openai.window")
async def test_the_oldest_of_a_long_past_is_left_out_and_told_so(tmp_path: Path):
    replies = [text(f"answer {number} ", "x" * 400) for number in range(4)]
    done, model = await talk(
        tmp_path,
        *replies,
        prompt=tuple(f"question {number}" for number in range(4)),
        history_characters=1_000,
    )

    assert model.requests[3].contents_of("user") == ["question 1", "question 2", "question 3"]
    windows = [each for each in done.payloads_of("context.resolved") if each["kind"] == "history"]
    last = windows[-1]
    assert (last["turns"], last["turnsLeftOut"], last["roundsLeftOut"]) == (2, 1, 0)
    assert last["characters"] <= 1_000
    assert [item.kind for item in done.state.context.items] == ["history"] * 3


def turn(name: str, *sizes: int) -> PastTurn:
    """A turn with a prompt of 10 characters and a round of each size, with a call in it."""
    rounds = [
        Round(
            text="t" * (size - 20),
            calls=(PastCall(call_id=f"{name}{n}", name="read", args={}, result="r" * 14),),
        )
        for n, size in enumerate(sizes)
    ]
    return PastTurn(prompt=name.ljust(10, "."), rounds=tuple(rounds))


@pytest.mark.requirement("runtime.agents.openai.window")
@pytest.mark.parametrize(
    ("room", "kept", "left_out"),
    [
        (10_000, "one:2 two:2 three:1", (0, 0)),
        (0, "", (3, 0)),
        (59, "", (3, 0)),
        (60, "three:1", (2, 0)),
        (60 + 10 + 49, "three:1", (2, 0)),
        (60 + 10 + 50, "two:1 three:1", (1, 1)),
        (60 + 110, "two:2 three:1", (1, 0)),
    ],
)
async def test_rounds_are_left_out_whole_and_the_oldest_first(
    room: int, kept: str, left_out: tuple[int, int]
):
    turns = [turn("one", 50, 50), turn("two", 50, 50), turn("three", 50)]

    async def read(each: PastTurn) -> PastTurn:
        return each

    found = await window((read(each) for each in reversed(turns)), len(turns), room)

    shown = [f"{each.prompt.rstrip('.')}:{len(each.rounds)}" for each in found.turns]
    assert " ".join(shown) == kept
    assert (found.turns_left_out, found.rounds_left_out) == left_out
    assert found.characters <= room
    for each, whole in zip(reversed(found.turns), reversed(turns), strict=False):
        assert each.rounds == whole.rounds[-len(each.rounds) :]


async def talk_with_input(folder: Path, *parts: Any, kept: Kept | None = None) -> Any:
    turn_options: dict[str, Any] = {"input": parts}
    return await talk(folder, text("I see."), prompt="Look", turn=turn_options, kept=kept)


@pytest.mark.requirement("runtime.agents.openai.attachments")
async def test_text_and_images_reach_the_model(tmp_path: Path):
    kept = Kept(tmp_path)
    image = await kept.blobs.put(PIXEL, kind="artifact")
    notes = await kept.blobs.put(b"# Notes\n", kind="artifact")
    parts: list[InputPart] = [
        TextInput(text="and this"),
        AssetInput(kind="image", ref=image.ref, media_type="image/png"),
        AssetInput(kind="document", ref=notes.ref, media_type="text/markdown", name="notes.md"),
        WorkspaceInput(ref="ticket:17", object_type="ticket", title="The door squeaks"),
    ]
    done, model = await talk_with_input(tmp_path, *parts, kept=kept)

    [content] = model.requests[0].contents_of("user")
    kinds = [part["type"] for part in content]
    assert kinds == ["text", "text", "image_url", "text", "text"]
    data = base64.b64encode(PIXEL).decode()
    assert content[2]["image_url"]["url"] == f"data:image/png;base64,{data}"
    assert content[3]["text"] == "(attached: notes.md)\n# Notes\n"
    assert "the ticket The door squeaks, ticket:17" in content[4]["text"]
    assert [payload["kind"] for payload in done.payloads_of("context.attached")] == [
        "image",
        "document",
        "workspace",
    ]


@pytest.mark.requirement("runtime.agents.openai.attachments")
async def test_words_alone_are_one_text(tmp_path: Path):
    _, model = await talk_with_input(tmp_path, TextInput(text="closely"))

    assert model.requests[0].contents_of("user") == ["Look\n\nclosely"]


@pytest.mark.requirement("runtime.agents.openai.attachments")
@pytest.mark.parametrize(
    ("part", "why"),
    [
        (
            AssetInput(kind="audio", ref="asset:1", media_type="audio/mpeg"),
            "the model does not accept audio/mpeg",
        ),
        (
            AssetInput(kind="document", ref="asset:1", media_type="application/pdf"),
            "the model does not accept application/pdf",
        ),
        (
            AssetInput(kind="image", ref="asset:1", media_type="image/svg+xml"),
            "the model does not accept image/svg+xml",
        ),
        (
            AssetInput(kind="image", ref="asset:1", media_type="image/png"),
            "its content is not available",
        ),
        (CapabilityInput(ref="capability:1"), "sensitive"),
    ],
)
async def test_what_cannot_be_given_is_refused_before_anything_is_asked(
    tmp_path: Path, part: InputPart, why: str
):
    done, model = await talk_with_input(tmp_path, part)

    assert done.failure["failureCategory"] == "unsupported_input"
    assert why in done.failure["message"]
    assert model.requests == []


@pytest.mark.requirement("runtime.agents.openai.attachments")
async def test_an_attachment_that_is_too_big_is_refused(tmp_path: Path):
    kept = Kept(tmp_path)
    big = await kept.blobs.put(b"x" * (256 * 1024 + 1), kind="artifact")
    part = AssetInput(kind="document", ref=big.ref, media_type="text/plain")
    done, model = await talk_with_input(tmp_path, part, kept=kept)

    assert "it is larger than 262144 bytes" in done.failure["message"]
    assert model.requests == []
