"""`factwire run` on a real, if pretended, terminal: questions, keys, Ctrl-C."""

import os
import signal
import stat
import sys
from contextlib import AbstractContextManager

import pytest

from tests.cli.cli_homes import Home, action_in
from tests.cli.terminals import Terminal
from tests.cli.terminals import terminal as on_terminal
from tests.runtime.agents import SHOWN_HASH

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

ALTERNATE = "\x1b[?1049h"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


def terminal(home: Home, *arguments: str) -> AbstractContextManager[Terminal]:
    environment = {**home.environment, "COLUMNS": "100"}
    return on_terminal("run", *arguments, columns=100, folder=home.folder, environment=environment)


@pytest.mark.requirement("cli.run.terminal")
@pytest.mark.requirement("cli.run.asked")
@pytest.mark.parametrize(("key", "word"), [(b"y", "approved"), (b"n", "denied")])
def test_a_question_is_answered_with_a_key_and_all_stays_on_the_screen(
    home: Home, key: bytes, word: str
):
    with terminal(home, "asks", "x") as shown:
        question = shown.until("[?] help")
        assert "? Run it?  medium" in question
        assert "│ make deploy" in question
        assert "[a]" not in question
        shown.press(b"?", "allow exactly what is shown")
        shown.press(b"xa\r " + key, f"It was {word}.")
        assert (shown.end(), shown.restored) == (0, True)
        assert "✓ completed" in shown.seen
        assert ALTERNATE not in question + shown.seen
        assert SHOW_CURSOR in question
        assert shown.seen.rfind(SHOW_CURSOR) >= shown.seen.rfind(HIDE_CURSOR)
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "completed"


@pytest.mark.requirement("cli.run.always")
def test_always_allows_the_same_again_for_the_rest_of_the_run(home: Home):
    with terminal(home, "twice", "echo hi", "--sandbox", "off") as shown:
        question = shown.until("[?] help")
        assert "[a] always allow Bash(echo hi)" in question
        output = shown.press(b"a", "✓ completed")
        assert "✓ allowed by Bash(echo hi)" in output
        assert output.count("ok: True") == 2
        assert shown.end() == 0


@pytest.mark.requirement("cli.run.always")
def test_always_is_not_offered_where_a_rule_asks(home: Home):
    arguments = ("twice", "echo hi", "--sandbox", "off", "--ask", "Bash(echo *)")
    with terminal(home, *arguments) as shown:
        assert "always allow" not in shown.until("[?] help")
        shown.press(b"y", "[?] help")
        shown.press(b"n", "✓ completed")
        assert shown.end() == 0


@pytest.mark.requirement("cli.run.asked")
def test_a_key_that_was_pressed_before_the_question_does_not_answer_it(home: Home):
    os.mkfifo(home.folder / "go")
    with terminal(home, "wait_for_key", "x") as shown:
        shown.until("Ready.")
        shown.write(b"yyyy")
        (home.folder / "go").write_bytes(b"go")
        shown.until("[?] help")
        shown.press(b"n", "It was denied.")
        assert shown.end() == 0


@pytest.mark.requirement("cli.run.asked")
def test_a_question_that_is_answered_elsewhere_is_taken_back(home: Home):
    with terminal(home, "asks", "x") as shown:
        action = action_in(shown.until("[?] help"))
        assert home.run("approve", action, "--hash", SHOWN_HASH).code == 0
        shown.until("approved by ")
        shown.until("It was approved.")
        assert (shown.end(), shown.restored) == (0, True)


@pytest.mark.requirement("cli.run.interrupt")
@pytest.mark.parametrize("agent", ["endless", "asks"])
def test_ctrl_c_cancels_the_turn_and_restores_the_terminal(home: Home, agent: str):
    with terminal(home, agent, "x") as shown:
        shown.until("wait" if agent == "endless" else "[?] help")
        shown.press(b"\x03", "cancelling…")
        shown.until("- cancelled · interrupted")
        assert (shown.end(), shown.restored) == (130, True)
        assert "Traceback" not in shown.seen
    (thread,) = home.threads()
    assert (thread["thread"]["status"], thread["thread"]["openActions"]) == ("canceled", [])


@pytest.mark.requirement("cli.run.interrupt")
def test_ctrl_c_twice_quits_at_once(home: Home):
    with terminal(home, "stubborn", "x") as shown:
        shown.until("wait")
        shown.press(b"\x03", "cancelling…")
        shown.press(b"\x03", "left as it is")
        assert (shown.end(), shown.restored) == (130, True)
    (thread,) = home.threads()
    assert (thread["thread"]["status"], thread["live"]) == ("running", False)


@pytest.mark.requirement("cli.run.interrupt")
def test_a_terminal_that_goes_away_cancels_the_turn(home: Home):
    with terminal(home, "endless", "x") as shown:
        shown.until("wait")
        shown.process.send_signal(signal.SIGHUP)
        assert shown.end() == 130
    (thread,) = home.threads()
    assert thread["thread"]["status"] == "canceled"


@pytest.mark.requirement("cli.run.harmless")
def test_nothing_that_an_agent_says_or_asks_steers_the_terminal(home: Home):
    with terminal(home, "hostile", "x") as shown:
        seen = shown.until("[?] help")
        assert "\\x1b[2J" in seen
        assert "│ rm -rf /" in seen
        seen += shown.press(b"n", "✓ completed")
        assert shown.end() == 0
        assert all(piece not in seen for piece in ("\x1b]0;", "\x1b[2J", "\u202e", "\x07"))


@pytest.mark.requirement("cli.run.first-use")
def test_the_demo_runs_on_a_fresh_machine_without_any_setup(home: Home):
    (home.folder / "factwire.toml").unlink()
    with terminal(home, "demo", "hello") as shown:
        for _ in range(10):
            if "[?] help" not in shown.until_any("[?] help", "✓ completed"):
                break
            shown.seen = ""
            shown.write(b"y")
        assert (shown.end(), shown.restored) == (0, True)
    assert stat.S_IMODE(home.state.stat().st_mode) == 0o700
    (thread,) = home.threads()
    assert (thread["thread"]["status"], thread["prompt"]) == ("completed", "hello")
