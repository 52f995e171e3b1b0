"""The openai agent: what endpoints do wrong, and what must not reach them or come from them."""

import logging
from pathlib import Path

import pytest

from factwire.runtime.agents.openai_agent import FAILURE_MEANINGS, Endpoint, endpoint_of
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from tests.runtime.agents import facts_of, wait_for_end
from tests.runtime.fake_model import FakeModel, Reply, chunk, event, refusal, text
from tests.runtime.fake_model_runs import KEY, VARIABLE, Talk, agent, talk
from tests.runtime.toolboxes import Kept, assert_sound

pytestmark = pytest.mark.asyncio

PARTLY = (chunk({"role": "assistant"}), chunk({"content": "The answer is"}))

REFUSALS = {
    "unauthorized": refusal(401, f"Incorrect API key provided: {KEY}."),
    "model_not_found": refusal(404, "no model called tiny", code="model_not_found"),
    "rate_limited": refusal(429, "slow down"),
    "quota_exceeded": refusal(429, "nothing left", code="insufficient_quota"),
    "request_rejected": refusal(400, "temperature is not supported"),
    "context_too_long": refusal(400, "too long", code="context_length_exceeded"),
    "endpoint_error": refusal(500, "out of order"),
}

RUBBISH = {
    "a page": Reply((b"<html>It works!</html>",), 200, "text/html"),
    "no JSON": Reply((b"data: {nonsense\n\n",)),
    "an empty stream": Reply((b"data: [DONE]\n\n",)),
    "another shape": Reply((event({"choices": "none"}),)),
    "nothing to say": text(""),
}


@pytest.mark.requirement("runtime.agents.openai.failures")
@pytest.mark.parametrize("category", REFUSALS)
async def test_a_refusal_fails_the_turn_with_its_category_and_a_hint(tmp_path: Path, category: str):
    done, _ = await talk(tmp_path, REFUSALS[category], key=True)

    assert done.status == "failed"
    assert done.failure["failureCategory"] == category
    assert done.failure["recoveryHint"] == FAILURE_MEANINGS[category].hint
    [failed] = done.facts_of_class("model.failed")
    [requested] = done.facts_of_class("model.requested")
    assert failed.payload["failureCategory"] == category
    assert failed.message_id == requested.message_id
    assert done.state.runtime.failure_category == category


@pytest.mark.requirement("runtime.agents.openai.key")
async def test_an_endpoint_that_repeats_the_key_is_not_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG):
        done, _ = await talk(tmp_path, REFUSALS["unauthorized"], key=True)

    assert done.failure["message"].endswith("401 Incorrect API key provided: [redacted].")
    assert KEY not in str(done.state)
    assert KEY not in caplog.text


@pytest.mark.requirement("runtime.agents.openai.failures")
@pytest.mark.parametrize("what", RUBBISH)
async def test_rubbish_is_told_from_an_answer(tmp_path: Path, what: str):
    done, _ = await talk(tmp_path, RUBBISH[what], RUBBISH[what])

    assert done.status == "failed"
    assert done.failure["failureCategory"] == "invalid_response"
    assert done.answers == []


@pytest.mark.requirement("runtime.agents.openai.failures")
async def test_an_endpoint_that_is_not_there_is_unreachable(tmp_path: Path):
    async with FakeModel() as model:
        absent = agent(model)
    kept = Kept(tmp_path)
    async with kept.run_agents({"openai": absent}) as runtime:
        await runtime.submit("thread", "openai", "hello", turn_id="turn")
        status = await wait_for_end(runtime, "turn")
        done = Talk(status, await facts_of(runtime), await runtime.state("thread"))

    assert_sound(done.facts)
    assert done.failure["failureCategory"] == "endpoint_unreachable"


@pytest.mark.requirement("runtime.agents.openai.failures")
async def test_an_endpoint_that_says_nothing_is_silent(tmp_path: Path):
    done, _ = await talk(tmp_path, Reply((), end="hang"), silence_seconds=0.05)

    assert done.failure["failureCategory"] == "endpoint_silent"


