"""OpenCode, live: what its server does wrong, what it asks, and what it is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import AssetInput
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.policy import Policy, PolicyRequest
from factwire.runtime.provider import Decision
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.program import NotInstalled
from factwire.sources.opencode import live
from factwire.sources.opencode.permission_requests import read_question
from tests.sources.live.scripted import driven, program
from tests.sources.odd_fields import ODD, spoil_fields

pytestmark = pytest.mark.asyncio


def make_agent(folder: Path, *args: str, **options: Any) -> live.OpenCodeAgent:
    settings = {"command": program("opencode_program.py", folder), "args": args, **options}
    return live.agent(AgentSettings(kind="opencode", options=settings))


@pytest.mark.requirement("sources.opencode.live.failures")
@pytest.mark.parametrize(
    ("prompt", "args", "category", "message"),
    [
        ("it dies", (), "stream_interrupted", "exit code 3: out of memory"),
        ("it leaves", (), "stream_interrupted", "its stream ended"),
        ("it errs", (), "provider_error", "no such agent"),
        ("refuse", (), "provider_error", "prompt_async: 400, no such model"),
        ("it answers", ("broken",), "stream_interrupted", "exit code 1: error: cannot read"),
        ("it answers", ("silent",), "agent_silent", "was not ready for the turn within 0.5 s"),
    ],
)
async def test_a_server_that_fails_ends_the_turn_and_says_why(  # noqa: PLR0917 - by keyword
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prompt: str,
    args: tuple[str, ...],
    category: str,
    message: str,
):
    if prompt == "it dies":
        # The stream of events breaks off first; how the program ended is known when it has.
        monkeypatch.setattr(live, "FAREWELL_SECONDS", 60.0)
    seconds = 0.5 if "silent" in args else 60
    async with driven(make_agent(tmp_path, *args, start_seconds=seconds), tmp_path) as drive:
        outcome = await drive.turn(prompt)

    left = list(tmp_path.glob("data/processes/*"))  # noqa: ASYNC240 - a small folder
    assert outcome.failure["failureCategory"] == category
    assert message in outcome.failure["message"]
    assert outcome.failure["recoveryHint"]
    assert left == []


@pytest.mark.requirement("sources.opencode.live.failures")
async def test_what_cannot_be_read_is_a_warning_and_the_turn_goes_on(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("it babbles")

    codes = [each["code"] for each in outcome.payloads_of("runtime.warning")]
    assert codes == ["unreadable_source_item", "unreadable_source_item", "unknown_source_item"]
    assert (outcome.status, outcome.answers) == ("completed", ["Done."])


@pytest.mark.requirement("sources.opencode.live.control")
@pytest.mark.parametrize("args", [(), ("silent",)])
async def test_a_server_that_does_not_heed_the_abort_is_killed(
    tmp_path: Path, args: tuple[str, ...]
):
    async with driven(make_agent(tmp_path, *args), tmp_path) as drive:
        turn = await drive.submit("it hangs")
        await drive.wait_for_fact("run.status" if args else "model.delta")
        outcome = await drive.cancel(turn)

    left = list(tmp_path.glob("data/processes/*"))  # noqa: ASYNC240 - a small folder
    assert outcome.status == "canceled"
    assert left == []


@pytest.mark.requirement("sources.opencode.live.control")
async def test_words_that_come_as_the_session_falls_idle_are_answered_in_the_turn(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        turn = await drive.submit("it hurries")
        await drive.wait_for_fact("model.delta")
        await drive.runtime.steer("thread", "and now this")
        outcome = await drive.wait_for_end(turn)

    assert (outcome.status, outcome.answers) == ("completed", ["Already ", "and now this"])


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_each_question_gets_the_answer_of_its_own_form(tmp_path: Path):
    payloads: dict[str, Any] = {
        "Allow bash: make": {"decision": "approve", "response": "always"},
        "Allow external_directory: /etc/*": {"decision": "deny", "reason": "not there"},
        "Which?": {"decision": "answer", "response": "Red"},
        "Which?\nHow big?": {"decision": "answer", "response": {"Size": ["L", "XL"]}},
    }
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn(
            "it asks", decide=lambda action: payloads.get(action.prompt or "", "approve")
        )

    assert json.loads(outcome.answers[-1]) == [
        ["/permission/req_0/reply", {"reply": "always"}],
        ["/permission/req_1/reply", {"reply": "once"}],
        ["/permission/req_2/reply", {"reply": "reject", "message": "not there"}],
        ["/question/req_3/reply", {"answers": [["Red"]]}],
        ["/question/req_4/reply", {"answers": [[], ["L", "XL"]]}],
    ]


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_each_question_can_be_denied_and_a_rule_denies_before_anybody_is_asked(
    tmp_path: Path,
):
    policy = Policy.of(deny=["Bash(make)"])
    # A yes that is chosen beside a no is no yes.
    no = {"decision": "deny", "response": "always"}
    async with driven(make_agent(tmp_path), tmp_path, policy=policy) as drive:
        outcome = await drive.turn("it asks", decide=lambda _action: no)

    replies = json.loads(outcome.answers[-1])
    assert replies[0][1]["reply"] == "reject"
    assert "policy" in replies[0][1]["message"]
    assert replies[1:] == [
        ["/permission/req_1/reply", {"reply": "reject"}],
        ["/permission/req_2/reply", {"reply": "reject"}],
        ["/question/req_3/reject", None],
        ["/question/req_4/reject", None],
    ]
    assert len(outcome.facts_of_class("action.required")) == 4
    assert len(outcome.facts_of_class("permission.denied")) == 1


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_a_question_that_opencode_settles_is_closed(tmp_path: Path):
    async with driven(make_agent(tmp_path), tmp_path) as drive:
        outcome = await drive.turn("it settles")

    assert [each["decision"] for each in outcome.payloads_of("action.resolved")] == ["denied"]
    assert (outcome.status, outcome.payloads_of("runtime.warning")) == ("completed", [])


@pytest.mark.requirement("sources.opencode.live.policy")
@pytest.mark.parametrize(
    ("permission", "metadata", "args", "judged"),
    [
        (
            "bash",
            {"command": "make"},
            {"workdir": "sub"},
            {"cwd": "/w/sub", "command": "make", "folders": frozenset[str]()},
        ),
        ("bash", {}, {}, None),
        ("edit", {"filepath": "/w/a", "diff": "+1"}, {}, {"paths": ("/w/a",), "diff": "+1"}),
        (
            "edit",
            {"files": [{"filePath": "/w/a", "movePath": "/w/b"}], "filepath": "a, b"},
            {},
            {"paths": ("/w/a", "/w/b")},
        ),
        ("edit", {"filepath": "a, b"}, {}, None),
        ("read", {}, {"filePath": "a"}, {"paths": ("/w/a",)}),
        ("webfetch", {"url": "https://example.org"}, {}, {"url": "https://example.org"}),
        ("external_directory", {}, {"command": "ls"}, None),
        ("calc_add", {}, {"a": 1}, {"args": {"a": 1}}),
    ],
)
async def test_a_rule_sees_what_will_be_done_or_nothing(
    permission: str,
    metadata: dict[str, Any],
    args: dict[str, Any],
    judged: dict[str, Any] | None,
):
    telling = FactBuilder("opencode", thread_id="t")
    telling.start_tool("call", "tool", args)
    questions = {"permission": permission, "metadata": metadata, "tool": {"callID": "call"}}
    question = read_question("permission.asked", questions, telling, "/w")
    expected = None if judged is None else PolicyRequest(tool=permission, workspace="/w", **judged)

    assert question.to_request() == expected


ANSWERS: list[tuple[Any, list[list[str]]]] = [
    (["Red", "L"], [["Red"], ["L"]]),
    ([["Red"], ["L", "XL"]], [["Red"], ["L", "XL"]]),
    ({"answers": [["Red"]]}, [["Red"], []]),
    ({"Which?": "Red", "Size": 3}, [["Red"], ["3"]]),
    (None, [[], []]),
]


@pytest.mark.requirement("sources.opencode.live.approvals")
@pytest.mark.parametrize(("response", "answers"), ANSWERS)
async def test_answers_are_read_by_place_or_by_name(response: Any, answers: list[list[str]]):
    one, two = {"header": "Colour", "question": "Which?"}, {"header": "Size"}
    questions = {"id": "q", "questions": [one, two]}
    question = read_question(
        "question.asked", questions, FactBuilder("opencode", thread_id="t"), "/w"
    )
    decision = Decision(action_id="a", allowed=True, decision="answered", response=response)

    assert question.to_reply(decision) == ("/question/q/reply", {"answers": answers})


@pytest.mark.requirement("sources.opencode.live.approvals")
async def test_an_odd_request_is_never_answered_by_a_yes_that_nobody_gave():
    telling = FactBuilder("opencode", thread_id="t")
    telling.start_tool("call", "bash", {"command": "make", "workdir": "sub"})
    about = {"id": "q", "sessionID": "s", "tool": {"callID": "call"}}
    metadata = {"command": "make", "filepath": "/w/a", "files": [{"filePath": "/w/a"}], "url": "u"}
    names = ("bash", "edit", "read", "webfetch", "calc")
    questions: list[dict[str, Any]] = [
        *({**about, "permission": name, "metadata": metadata} for name in names),
        {**about, "questions": [{"header": "Colour", "question": "Which?"}]},
    ]
    no = Decision(action_id="", allowed=False, decision="denied", response="always")
    for items in spoil_fields(questions):
        for item in items:
            for kind in ("permission.asked", "question.asked"):
                question = read_question(kind, item, telling, "/w")
                question.to_request()
                path, body = question.to_reply(no)
                assert path.endswith("/reject") or body == {"reply": "reject"}
    for odd in ODD:
        yes = Decision(action_id="", allowed=True, decision="approved", response=odd)
        path, body = read_question("question.asked", questions[-1], telling, "/w").to_reply(yes)
        assert (path, len((body or {})["answers"])) == ("/question/q/reply", 1)


@pytest.mark.requirement("sources.opencode.live.turn")
async def test_a_session_that_opencode_has_lost_is_begun_anew_and_that_is_told(tmp_path: Path):
    async with driven(make_agent(tmp_path, "forgetful"), tmp_path) as drive:
        await drive.turn("it answers")
        outcome = await drive.turn("it answers")

    [warning] = outcome.payloads_of("runtime.warning")
    assert warning["code"] == "session_not_continued"
    assert "no such session" in warning["message"]


@pytest.mark.requirement("sources.opencode.live.turn", "sources.opencode.live.server")
async def test_a_server_gets_what_it_needs_and_a_password_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEST_NAMED", "1")
    monkeypatch.setenv("TEST_OTHER", "1")
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "known to others")
    asks = {"edit": "ask", "bash": {"git *": "allow"}}
    agent = make_agent(tmp_path, env=["TEST_NAMED"], config={"share": "disabled"}, permission=asks)
    async with driven(agent, tmp_path) as drive:
        blobs = drive.runtime.blobs
        image = await blobs.put(b"picture", kind="artifact")
        picture = AssetInput(kind="image", ref=image.ref, media_type="image/png")
        first = await drive.turn("it repeats", input=(picture,))
        outcome = json.loads(first.answers[-1])
        again = json.loads((await drive.turn("it repeats")).answers[-1])

    assert outcome["argv"] == ["serve", "--hostname", "127.0.0.1", "--port", "0"]
    assert outcome["parts"] == ["it repeats", "image/png"]
    assert outcome["settings"] == [{"share": "disabled"}, asks]
    assert outcome["session"]["permission"] == [
        {"permission": "edit", "pattern": "*", "action": "ask"},
        {"permission": "bash", "pattern": "git *", "action": "allow"},
    ]
    assert outcome["names"] == ["TEST_NAMED"]
    assert outcome["key"] != again["key"]


@pytest.mark.requirement("sources.opencode.live.turn")
async def test_what_opencode_does_not_take_is_refused_before_it_runs(tmp_path: Path):
    with pytest.raises(InvalidAgent, match="provider/model"):
        make_agent(tmp_path, model="gpt")
    with pytest.raises(InvalidAgent, match="perhaps"):
        make_agent(tmp_path, permission={"bash": "perhaps"})
    with pytest.raises(InvalidAgent, match="colour"):
        make_agent(tmp_path, colour="red")
    with pytest.raises(NotInstalled, match="npm install -g opencode-ai"):
        live.agent(AgentSettings(kind="opencode", options={"command": str(tmp_path / "none")}))
