"""Commands against a running Edge, each a process of its own."""

import os
import signal
import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import decode_fact
from factwire.runtime.control import user_name
from tests.cli.cli_commands import CommandOutput, Factwire
from tests.cli.cli_homes import THREAD, Background, Home, action_in, thread_in
from tests.cli.terminals import Terminal
from tests.cli.terminals import terminal as on_terminal
from tests.runtime.agents import SHOWN_HASH

AWAY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Generator[Home]:
    """A home with an Edge, which its commands talk to."""
    home = Home(tmp_path_factory.mktemp("edge"))
    with home.background("edge", "--port", "0") as serving:
        output = serving.until("Ctrl-C to stop")
        address = next(word for word in output.split() if word.startswith("http://"))
        home.environment["FACTWIRE_EDGE"] = address
        yield home


@pytest.fixture
def ask(edge: Home, factwire: Factwire, monkeypatch: pytest.MonkeyPatch) -> Factwire:
    """The command, in this process, where the Edge is; those that must be watched are others."""
    for name, value in edge.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(edge.folder)
    return factwire


def list_threads(ask: Factwire, *arguments: str) -> list[dict[str, Any]]:
    done = ask("threads", "--json", *arguments)
    assert done.code == 0, done.err
    found: dict[str, Any] = msgspec.json.decode(done.out)
    return found["threads"]


def start_run(home: Home, *arguments: str) -> AbstractContextManager[Background]:
    return home.background("run", *arguments)


def terminal(home: Home, *arguments: str) -> AbstractContextManager[Terminal]:
    environment = {**home.environment, "COLUMNS": "100"}
    return on_terminal("run", *arguments, columns=100, folder=home.folder, environment=environment)


@pytest.mark.requirement("cli.edge.run")
def test_a_run_is_shown_like_one_that_runs_here(ask: Factwire):
    for agent, prompt in (("streams", "same"), ("echo", "hi"), ("fails", "x")):
        there = ask("run", agent, prompt)
        here = ask("run", agent, prompt, "--journal", "own.db")
        assert (there.code, _plain(there)) == (here.code, _plain(here))


def _plain(done: CommandOutput) -> str:
    return THREAD.sub("thr", done.out)


@pytest.mark.requirement("cli.edge.run")
def test_facts_are_printed_as_they_become_durable(ask: Factwire):
    done = ask("run", "echo", "hi", "--json")
    facts = [decode_fact(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert "turn.completed" in [fact.event_class for fact in facts]
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))


@pytest.mark.requirement("cli.edge.run")
def test_a_thread_goes_on_where_it_stood(ask: Factwire):
    first = ask("run", "echo", "one")
    thread = thread_in(first.out)
    again = ask("run", "echo", "two", "--thread", thread)
    assert (again.code, thread_in(again.out)) == (0, thread)
    assert "one" not in again.out
    unknown = ask("run", "echo", "x", "--thread", "thr_none")
    assert (unknown.code, "unknown_thread" in unknown.err) == (1, True)


@pytest.mark.requirement("cli.edge.run")
@pytest.mark.parametrize(("key", "word"), [(b"y", "approved"), (b"n", "denied")])
def test_a_question_is_asked_at_the_terminal(edge: Home, key: bytes, word: str):
    with terminal(edge, "asks", "x") as shown:
        assert "│ make deploy" in shown.until("[?] help")
        shown.press(key, f"It was {word}.")
        assert (shown.end(), shown.restored) == (0, True)


@pytest.mark.requirement("cli.edge.run")
def test_ctrl_c_cancels_the_run_on_the_edge(ask: Factwire, edge: Home):
    with terminal(edge, "endless", "x") as shown:
        shown.until("Waiting.")
        shown.press(b"\x03", "- cancelled")
        assert shown.end() == 130
        thread = thread_in(shown.seen)
    (row,) = [each for each in list_threads(ask) if each["threadId"] == thread]
    assert row["activity"] == "canceled"


