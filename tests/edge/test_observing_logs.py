"""What an Edge writes to its log, in which form, and what it never writes."""

import asyncio
import fcntl
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from factwire.edge.operations import run_operations
from factwire.edge.startup import EdgeSettings, serve
from factwire.facts import REDACTED
from factwire.serving.guard import SUBPROTOCOL, TOKEN_SUBPROTOCOL
from factwire.serving.limits import LOG_WAITING_BYTES, REFUSALS_PER_MINUTE
from factwire.serving.logs import LogFormat, hide_secret, logger, set_up_logs
from tests.edge.edges import TOKEN, configuration_in, running_edge
from tests.edge.streaming import WAIT, until
from tests.facts.secret_transcripts import COMMON_LINES, fill_lines

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2
WORD = "quaggamire"
WRONG = "a-wrong-token-that-somebody-tried-0123"
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Log:
    """Everything that was logged, line by line."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in found if event in (None, line["event"])]


@pytest.fixture
def log() -> Generator[Log]:
    """The log of an Edge at its most talkative; the process is left as it was."""
    root, ours = logging.getLogger(), logging.getLogger("factwire")
    before = root.handlers, root.level, ours.level
    kept = Log()
    set_up_logs("debug", "json", kept.stream)
    yield kept
    root.handlers = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.logs")
async def test_a_request_is_one_line_with_its_template_and_trace(tmp_path: Path, log: Log):
    async with running_edge(tmp_path) as edge:
        headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        await edge.http.get("/v1/runs/some-run", headers=headers)
        await edge.get("/v1/health")
    [line] = [line for line in log.lines("request") if line["route"] == "/v1/runs/{run_id}"]
    assert line.pop("ms") >= 0
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "method": "GET",
        "route": "/v1/runs/{run_id}",
        "status": 404,
        "trace_id": TRACE,
    }
    [health] = [line for line in log.lines("request") if line["route"] == "/v1/health"]
    assert health["level"] == "debug"
    assert "some-run" not in log.text


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.logs")
async def test_a_stream_is_told_when_it_opens_and_why_it_ends(tmp_path: Path, log: Log):
    async with running_edge(tmp_path) as edge:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with connect(f"{edge.socket_url}/v1/facts", additional_headers=headers):
            await until(lambda: edge.edge.streams.stats().readers == 1)
        await until(lambda: bool(log.lines("stream_closed")))
    [opened], [closed] = log.lines("stream_opened"), log.lines("stream_closed")
    assert (opened["stream"], closed["stream"], closed["reason"]) == ("facts", "facts", "left")
    assert opened["trace_id"] == closed["trace_id"]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.logs")
async def test_start_stop_and_what_was_found_are_told(tmp_path: Path, log: Log):
    async with running_edge(tmp_path) as edge:
        await edge.wait_for_approval((await edge.start("approve"))["runId"])
        slow = await edge.start("sleep 60", agent="shell")
        await edge.wait_for_approval(slow["runId"])
    assert log.lines("edge_recovered")[0]["waiting"] == 0
    log.stream.truncate(0)
    log.stream.seek(0)
    configuration = configuration_in(tmp_path)
    settings = EdgeSettings(port=0, token=TOKEN)

    def ready(*_: object) -> None:
        logging.getLogger("a.library").warning("mind the %s", "gap")
        signal.raise_signal(signal.SIGTERM)

    async with asyncio.timeout(WAIT):
        await serve(configuration, Path(configuration.workspaces[0]), settings, ready)
    messages = [line["event"] for line in log.lines()]
    assert messages == [
        "edge_recovered",
        "edge_started",
        "mind the gap",
        "edge_stopping",
        "edge_stopped",
    ]
    [found] = log.lines("edge_recovered")
    assert found["closed"] + found["waiting"] == 2
    assert found["waiting"] >= 1
    [warned] = log.lines("mind the gap")
    assert (warned["logger"], warned["level"]) == ("a.library", "warning")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.no-secrets")
async def test_nothing_that_a_client_sends_is_logged(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
):
    async def broken(_: object, new: run_operations.NewRun) -> None:
        raise RuntimeError(f"{new.prompt} of {TOKEN}")

    monkeypatch.setattr(run_operations, "start_run", broken)
    async with running_edge(tmp_path) as edge:
        ticket = (await edge.post("/v1/tickets", status=201))["ticket"]
        headers = {"x-api-key": SECRET, "cookie": f"session={WORD}", "user-agent": WORD}
        for path in (f"/v1/runs/{WORD}", f"/v1/{WORD}?token={SECRET}", f"/v1/runs?status={WORD}"):
            await edge.http.get(path, headers=headers)
            await edge.http.post(path, json={WORD: SECRET}, headers=headers)
        await edge.http.post("/v1/runs", content=WORD.encode(), headers=headers)
        answer = await edge.http.post("/v1/runs", json={"agentId": "demo", "prompt": SECRET})
        assert answer.status_code == 500
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as stranger:
            await stranger.get("/v1/runs", headers={"authorization": f"Bearer {WRONG}"})
            await stranger.get(f"/v1/events?ticket={ticket}x")
        url = f"{edge.socket_url}/v1/facts?ticket={ticket}"
        async with connect(url, additional_headers={"x-note": WORD}):
            await until(lambda: bool(log.lines("stream_opened")))
        offered = [Subprotocol(SUBPROTOCOL), Subprotocol(TOKEN_SUBPROTOCOL + TOKEN)]
        async with connect(f"{edge.socket_url}/v1/facts", subprotocols=offered):
            await until(lambda: len(log.lines("stream_opened")) == 2)
    for secret in (TOKEN, WRONG, ticket, SECRET, WORD):
        assert secret not in log.text
    [failed] = log.lines("request_failed")
    assert failed["route"] == "/v1/runs"
    assert failed["trace_id"] == answer.json()["traceId"]
    assert f"RuntimeError: {REDACTED} of {REDACTED}" in failed["exception"]


@pytest.mark.requirement("edge.observing.no-secrets")
@pytest.mark.parametrize("form", ["json", "text"])
def test_secrets_in_errors_and_warnings_of_libraries_are_hidden(log: Log, form: LogFormat):
    set_up_logs("info", form, log.stream)
    shown = hide_secret("our-own-token-which-has-no-form")
    texts = (f"password={SECRET}", "our-own-token-which-has-no-form")
    for text in texts:
        error = ValueError(text)
        logging.getLogger("uvicorn.error").error("failed with %s", text, exc_info=error)
        logger("factwire.edge").warning("odd", detail=text, error=error, exc_info=error)
        logging.getLogger("py.warnings").warning("%s", f"somewhere.py:1: UserWarning: {text}")
    for secret in (SECRET, "our-own-token-which-has-no-form"):
        assert secret not in log.text
    assert log.text.count(REDACTED) >= 6
    shown()
    logger("factwire.edge").warning("our-own-token-which-has-no-form")
    assert "our-own-token-which-has-no-form" in log.text


@pytest.mark.requirement("edge.observing.logs")
def test_text_is_for_people_and_steers_no_terminal(log: Log):
    set_up_logs("info", "text", log.stream)
    payload = logger("factwire.edge")
    payload.info("request", route="/v1/runs/{run_id}", status=200, detail="two words")
    payload.warning("odd\nline \x1b[31m", detail="\x1b]0;title\x07", exc_info=ValueError("\x9b31m"))
    payload.debug("unheard")
    first, second, *trace = log.text.splitlines()
    assert first.endswith('INFO    request route=/v1/runs/{run_id} status=200 detail="two words"')
    assert second.endswith(r'WARNING odd\nline \x1b[31m detail="\u001b]0;title\u0007"')
    assert trace == [r"ValueError: \x9b31m"]


@pytest.mark.requirement("edge.observing.logs")
def test_auto_is_text_on_a_terminal_and_json_elsewhere(log: Log):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    set_up_logs("warning", "auto", terminal)
    logger("factwire.edge").warning("told")
    logger("factwire.edge").info("untold")
    assert terminal.getvalue().endswith("WARNING told\n")
    set_up_logs("info", "auto", log.stream)
    logger("factwire.edge").info("told")
    assert log.lines("told")[0]["level"] == "info"


@pytest.mark.requirement("edge.observing.logs")
@pytest.mark.parametrize(
    ("options", "level", "events"),
    [
        ((), None, ["edge_recovered", "edge_started", "edge_stopping", "edge_stopped"]),
        (("--log-format", "text"), "warning", []),
    ],
)
def test_the_command_logs_as_it_is_told(
    tmp_path: Path, options: tuple[str, ...], level: str | None, events: list[str]
):
    command = [str(Path(sys.executable).with_name("factwire")), "edge", "--port", "0", *options]
    values = {"HOME": str(tmp_path), "FACTWIRE_TOKEN": TOKEN, "PATH": os.environ["PATH"]}
    environment = values if level is None else {**values, "FACTWIRE_LOG_LEVEL": level}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"listening on" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in errors.splitlines()] == events


@pytest.mark.requirement("edge.observing.unread")
def test_an_edge_whose_log_nobody_reads_goes_on_and_stops(tmp_path: Path):
    command = [str(Path(sys.executable).with_name("factwire")), "edge", "--port", "0"]
    environment = {"HOME": str(tmp_path), "FACTWIRE_TOKEN": TOKEN, "PATH": os.environ["PATH"]}
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4_096)
    with (
        os.fdopen(reading, "rb") as log,
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=writing
        ) as process,
    ):
        os.close(writing)
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].decode().removesuffix("/")
        try:
            with httpx.Client(base_url=url, trust_env=False, timeout=WAIT) as http:
                # Each is a line of more than a hundred bytes.
                answers = [http.get("/v1/runs/none").status_code for _ in range(size // 50)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0
        finally:
            process.kill()
        assert answers == [401] * (size // 50)
        assert size // 2 < len(log.read()) <= size


@pytest.mark.requirement("edge.observing.unread")
def test_lines_that_nobody_read_are_counted_once_somebody_reads(log: Log):
    reading, writing = os.pipe()
    total = 3 * LOG_WAITING_BYTES // 1_000
    with os.fdopen(writing, "w") as stream, os.fdopen(reading, "rb") as pipe:
        set_up_logs("info", "json", stream)
        for number in range(total):
            logger("factwire.test").info("line", number=number, text="x " * 500)
        lines = [json.loads(pipe.readline())]
        while lines[-1]["event"] == "line":
            lines.append(json.loads(pipe.readline()))
        logger("factwire.test").info("later")
        after = json.loads(pipe.readline())
        logging.getLogger().handlers[0].flush()
    kept = [line["number"] for line in lines[:-1]]
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < total
    assert (lines[-1]["event"], lines[-1]["level"]) == ("log_lines_dropped", "warning")
    assert len(kept) + lines[-1]["lines"] == total
    assert after["event"] == "later"
    assert log.text == ""


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.health")
async def test_a_stranger_learns_that_an_edge_is_well_and_who_has_the_token_how(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        await edge.wait_for_approval(run["runId"])
        known = await edge.get("/v1/health")
        details = known.pop("details")
        assert details.pop("uptimeSeconds") > 0
        assert details.pop("feedCursor").startswith("fw1.")
        assert details == {
            "edgeId": edge.machine.edge_id,
            "runtimeId": edge.machine.mint.runtime_id,
            "feed": "live",
            "journalHead": edge.machine.feed.cursor.seq,
            "feedLag": 0,
            "runsActive": 1,
            "runsQueued": 0,
            "approvalsPending": 1,
            "streams": 0,
        }
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as stranger:
            assert (await stranger.get("/v1/health")).json() == known
            assert set(known) == {"status", "version"}
            guess = {"authorization": f"Bearer {WRONG}"}
            for _ in range(REFUSALS_PER_MINUTE):
                assert (await stranger.get("/v1/health", headers=guess)).json() == known
            refused = await stranger.get("/v1/runs", headers=guess)
            assert refused.status_code == 429
        assert "details" in await edge.get("/v1/health")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.observing.no-secrets")
async def test_what_a_command_prints_is_nowhere_with_its_secrets(tmp_path: Path, log: Log):
    """Journal, answers, streams, packs and logs of an Edge whose agent prints secrets."""
    made = [each for each in fill_lines(COMMON_LINES, 7, 1) if not each.text.startswith(NOT_FOUND)]
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "printed.txt").write_text("\n\n".join(each.text for each in made) + "\n")
    async with running_edge(tmp_path) as edge:
        run = await edge.start("cat printed.txt", agent="shell")
        ended = await edge.allow_all(run["runId"])
        thread = run["threadId"]
        pack = await edge.post("/v1/evidence", {"threadId": thread, "withBlobs": True}, status=201)
        paths = (
            f"/v1/facts?threadId={thread}&limit=1000",
            f"/v1/runs/{run['runId']}/events",
            f"/v1/runs/{run['runId']}/logs",
            f"/v1/threads/{thread}/read-model",
            f"/v1/evidence/{pack['evidenceId']}/content",
        )
        answers = {path: (await edge.http.get(path)).content for path in paths}
    assert ended["status"] == "finished"
    assert REDACTED.encode() in answers[paths[0]]
    stored = _files_below(tmp_path, workspace)
    places = {"log": log.text.encode(), **answers, **stored}
    secrets = [secret.encode() for each in made for secret in each.secrets]
    assert len(secrets) > 100
    found = [(s, place) for s in secrets for place, data in places.items() if s in data]
    assert found == []


def _files_below(folder: Path, without: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and without not in path.parents]
    return {str(path): path.read_bytes() for path in files}


NOT_FOUND = ("machine ", "Password for ")
"""Lines whose secrets are known not to be found."""
