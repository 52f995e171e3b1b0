"""The openai agent: what a model says and calls, as facts and as what the model hears."""

import logging
from pathlib import Path

import pytest

from factwire.facts import manifest_issues
from factwire.projection.messages import ReasoningPart, TextPart, ToolPreviewPart
from factwire.runtime import Runtime
from factwire.runtime.agents.openai_conversation import TOOL_TEXTS
from factwire.runtime.policy import Policy
from factwire.runtime.toolbox import TOOLS
from tests.runtime.agents import classes, decide_shown, open_action
from tests.runtime.fake_model import FakeModel, Reply, calls, chunk, end_stream, text
from tests.runtime.fake_model_runs import KEY, agent, talk
from tests.runtime.toolboxes import Kept, use

pytestmark = pytest.mark.asyncio

ASKING = Policy()


def files_with(folder: Path, text: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


@pytest.mark.requirement("runtime.agents.openai.answer")
async def test_an_answer_streams_and_ends_with_its_whole_text(tmp_path: Path):
    done, model = await talk(tmp_path, text("Good ", "morning", "."), prompt="Greet me")

    assert (done.status, done.answers) == ("completed", ["Good morning."])
    deltas = done.facts_of_class("model.delta")
    assert [fact.payload["delta"] for fact in deltas] == ["Good ", "morning", "."]
    [requested], [completed] = (
        done.facts_of_class("model.requested"),
        done.facts_of_class("model.completed"),
    )
    assert len({(fact.message_id, fact.part_id) for fact in (*deltas, completed)}) == 1
    assert requested.message_id == completed.message_id
    assert completed.payload["text"] == "Good morning."
    assert completed.payload["finishReason"] == "stop"
    [request] = model.requests
    assert request.path == "/v1/chat/completions"
    assert (request.body["model"], request.body["stream"]) == ("tiny", True)
    assert request.contents_of("user") == ["Greet me"]


@pytest.mark.requirement("runtime.agents.openai.answer")
async def test_the_facts_of_a_turn_come_in_their_order(tmp_path: Path):
    done, _ = await talk(tmp_path, text("Hi"))

    assert classes(done.facts) == [
        *("turn.submitted", "turn.started", "run.status", "session.updated"),
        *("routing.single_candidate", "model.requested", "model.delta", "model.completed"),
        *("cost.recorded", "metrics.changed", "context.resolved", "run.status"),
        *("turn.completed", "snapshot.updated"),
    ]
    [route] = done.payloads_of("routing.single_candidate")
    assert route == {
        "model": "tiny",
        "provider": "openai-compatible",
        "endpoint": "loopback",
        "reasonCode": "configured",
    }


@pytest.mark.requirement("runtime.agents.openai.answer")
async def test_texts_around_reasoning_are_parts_of_one_message(tmp_path: Path):
    pieces = (
        chunk({"content": "First."}),
        chunk({"reasoning_content": "then what"}),
        chunk({"content": "Second."}),
        *end_stream("stop", None),
    )
    done, _ = await talk(tmp_path, Reply(pieces))

    [message] = [each for each in done.state.messages if each.role == "assistant"]
    texts = [part for part in message.parts if isinstance(part, TextPart)]
    assert [(str(part.text), part.state) for part in texts] == [
        ("First.", "final"),
        ("Second.", "final"),
    ]
    assert message.status == "final"


@pytest.mark.requirement("runtime.agents.openai.answer")
async def test_a_long_answer_that_comes_at_once_is_whole(tmp_path: Path):
    whole = "\n".join(f"line {number}" for number in range(9_000))
    done, _ = await talk(tmp_path, text(whole))

    assert len(whole) > 80_000
    assert done.answers == [whole]
    assert not any("deltaRef" in payload for payload in done.payloads_of("model.delta"))


@pytest.mark.requirement("runtime.agents.openai.answer")
async def test_an_answer_that_was_cut_at_its_length_says_so(tmp_path: Path):
    done, model = await talk(tmp_path, text("Once upon", finish="length"), max_tokens=3)

    assert (done.status, done.answers) == ("completed", ["Once upon"])
    assert [payload["code"] for payload in done.payloads_of("runtime.warning")] == [
        "answer_truncated"
    ]
    assert model.requests[0].body["max_completion_tokens"] == 3


@pytest.mark.requirement("runtime.agents.openai.reasoning")
@pytest.mark.parametrize("where", ["a field", "tags"])
async def test_raw_reasoning_is_counted_and_in_no_fact(tmp_path: Path, where: str):
    thought = "the butler did it"
    pieces = ("<think>", thought, "</think>", "It was the gardener.")
    reply = (
        text("It was the gardener.", reasoning=(thought[:4], thought[4:]))
        if where == "a field"
        else text(*pieces)
    )
    done, _ = await talk(tmp_path, reply)

    assert [answer.strip() for answer in done.answers] == ["It was the gardener."]
    assert "butler" not in str(done.facts)
    [ended] = done.facts_of_class("reasoning.completed")
    assert ended.payload == {"characters": len(thought)}
    [message] = [each for each in done.state.messages if each.role == "assistant"]
    [part] = [part for part in message.parts if isinstance(part, ReasoningPart)]
    assert (part.state, str(part.summary)) == ("final", "")


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_call_is_made_and_its_result_heard(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "notes.txt").write_text("buy milk\n")
    wanted = calls(("read", {"path": "notes.txt"}), say="I look.")
    done, model = await talk(tmp_path, wanted, text("Milk."), kept=kept)

    assert done.answers == ["I look.", "Milk."]
    [tool] = done.state.tools.values()
    assert (tool.tool_name, tool.state, str(tool.output_text)) == (
        "read",
        "output-available",
        "buy milk\n",
    )
    second = model.requests[1]
    assert second.contents_of("tool") == ["buy milk\n"]
    [message] = [each for each in second.messages if each["role"] == "assistant"]
    assert message["tool_calls"][0]["id"] == second.messages[-1]["tool_call_id"] == "call_0"


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_call_streams_its_arguments_and_is_told_in_order(tmp_path: Path):
    args = {"path": "poem.txt", "content": "roses are red\n" * 3}
    done, _ = await talk(tmp_path, calls(("write", args)), text("Done."))

    assert (tmp_path / "workspace" / "poem.txt").read_text() == args["content"]
    [started] = done.facts_of_class("tool.started")
    own = [fact for fact in done.facts if fact.tool_call_id == started.tool_call_id]
    class_order = list(dict.fromkeys(classes(own)))
    assert class_order == [
        *("tool.started", "tool.args.delta", "tool.args", "permission.evaluated"),
        *("file.changed", "tool.result"),
    ]
    assert len(done.facts_of_class("tool.args.delta")) > 5
    assert done.payloads_of("tool.args") == [{"args": args}]
    assert done.state.coding.files["poem.txt"].added_lines == 3


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_call_stands_in_the_message_that_made_it(tmp_path: Path):
    done, _ = await talk(tmp_path, calls(("search", {"text": "x"})), text("None."))

    [tool] = done.state.tools.values()
    first, second = [each for each in done.state.messages if each.role == "assistant"]
    previews = [part for part in first.parts if isinstance(part, ToolPreviewPart)]
    assert [part.tool_call_id for part in previews] == [tool.tool_call_id]
    assert tool.message_id == first.message_id != second.message_id


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_model_is_told_of_every_tool_by_the_table(tmp_path: Path):
    _, model = await talk(tmp_path, text("Hi"))

    functions = [tool["function"] for tool in model.requests[0].body["tools"]]
    assert {each["name"]: each["description"] for each in functions} == {
        name: tool_text.description for name, tool_text in TOOL_TEXTS.items()
    }
    assert {each["name"]: each["parameters"] for each in functions} == {
        name: tool_text.schema for name, tool_text in TOOL_TEXTS.items()
    }
    assert set(TOOL_TEXTS) == set(TOOLS)


@pytest.mark.requirement("runtime.agents.openai.tools")
@pytest.mark.parametrize("name", TOOLS)
async def test_the_table_names_the_arguments_that_a_tool_takes(tmp_path: Path, name: str):
    used = await use(Kept(tmp_path), (name, {"surprise": 1}))

    known = ", ".join(TOOL_TEXTS[name].properties)
    assert used.outcome.text == f"expected the arguments {known}, got surprise"


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_instructions_say_where_the_model_works_and_what_the_owner_adds(tmp_path: Path):
    kept = Kept(tmp_path, Policy.of("plan"))
    (kept.workspace / ".git").mkdir()
    _, model = await talk(tmp_path, text("Hi"), kept=kept, instructions="Answer in Latin.")

    [instructions] = model.requests[0].contents_of("system")
    assert "Workspace: workspace (" in instructions
    assert "git repository" in instructions
    assert "Only a plan is wanted: do not change anything." in instructions
    assert instructions.endswith("\n\nAnswer in Latin.")
    assert str(tmp_path) not in instructions


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_long_result_reaches_the_model_by_both_its_ends(tmp_path: Path):
    kept = Kept(tmp_path)
    (kept.workspace / "long.txt").write_text("begin" + "x" * 100_000 + "end")
    done, model = await talk(
        tmp_path, calls(("read", {"path": "long.txt"})), text("Long."), kept=kept
    )

    [heard] = model.requests[1].contents_of("tool")
    assert heard.startswith("begin")
    assert heard.endswith("end")
    assert "… 68008 characters left out …" in heard
    [tool] = done.state.tools.values()
    assert tool.output_ref is not None


@pytest.mark.requirement("runtime.agents.openai.tools")
async def test_a_program_that_fails_is_heard_with_its_exit_code(tmp_path: Path):
    line = "sh -c 'echo broken; exit 3'"
    done, model = await talk(tmp_path, calls(("run", {"command": line})), text("It failed."))

    assert model.requests[1].contents_of("tool") == ["Failed (nonzero_exit, exit code 3): broken\n"]
    [tool] = done.state.tools.values()
    assert (tool.failure_category, tool.exit_code) == ("nonzero_exit", 3)
    assert {"process.started", "process.output", "process.failed"} <= set(classes(done.facts))


@pytest.mark.requirement("runtime.agents.openai.parallel")
@pytest.mark.parametrize("ids", [("call_0", "call_1"), ("", "")], ids=["repeated", "none"])
async def test_several_calls_of_one_answer_are_all_made_and_heard(
    tmp_path: Path, ids: tuple[str, str]
):
    kept = Kept(tmp_path)
    for name in ("a", "b"):
        (kept.workspace / name).write_text(f"this is {name}")
    wanted = calls(("read", {"path": "a"}), ("read", {"path": "b"}), ids=ids)
    done, model = await talk(tmp_path, wanted, wanted, text("Both."), kept=kept)

    assert model.requests[2].contents_of("tool") == ["this is a", "this is b"] * 2
    outputs = [str(tool.output_text) for tool in done.state.tools.values()]
    assert outputs == ["this is a", "this is b"] * 2


@pytest.mark.requirement("runtime.agents.openai.bad-calls")
async def test_calls_of_one_answer_that_share_an_id_are_not_made(tmp_path: Path):
    wanted = calls(("read", {"path": "a"}), ("read", {"path": "b"}), ids=("same", "same"))
    done, _ = await talk(tmp_path, wanted)

    assert done.failure["failureCategory"] == "invalid_response"
    assert not done.facts_of_class("permission.evaluated")


@pytest.mark.requirement("runtime.agents.openai.parallel")
async def test_what_changes_something_waits_for_what_came_before(tmp_path: Path):
    wanted = calls(
        ("write", {"path": "a", "content": "one"}),
        ("patch", {"edits": [{"path": "a", "old": "one", "new": "two"}]}),
        ("run", {"command": "cp a b"}),
        ("read", {"path": "b"}),
    )
    done, model = await talk(tmp_path, wanted, text("Done."))

    assert (tmp_path / "workspace" / "b").read_text() == "two"
    assert model.requests[1].contents_of("tool")[-1] == "two"
    assert [tool.state for tool in done.state.tools.values()] == ["output-available"] * 4


@pytest.mark.requirement("runtime.agents.openai.bad-calls")
async def test_calls_that_nobody_can_read_fail_and_are_explained(tmp_path: Path):
    wanted = calls(("teleport", {"to": "mars"}), ("read", '{"path": '), ("read", {"file": "a"}))
    done, model = await talk(tmp_path, wanted, text("Sorry."))

    tools = list(done.state.tools.values())
    assert [tool.failure_category for tool in tools] == [
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
    ]
    unknown, broken, wrong = model.requests[1].contents_of("tool")
    assert "Unknown tool name: 'teleport'" in unknown
    assert "Invalid JSON" in broken
    assert wrong == (
        "Failed (invalid_arguments): expected the arguments path, start, lines, got file"
    )
    assert done.status == "completed"


@pytest.mark.requirement("runtime.agents.openai.bad-calls")
async def test_a_model_that_never_calls_rightly_fails_the_turn(tmp_path: Path):
    done, model = await talk(tmp_path, *(calls(("teleport", {})) for _ in range(9)))

    assert done.status == "failed"
    assert done.failure["failureCategory"] == "invalid_response"
    assert len(model.requests) == 6
    assert {tool.state for tool in done.state.tools.values()} == {"output-error"}


@pytest.mark.requirement("runtime.agents.openai.denied")
async def test_what_the_policy_denies_is_heard_as_denied(tmp_path: Path):
    policy = Policy.of("acceptEdits", deny=["Bash(rm *)"])
    wanted = calls(("run", {"command": "rm -rf ."}))
    done, model = await talk(tmp_path, wanted, text("Then not."), policy=policy)

    assert (done.status, done.answers) == ("completed", ["Then not."])
    [heard] = model.requests[1].contents_of("tool")
    assert heard.startswith("Denied: ")
    assert "a rule denies it" in heard
    assert done.facts_of_class("permission.denied")
    assert not done.facts_of_class("process.started")


@pytest.mark.requirement("runtime.agents.openai.denied")
@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_a_person_decides_and_the_model_hears_what(tmp_path: Path, answer: str):
    async def decide(runtime: Runtime, _: FakeModel) -> None:
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, answer, by="lena", reason="not on a Sunday")

    wanted = calls(("write", {"path": "made", "content": "x"}))
    done, model = await talk(tmp_path, wanted, text("So be it."), policy=ASKING, meanwhile=decide)

    [heard] = model.requests[1].contents_of("tool")
    allowed = answer == "approve"
    assert (tmp_path / "workspace" / "made").exists() == allowed
    assert heard == (
        "created made" if allowed else "Denied: denied: not on a Sunday. It was not done."
    )
    [action] = done.state.actions.values()
    assert (action.tool_name, action.applied) == ("write", True)
    assert done.status == "completed"


