"""`factwire run`, without a terminal: what it prints, how it ends, who can answer meanwhile."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from factwire.facts import read_fact, verify
from tests.cli.cli_commands import COMMAND, Factwire
from tests.cli.cli_homes import PATIENCE, Home, action_in, thread_in
from tests.runtime.agents import SHOWN_HASH

pytestmark = pytest.mark.usefixtures("home")

HASH = ("--hash", SHOWN_HASH)


@pytest.mark.requirement("cli.run.view")
def test_the_answer_is_printed_as_text(factwire: Factwire):
    done = factwire("run", "echo", "hello you")
    thread = thread_in(done.out)
    assert done == (0, f"hello you\n✓ completed · thread {thread}\n", "")


@pytest.mark.requirement("cli.run.view")
def test_lines_and_indents_stay_as_they_were_streamed(factwire: Factwire):
    done = factwire("run", "streams", "same")
    assert done.out.startswith("one\n\n    two\nthree\n✓ completed")


@pytest.mark.requirement("cli.run.view")
def test_a_text_that_turns_out_to_be_another_ends_as_what_it_is(factwire: Factwire):
    done = factwire("run", "streams", "Something else.")
    assert "\nSomething else.\n✓ completed" in f"\n{done.out}"


@pytest.mark.requirement("cli.run.view")
def test_tools_have_their_state_and_the_end_of_their_output(factwire: Factwire):
    allow = ("--allow", "Bash(seq *)", "--sandbox", "off", "--policy", "dontAsk")
    done = factwire("run", "shell", "seq 1 9", *allow)
    assert (done.code, done.err) == (0, "")
    row, *output = done.out.splitlines()
    assert row.startswith("✓ run  seq 1 9  ok  ")
    assert row.endswith(" s")
    assert output[:7] == ["  ⋮", "  4", "  5", "  6", "  7", "  8", "  9"]
    assert output[7].startswith("✓ completed · thread ")


@pytest.mark.requirement("cli.run.view")
def test_warnings_and_retries_are_shown_once_each_and_not_without_end(factwire: Factwire):
    done = factwire("run", "warns", "x")
    notices = [line for line in done.out.splitlines() if line.startswith("! ")]
    assert notices[0].startswith("! gone ")
    assert "\x1b" not in done.out
    assert notices[1:] == [f"! attempt {attempt}" for attempt in range(1, 20)]
    assert "Done.\n" in done.out


@pytest.mark.requirement("cli.run.exit-codes")
def test_how_a_turn_ends_is_the_exit_code(factwire: Factwire):
    failed = factwire("run", "fails", "x")
    assert failed.code == 1
    assert "Trying.\n✗ failed · out_of_luck · it did not work · try again · thread " in failed.out
    assert factwire("run", "echo", "x").code == 0


@pytest.mark.requirement("cli.run.exit-codes")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nobody", "x"), "unknown_agent"),
        (("echo", "x", "--allow", "Bash("), "rule_invalid"),
        (("echo", "x", "--policy", "yolo"), "one of default, acceptEdits, plan, dontAsk"),
        (("echo", "x", "--sandbox", "maybe"), "one of off, prefer, require"),
        (("echo", "x", "--workspace", "missing"), "workspace_missing"),
        (("echo", "x", "--journal", "ftp://x"), "is not a kind of journal"),
    ],
)
def test_what_cannot_start_says_why(factwire: Factwire, arguments: tuple[str, ...], code: str):
    done = factwire("run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert code in done.err


@pytest.mark.requirement("cli.run.exit-codes")
def test_a_folder_outside_the_configured_workspaces_must_be_named(factwire: Factwire, home: Home):
    config = home.folder / "factwire.toml"
    home.configure('workspaces = ["inside"]\n' + config.read_text())
    (home.folder / "inside").mkdir()
    refused = factwire("run", "echo", "x")
    assert refused.code == 2
    assert "workspace_not_allowed" in refused.err
    assert factwire("run", "echo", "x", "--workspace", home.folder / "inside").code == 0
    assert factwire("run", "echo", "x", "--workspace", home.folder).code == 0


@pytest.mark.requirement("cli.run.json")
def test_json_is_every_fact_of_the_turn_and_nothing_else(factwire: Factwire):
    done = factwire("run", "echo", "hello you", "--json")
    facts = [read_fact(json.loads(line), "facts") for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    assert facts[0].event_class == "turn.submitted"
    assert "turn.completed" in [fact.event_class for fact in facts]
    assert list(verify(facts)) == []


@pytest.mark.requirement("cli.run.json")
@pytest.mark.parametrize("arguments", [("--json",), ()])
def test_a_reader_that_leaves_cancels_the_turn(home: Home, arguments: tuple[str, ...]):
    process = subprocess.Popen(
        [*COMMAND, "run", "talks", "x", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **home.environment},
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    try:
        # It talks as fast as it can, so a busy machine takes its time.
        assert process.wait(4 * PATIENCE) in (130, 2)
        assert b"Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "canceled"


@pytest.mark.requirement("cli.run.thread")
def test_a_thread_goes_on_with_what_was_said_before(factwire: Factwire, home: Home):
    first = factwire("run", "echo", "one", "--thread", "mine")
    second = factwire("run", "echo", "two", "--thread", "mine")
    assert (first.out.splitlines()[0], second.out.splitlines()[0]) == ("one", "two")
    (thread,) = home.threads()
    assert (thread["thread"]["threadId"], thread["prompt"]) == ("mine", "one")


@pytest.mark.requirement("cli.answers.live")
def test_how_to_answer_names_the_journal_that_was_named(home: Home):
    with home.background("run", "asks", "x", "--journal", "my runs.db") as running:
        seen = running.until("factwire deny act_")
        path = home.folder / "my runs.db"
        digits = SHOWN_HASH.removeprefix("sha256:")[:16]
        hint = f"factwire approve {action_in(seen)} --hash {digits} --journal '{path}'  or  "
        assert hint in running.until("'\n")
        done = home.run("approve", action_in(seen), "--hash", digits, "--journal", str(path))
        assert (done.code, running.end()) == (0, 0)


@pytest.mark.requirement("cli.run.busy")
def test_a_second_run_on_the_same_journal_says_who_is_in_its_way(home: Home):
    with home.background("run", "asks", "x") as first:
        first.until("factwire approve")
        second = home.run("run", "echo", "x")
        elsewhere = home.run("run", "echo", "x", "--journal", "other.db")
    assert (second.code, second.out) == (2, "")
    assert "journal_busy" in second.err
    assert "--edge" in second.err
    assert elsewhere.code == 0


@pytest.mark.requirement("cli.answers.live")
@pytest.mark.parametrize(("verb", "word"), [("approve", "approved"), ("deny", "denied")])
def test_an_approval_is_answered_from_another_process(home: Home, verb: str, word: str):
    with home.background("run", "asks", "x") as waiting:
        shown = waiting.until("factwire deny act_")
        assert "? Run it?" in shown
        assert "│ make deploy" in shown
        action = action_in(shown)
        (listed,) = home.threads()
        assert (listed["thread"]["status"], listed["live"]) == ("waiting", True)
        assert listed["thread"]["openActions"] == [action]
        answer = home.run(verb, action, *HASH, "--reason", "because", "--json")
        assert json.loads(answer.out)["decision"] == word
        assert waiting.end() == 0
        assert f"It was {word}." in waiting.seen
    late = home.run("deny" if verb == "approve" else "approve", action, *HASH)
    assert late.code == 1
    assert "action_already_decided" in late.err


@pytest.mark.requirement("cli.answers.live")
@pytest.mark.parametrize("which", ["turnId", "threadId"])
def test_a_turn_is_cancelled_from_another_process(home: Home, which: str):
    with home.background("run", "endless", "x", "--json") as running:
        first = json.loads(running.until("tool.started").splitlines()[0])
        answer = home.run("cancel", first[which])
        assert answer == (0, f"cancelled: {first['turnId']}\n", "")
        assert running.end() == 130


@pytest.mark.requirement("cli.answers.refused")
def test_answers_to_nothing_are_refused_with_a_code(factwire: Factwire, home: Home):
    nothing = factwire("approve", "act_none")
    assert nothing.code == 2
    assert "no journal at" in nothing.err
    factwire("run", "echo", "x", "--thread", "mine")
    for verb, target, code in (
        ("approve", "act_none", "unknown_action"),
        ("deny", "act_none", "unknown_action"),
        ("cancel", "trn_none", "unknown_turn"),
        ("cancel", "mine", "turn_ended"),
    ):
        done = factwire(verb, target)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"error: {code}: ")
        refused = factwire(verb, target, "--json")
        assert (refused.code, json.loads(refused.out)["code"]) == (1, code)
    with home.background("run", "asks", "x") as waiting:
        waiting.until("factwire approve")
        assert "unknown_action" in home.run("approve", "act_none").err


@pytest.mark.requirement("cli.run.interrupt")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_cancels_the_turn(home: Home, number: signal.Signals):
    with home.background("run", "endless", "x", "--thread", "mine") as running:
        running.until("Waiting.")
        running.process.send_signal(number)
        assert running.end() == 130
        assert "cancelling…" in running.seen
        assert "- cancelled · interrupted · thread mine" in running.seen
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "canceled"


@pytest.mark.requirement("cli.run.interrupt")
def test_two_signals_leave_the_turn_to_whoever_comes_next(home: Home):
    with home.background("run", "stubborn", "x", "--thread", "mine") as running:
        running.until("Waiting.")
        running.process.send_signal(signal.SIGINT)
        running.until("cancelling…")
        running.process.send_signal(signal.SIGINT)
        assert running.end() == 130
    (left,) = home.threads()
    assert (left["thread"]["status"], left["live"]) == ("running", False)
    assert " stale " in home.run("threads").out
    resumed = home.run("resume", "mine")
    # The stop is on record, or the process was gone before it could be.
    endings = {130: "cancelled · stopped", 1: "runtime_restarted"}
    assert endings[resumed.code] in resumed.out


@pytest.mark.fault
@pytest.mark.requirement("cli.run.killed")
@pytest.mark.parametrize("round_", range(3))
def test_a_run_that_is_killed_in_a_turn_is_closed_and_can_be_tried_again(home: Home, round_: int):
    with home.background("run", "endless", f"round {round_}", "--thread", "mine") as running:
        running.until("Waiting.")
        running.process.kill()
        assert running.end() == -signal.SIGKILL
    closed = home.run("resume", "mine")
    assert closed.code == 1
    assert "✗ failed · runtime_restarted" in closed.out
    again = home.run("resume", "mine", "hello", "--agent", "echo")
    assert again.code == 0
    assert "\nhello\n✓ completed" in again.out
    assert home.run("journal", "verify", str(home.state / "journal.db")).code == 0


@pytest.mark.fault
@pytest.mark.requirement("cli.run.killed")
@pytest.mark.parametrize("verb", ["approve", "deny"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_is_killed_while_it_waits_is_answered_all_the_same(
    home: Home, verb: str, when: str
):
    with home.background("run", "asks", "x", "--thread", "mine") as running:
        action = action_in(running.until("factwire deny act_"))
        running.process.kill()
        running.end()
    word = {"approve": "approved", "deny": "denied"}[verb]
    if when == "before":
        answer = home.run(verb, action, *HASH)
        assert answer.code == 0
        assert "continue with: factwire resume mine" in answer.out
        done = home.run("resume", "mine")
        assert (done.code, done.err) == (0, "")
        assert f"It was {word}." in done.out
    else:
        with home.background("resume", "mine") as resumed:
            resumed.until("factwire deny act_")
            assert home.run(verb, action, *HASH).code == 0
            assert resumed.end() == 0
            assert f"It was {word}." in resumed.seen
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "completed"


@pytest.mark.fault
@pytest.mark.requirement("cli.run.killed")
def test_a_turn_that_was_left_behind_can_be_cancelled(home: Home):
    with home.background("run", "asks", "x", "--thread", "mine") as running:
        action = action_in(running.until("factwire deny act_"))
        running.process.kill()
        running.end()
    assert home.run("cancel", "mine").code == 0
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "canceled"
    late = home.run("approve", action, *HASH)
    assert late.code == 1
    assert "action_already_decided" in late.err


@pytest.mark.requirement("cli.run.view")
def test_other_threads_are_left_alone(home: Home):
    with home.background("run", "asks", "x", "--thread", "waits") as running:
        running.until("factwire deny act_")
        running.process.kill()
        running.end()
    assert home.run("run", "echo", "x", "--thread", "mine").code == 0
    states = {each["thread"]["threadId"]: each["thread"]["status"] for each in home.threads()}
    assert states == {"waits": "waiting", "mine": "completed"}


def test_the_home_of_a_test_is_its_own(home: Home, tmp_path: Path):
    assert home.state.is_relative_to(tmp_path)


@pytest.mark.requirement("cli.answers.unattended")
def test_facts_as_json_do_not_wait_without_a_word(home: Home):
    """Standard output is for a program; who could answer reads standard error."""
    with home.background("run", "asks", "x", "--json") as waiting:
        seen = waiting.until("factwire deny act_")
        assert "? Run it?" in seen
        assert "│ make deploy" in seen
        assert home.run("approve", action_in(seen), *HASH).code == 0
        assert waiting.end() == 0


@pytest.mark.requirement("cli.answers.unattended")
@pytest.mark.parametrize("mode", ["never", "policy"])
def test_a_run_that_nobody_watches_ends_without_an_answer(factwire: Factwire, mode: str):
    done = factwire("run", "asks", "x", "--json", "--approve", mode)
    facts = [read_fact(json.loads(line), "facts") for line in done.out.splitlines()]
    [decided] = [fact.payload for fact in facts if fact.event_class == "action.resolved"]
    assert (decided["decision"], done.code) == ("denied", 0)
    assert decided["reason"] == f"denied by --approve {mode}"
    assert f"denied by --approve {mode}: Run it?" in done.err
    wrong = factwire("run", "asks", "x", "--approve", "always")
    assert (wrong.code, "--approve expects ask, never or policy" in wrong.err) == (2, True)


@pytest.mark.requirement("cli.answers.unattended")
@pytest.mark.parametrize("mode", ["never", "policy"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_thread_that_is_resumed_unattended_ends_without_an_answer(
    home: Home, mode: str, form: tuple[str, ...]
):
    with home.background("run", "asks", "x", "--thread", "mine") as running:
        running.until("factwire deny act_")
        running.process.kill()
        running.end()
    resumed = home.run("resume", "mine", "--approve", mode, *form)
    assert resumed.code == 0
    assert "It was denied." in resumed.out
    assert f"denied by --approve {mode}" in resumed.out + resumed.err
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "completed"
    wrong = home.run("resume", "mine", "--approve", "always")
    assert (wrong.code, "--approve expects ask, never or policy" in wrong.err) == (2, True)


@pytest.mark.requirement("cli.answers.unattended")
def test_the_policy_alone_allows_what_it_allows(factwire: Factwire, home: Home):
    command = ("run", "shell", "touch made", "--sandbox", "off", "--approve", "policy")
    assert factwire(*command).code == 1
    assert not (home.folder / "made").exists()
    assert factwire(*command, "--allow", "Bash(touch *)").code == 0
    assert (home.folder / "made").exists()


@pytest.mark.requirement("cli.answers.exact")
def test_what_is_allowed_from_another_terminal_is_named_by_its_hash(home: Home):
    secret = "hunter2hunter2A9"
    command = f"echo cookie: a={secret}; touch pwned"
    with home.background("run", "shell", command, "--sandbox", "off") as waiting:
        seen = waiting.until("factwire deny act_")
        assert "│ | echo cookie: a=⟦masked⟧; touch pwned" in seen
        assert secret not in seen
        action, [digits] = action_in(seen), re.findall(r"--hash ([0-9a-f]{16}) ", seen)
        blind = home.run("approve", action)
        short = home.run("approve", action, "--hash", digits[:8])
        other = home.run("approve", action, "--hash", "0" * 16)
        still = (home.folder / "pwned").exists()
        assert home.run("approve", action, "--hash", digits).code == 0
        assert waiting.end() == 0
    assert (blind.code, "hash_required: to allow exactly what is shown" in blind.err) == (1, True)
    assert "│ | echo cookie: a=⟦masked⟧; touch pwned" in blind.err
    assert [each.code for each in (short, other)] == [1, 1]
    assert ["action_changed" in each.err for each in (short, other)] == [True, True]
    assert (still, (home.folder / "pwned").exists()) == (False, True)