@pytest.mark.requirement("cli.edge.run")
def test_ctrl_c_twice_leaves_the_run_where_it_is(edge: Home):
    with terminal(edge, "stubborn", "x") as shown:
        shown.until("Waiting.")
        shown.press(b"\x03", "cancelling")
        shown.press(b"\x03", "still running on the Edge")
        assert shown.end() == 130
        assert thread_in(shown.seen)


@pytest.mark.requirement("cli.edge.answers")
def test_approvals_are_decided_from_another_terminal(ask: Factwire, edge: Home):
    with start_run(edge, "asks", "x") as run:
        action = action_in(run.until("factwire approve"))
        shown = ("--hash", SHOWN_HASH)
        assert action in ask("threads", "--status", "waiting").out
        answer = ask("approve", action, *shown, "--reason", "fine")
        who = f"{user_name()} via terminal"
        assert (answer.code, answer.out) == (0, f"approved by {who}: {action}\n")
        assert "It was approved." in run.until("completed")
        assert run.end() == 0
    again = ask("approve", action, *shown, "--json")
    assert msgspec.json.decode(again.out)["answer"] == "decided"
    opposite = ask("deny", action)
    assert (opposite.code, "action_already_decided" in opposite.err) == (1, True)
    unknown = ask("deny", "act_unknown", "--json")
    assert (unknown.code, msgspec.json.decode(unknown.out)["code"]) == (1, "unknown_action")


@pytest.mark.requirement("cli.edge.answers")
def test_a_run_is_cancelled_by_thread_and_not_twice(ask: Factwire, edge: Home):
    with start_run(edge, "endless", "x") as run:
        run.until("Waiting.")
        thread = list_threads(ask, "--status", "running")[0]["threadId"]
        assert ask("cancel", thread, "--reason", "enough").code == 0
        assert "cancelled · enough" in run.until("cancelled ·")
        assert run.end() == 130
    again = ask("cancel", thread)
    assert (again.code, "turn_ended" in again.err) == (1, True)
    unknown = ask("cancel", "thr_none")
    assert (unknown.code, "unknown_turn" in unknown.err) == (1, True)


@pytest.mark.requirement("cli.edge.answers")
def test_a_run_is_steered_and_its_queue_changed(ask: Factwire, edge: Home):
    with start_run(edge, "listens", "x") as run:
        run.until("Listening.")
        thread = list_threads(ask, "--status", "running")[0]["threadId"]
        with start_run(edge, "echo", "second", "--thread", thread) as second:
            waiting = _queued_prompts(ask, thread, "second")
            assert ask("queue", thread, "--promote", waiting).code == 0
            removed = ask("queue", thread, "--remove", waiting)
            assert removed.out == "no queued turns\n"
            assert second.end() == 130
        answer = ask("steer", thread, "go north")
        assert answer.code == 0, answer.err
        assert "Heard: go north." in run.until("completed")
    late = ask("steer", thread, "too late")
    assert (late.code, "turn_not_active" in late.err) == (1, True)


@pytest.mark.requirement("cli.queue.held")
def test_what_a_cancel_has_held_is_listed_and_continued(ask: Factwire, edge: Home):
    with start_run(edge, "endless", "x") as run:
        run.until("Waiting.")
        thread = list_threads(ask, "--status", "running")[0]["threadId"]
        with start_run(edge, "echo", "second", "--thread", thread) as second:
            waiting = _queued_prompts(ask, thread, "second")
            assert ask("cancel", thread).code == 0
            assert run.end() == 130
            listed = ask("queue", thread)
            assert listed.out.split() == ["held", waiting, "echo", "second"]
            released = ask("queue", thread, "--continue", waiting)
            assert released.code == 0, released.err
            assert second.end() == 0
    assert ask("queue", thread, "--continue-all").out == "no queued turns\n"


@pytest.mark.requirement("cli.edge.answers")
def test_what_an_edge_refuses_has_the_code_that_a_runtime_here_would_give():
    from factwire.cli.edge_controls import _CODES
    from factwire.edge.operations.run_operations import REFUSAL_STATUSES
    from factwire.runtime.control import REFUSALS

    theirs = {edge: code for code, (_, edge) in REFUSAL_STATUSES.items() if code in REFUSALS}
    assert {code: _CODES.get(code) for code in theirs} == theirs