@pytest.mark.requirement("runtime.agents.openai.usage")
async def test_what_the_endpoint_says_it_took_is_recorded(tmp_path: Path):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    done, _ = await talk(tmp_path, text("Hi", usage=usage))

    [recorded] = done.payloads_of("cost.recorded")
    assert recorded == {
        "model": "tiny-1",
        "provider": "openai-compatible",
        "inputTokens": 100,
        "outputTokens": 20,
        "totalTokens": 120,
        "cachedTokens": 64,
    }
    counted = done.state.metrics.usage
    assert (counted.input_tokens, counted.output_tokens, counted.total_cost_usd) == (100, 20, 0.0)
    assert done.state.metrics.values == {"steps": 1, "contextTokens": 100}


@pytest.mark.requirement("runtime.agents.openai.usage")
async def test_what_nobody_counted_is_not_recorded(tmp_path: Path):
    done, _ = await talk(tmp_path, text("Hi", usage=None))

    assert done.payloads_of("cost.recorded") == []
    assert done.payloads_of("metrics.changed") == [{"steps": 1}]


@pytest.mark.requirement("runtime.agents.openai.steps")
async def test_a_model_that_comes_to_no_end_is_stopped(tmp_path: Path):
    replies = [calls(("search", {"text": "x"})) for _ in range(5)]
    done, model = await talk(tmp_path, *replies, steps=3)

    assert done.status == "failed"
    assert done.failure["failureCategory"] == "step_limit_reached"
    assert done.failure["recoveryHint"]
    assert len(model.requests) == 3
    limit = done.state.metrics.limits["steps"]
    assert (limit.limit, limit.used, limit.remaining) == (3, 3, 0)