@pytest.mark.requirement("runtime.agents.openai.failures")
async def test_an_error_inside_of_a_stream_keeps_its_category(tmp_path: Path):
    error = event({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
    done, _ = await talk(tmp_path, Reply((*PARTLY, error)))

    assert done.failure["failureCategory"] == "rate_limited"


@pytest.mark.requirement("runtime.agents.openai.interrupted")
@pytest.mark.fault
@pytest.mark.parametrize("end", ["cut", "closed", "hang"])
async def test_an_answer_that_breaks_off_is_no_answer(tmp_path: Path, end: str):
    broken = Reply(PARTLY, end=end)  # pyright: ignore[reportArgumentType]
    done, _ = await talk(tmp_path, broken, silence_seconds=2.0 if end == "hang" else 60.0)

    assert done.status == "failed"
    assert done.failure["failureCategory"] == "stream_interrupted"
    assert done.payloads_of("model.completed") == []
    assert done.answers == ["The answer is"]
    [message] = [each for each in done.state.messages if each.role == "assistant"]
    assert message.status == "interrupted"


@pytest.mark.requirement("runtime.agents.openai.interrupted")
@pytest.mark.fault
async def test_without_the_check_for_its_end_a_closed_answer_would_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The test above bites: this is what the library does by itself."""
    monkeypatch.setattr("factwire.runtime.agents.openai_client._PROFILE", {})
    done, _ = await talk(tmp_path, Reply(PARTLY, end="closed"))

    assert done.status == "completed"


@pytest.mark.requirement("runtime.agents.openai.interrupted")
async def test_a_call_that_breaks_off_is_not_made(tmp_path: Path):
    function = {"name": "write", "arguments": '{"path": "a", "content": "'}
    opened = {"index": 0, "id": "call_0", "type": "function", "function": function}
    broken = Reply((chunk({"tool_calls": [opened]}),), end="cut")
    done, _ = await talk(tmp_path, broken)

    assert done.failure["failureCategory"] == "stream_interrupted"
    [tool] = done.state.tools.values()
    assert (tool.state, tool.failure_category) == ("output-error", "interrupted")
    assert not (tmp_path / "workspace" / "a").exists()


@pytest.mark.requirement("runtime.agents.openai.retries")
async def test_every_refusal_and_every_further_attempt_is_a_fact(tmp_path: Path):
    busy = refusal(429, "slow down", retry_after_ms="1")
    down = refusal(503, "not yet", retry_after_ms="1")
    done, model = await talk(tmp_path, busy, down, text("At last."), retries=2)

    assert (done.status, done.answers, len(model.requests)) == ("completed", ["At last."], 3)
    assert done.payloads_of("rate_limit.hit") == [
        {
            "name": "requests",
            "message": "too many requests, attempt 1 of 3",
            "retryAfterMs": 1.0,
        }
    ]
    again = [payload for payload in done.payloads_of("run.status") if "attempt" in payload]
    assert [payload["attempt"] for payload in again] == [1, 2]
    assert done.state.metrics.limits["requests"].hits == 1


@pytest.mark.requirement("runtime.agents.openai.retries")
async def test_after_the_last_attempt_the_turn_fails(tmp_path: Path):
    busy = refusal(429, "slow down", retry_after_ms="1")
    done, model = await talk(tmp_path, *[busy] * 5, retries=2)

    assert done.failure["failureCategory"] == "rate_limited"
    assert (len(model.requests), len(done.facts_of_class("rate_limit.hit"))) == (3, 3)


@pytest.mark.requirement("runtime.agents.openai.wire")
async def test_the_environment_leads_nothing_astray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Proxies, headers and keys that the library would take from there."""
    astray = {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
        "OPENAI_API_KEY": "somebody-elses-key",
        "OPENAI_ADMIN_KEY": "somebody-elses-admin",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_ORG_ID": "somebody-elses-org",
        "OPENAI_PROJECT_ID": "somebody-elses-project",
        "OPENAI_CUSTOM_HEADERS": "X-Extra: somebody-elses-header",
    }
    for name, value in astray.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.lower(), value)
    done, model = await talk(tmp_path, text("Here."))

    assert done.answers == ["Here."]
    [request] = model.requests
    assert "authorization" not in request.headers
    assert "somebody" not in str(request)
    assert {name for name in request.headers if name.startswith("x-")} == {
        "x-stainless-retry-count"
    }


@pytest.mark.requirement("runtime.agents.openai.key")
@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "kéy"])
async def test_a_key_that_is_not_there_fails_the_turn_before_anything_is_asked(
    tmp_path: Path, value: str | None
):
    environment = {} if value is None else {VARIABLE: value}
    done, model = await talk(tmp_path, key=True, environment=environment)

    assert done.failure["failureCategory"] == "key_missing"
    assert VARIABLE in done.failure["message"]
    assert VARIABLE in done.failure["recoveryHint"]
    assert model.requests == []


@pytest.mark.requirement("runtime.agents.openai.key")
async def test_the_usual_key_is_for_openai_alone():
    own = endpoint_of(AgentSettings(kind="openai", model="big"))
    other = endpoint_of(
        AgentSettings(kind="openai", model="big", base_url="http://elsewhere.example/v1")
    )
    environment = {"OPENAI_API_KEY": "theirs"}

    assert own.key(environment) == "theirs"
    assert other.key(environment) is None
    with pytest.raises(TurnFailed, match="OPENAI_API_KEY is not set"):
        own.key({})


@pytest.mark.requirement("runtime.agents.openai.wire")
@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("localhost:11434", "loopback"),
        ("127.0.0.1:8000", "loopback"),
        ("[::1]:8000", "loopback"),
        ("api.localhost", "loopback"),
        ("192.168.1.20:8000", "private"),
        ("10.1.2.3", "private"),
        ("gpu-box", "private"),
        ("models.internal", "private"),
        ("localhost.example", "public"),
        ("8.8.8.8", "public"),
        ("api.example.com", "public"),
    ],
)
async def test_how_far_an_endpoint_is_follows_from_its_name(host: str, place: str):
    assert Endpoint(base_url=f"http://{host}/v1", model="tiny").place == place