def _queued_prompts(ask: Factwire, thread: str, prompt: str) -> str:
    """The id of a run, once it waits."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        rows: list[dict[str, Any]] = msgspec.json.decode(ask("queue", thread, "--json").out)[
            "turns"
        ]
        found = [row["turnId"] for row in rows if row["prompt"] == prompt]
        if found:
            return found[0]
    pytest.fail("nothing waits")


@pytest.mark.requirement("cli.edge.threads")
def test_threads_are_listed_page_by_page(ask: Factwire):
    for _ in range(2):
        ask("run", "echo", "hello there")
    done = ask("threads", "--limit", "1")
    assert "✓ completed" in done.out
    assert "hello there" in done.out
    after = done.err.partition("--after ")[2].strip()
    assert thread_in(ask("threads", "--limit", "1", "--after", after).out) != thread_in(done.out)
    assert ask("threads", "--project", "prj_none").out == ""


@pytest.mark.requirement("cli.edge.tail")
def test_an_edge_is_followed_live_and_from_a_cursor(ask: Factwire, edge: Home):
    with edge.background("tail", "--types", "project,run.finished", "--json") as tail:
        # It says nothing until something happens, so something happens until it says so.
        done = ask("run", "echo", "hi")
        while not (lines := _lines(tail)):
            done = ask("run", "echo", "hi")
    event: dict[str, Any] = msgspec.json.decode(lines[0])
    assert event["type"] == "run.finished"
    thread = thread_in(done.out)
    arguments = ("--facts", "--all", "--thread", thread, "--types", "turn")
    with edge.background("tail", *arguments) as tail:
        seen = tail.until("turn.completed")
        assert "turn.submitted" in seen
        tail.process.send_signal(signal.SIGINT)
        assert tail.end() == 130
    lost = ask("tail", "--cursor", "nonsense")
    assert (lost.code, "cursor_invalid" in lost.err) == (2, True)


def _lines(tail: Background) -> list[str]:
    tail._read(1.0)
    return tail.seen.splitlines()


@pytest.mark.requirement("cli.edge.tail")
def test_a_journal_is_followed_where_no_edge_is_named(home: Home):
    assert home.run("run", "echo", "hi").code == 0
    with home.background("tail", "--all", "--types", "turn") as tail:
        assert "turn.submitted" in tail.until("turn.completed")
    with home.background("tail", "--all", "--json") as tail:
        tail.until("turn.completed")
    assert home.run("tail", "--all", "--cursor", "x").code == 2


@pytest.mark.requirement("cli.edge.conformance")
def test_the_facts_of_a_thread_are_tried_like_a_recording(ask: Factwire, edge: Home):
    thread = thread_in(ask("run", "echo", "hi").out)
    url = edge.environment["FACTWIRE_EDGE"]
    tried = ("conformance", "--url", url, "--level", "facts", "--thread")
    done = ask(*tried, thread, "--json")
    report: dict[str, Any] = msgspec.json.decode(done.out)
    assert (done.code, report["conformant"], report["subject"]["name"]) == (0, True, thread)
    assert report["counts"]["passed"] > 0
    assert ask("conformance", "--url", url).code == 2
    unknown = ask(*tried, "thr_none")
    assert (unknown.code, "unknown_thread" in unknown.err) == (1, True)


@pytest.mark.requirement("cli.edge.target")
def test_one_rule_finds_the_edge_and_its_token(edge: Home, tmp_path: Path):
    stranger = Home(tmp_path)
    url = edge.environment["FACTWIRE_EDGE"]
    no_token = stranger.run("threads", "--edge", url)
    assert (no_token.code, "token_unusable" in no_token.err) == (2, True)
    stranger.environment["FACTWIRE_TOKEN"] = "not-the-token-of-that-edge"
    wrong = stranger.run("threads", "--edge", url)
    assert (wrong.code, "unauthenticated" in wrong.err) == (2, True)
    token = next(edge.state.rglob("edge-token")).read_text().strip()
    stranger.environment["FACTWIRE_TOKEN"] = token
    assert stranger.run("threads", "--edge", url).code == 0
    assert token not in no_token.err + wrong.err


@pytest.mark.requirement("cli.edge.target")
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("threads", "--edge", AWAY), "edge_unreachable"),
        (("threads", "--edge", "nonsense"), "address_invalid"),
        (("threads", "--edge", "https://edge.invalid"), "token_unusable"),
        (("threads", "--edge", AWAY, "--journal", "x.db"), "choose one"),
        (("run", "echo", "x", "--edge", AWAY, "--model", "m", "--deny", "Bash"), "--model, --deny"),
    ],
)
def test_what_keeps_a_command_from_an_edge_is_said_in_one_line(
    ask: Factwire, arguments: tuple[str, ...], word: str
):
    done = ask(*arguments)
    assert (done.code, word in done.err, done.err.count("\n")) == (2, True, 1)


@pytest.mark.requirement("cli.edge.target")
def test_a_journal_that_is_named_comes_before_the_environment(ask: Factwire, edge: Home):
    done = ask("run", "echo", "here", "--journal", os.fspath(edge.folder / "own.db"))
    assert done.code == 0, done.err
    assert thread_in(done.out) not in [row["threadId"] for row in list_threads(ask)]


@pytest.mark.requirement("edge.access.tokens")
def test_tokens_are_created_listed_and_revoked_from_the_command_line(
    ask: Factwire, monkeypatch: pytest.MonkeyPatch
):
    made = ask("edge", "token", "create", "ci bot", "--scope", "read", "--scope", "run")
    secret = made.out.strip()
    assert (made.code, secret[:4]) == (0, "fwt_")
    listed: list[dict[str, Any]] = msgspec.json.decode(ask("edge", "token", "list", "--json").out)
    [row] = listed
    assert (row["name"], row["scopes"]) == ("ci bot", ["read", "run"])
    shown = ask("edge", "token", "list")
    assert "ci bot" in shown.out
    assert secret not in shown.out
    with monkeypatch.context() as limited:
        limited.setenv("FACTWIRE_TOKEN", secret)
        assert ask("threads").code == 0
        refused = ask("edge", "token", "list")
        assert (refused.code, refused.err.split(":")[1].strip()) == (2, "insufficient_scope")
        assert ask("edge", "token", "revoke", row["tokenId"]).code == 2
    assert ask("edge", "token", "revoke", row["tokenId"]).code == 0
    with monkeypatch.context() as limited:
        limited.setenv("FACTWIRE_TOKEN", secret)
        assert ask("threads").code == 2
    assert "unknown_token" in ask("edge", "token", "revoke", row["tokenId"]).err
    assert ask("edge", "token", "create", "x", "--scope", "everything").code != 0


@pytest.mark.requirement("edge.access.who")
def test_what_is_done_in_a_terminal_names_the_configured_person(
    factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FACTWIRE_USER", "Ada Lovelace")
    assert factwire("run", "echo", "hi").code == 0
    out = factwire("journal", "cat", str(home.state / "journal.db")).out
    submitted = [
        fact.payload["by"]
        for line in out.splitlines()
        if (fact := decode_fact(line.encode())).event_class == "turn.submitted"
    ]
    assert submitted == [{"name": "Ada Lovelace", "via": "terminal"}]


@pytest.mark.requirement("cli.journal.compact")
def test_a_running_edge_compacts_its_own_journal(ask: Factwire):
    assert ask("run", "streams", "same").code == 0
    planned = ask("journal", "compact", "--dry-run")
    done = ask("journal", "compact")
    assert (planned.code, done.code) == (0, 0), done.err
    assert planned.out.replace("would remove", "removed") == done.out
    assert "removed 0 facts" in ask("journal", "compact", "--keep-days", "30").out
    wrong = ask("journal", "compact", "--edge", AWAY, "--max-age", "3")
    assert (wrong.code, "with --edge, use --keep-days" in wrong.err) == (2, True)