@pytest.mark.requirement("runtime.agents.openai.steps")
async def test_more_steps_than_usual_can_be_had(tmp_path: Path):
    replies = [calls(("search", {"text": "x"})) for _ in range(51)]
    done, model = await talk(tmp_path, *replies, text("Done."), steps=60)

    assert (done.status, len(model.requests)) == ("completed", 52)


@pytest.mark.requirement("runtime.agents.openai.options")
async def test_a_turn_may_take_another_model_and_fewer_steps(tmp_path: Path):
    options = {"model": "bigger", "temperature": 0.5, "instructions": "Be brief.", "steps": 900}
    loop = [calls(("search", {"text": "x"})) for _ in range(4)]
    done, model = await talk(tmp_path, *loop, turn={"options": options}, steps=2)

    body = model.requests[0].body
    assert (body["model"], body["temperature"]) == ("bigger", 0.5)
    assert model.requests[0].contents_of("system")[0].endswith("Be brief.")
    assert len(model.requests) == 2
    assert done.payloads_of("model.requested")[0]["model"] == "bigger"


@pytest.mark.requirement("runtime.agents.openai.options")
@pytest.mark.parametrize(
    "options", [{"retries": 1}, {"steps": 0}, {"temperature": "hot"}, {"model": ""}, {"model": 1}]
)
async def test_options_that_a_turn_may_not_set_fail_it_before_anything_is_asked(
    tmp_path: Path, options: dict[str, object]
):
    done, model = await talk(tmp_path, turn={"options": options})

    assert done.failure["failureCategory"] == "invalid_options"
    assert model.requests == []


@pytest.mark.requirement("runtime.agents.openai.key")
async def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    kept = Kept(tmp_path)
    with caplog.at_level(logging.DEBUG):
        env = calls(("run", {"command": "env"}))
        _, model = await talk(tmp_path, env, text("Hi"), kept=kept, key=True)

    assert [request.headers["authorization"] for request in model.requests] == [f"Bearer {KEY}"] * 2
    assert KEY not in caplog.text
    assert KEY not in "".join(capfd.readouterr())
    assert KEY not in str([request.body for request in model.requests])
    assert files_with(tmp_path, KEY) == []


@pytest.mark.requirement("runtime.agents.manifest")
async def test_the_manifest_is_sound_and_says_what_it_can():
    async with FakeModel() as model:
        manifest = agent(model).manifest

    assert manifest_issues(manifest) == []
    assert (manifest.resume, manifest.cancel, manifest.steer) == ("yes", "yes", "no")
    assert manifest.streaming.reasoning == "no"
