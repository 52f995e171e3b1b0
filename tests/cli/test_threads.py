"""`factwire threads` and `factwire resume`: what there is, and how it goes on."""

import json
from typing import Any

import pytest

from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import Home, action_in
from tests.cli.cli_recordings import HOSTILE
from tests.runtime.agents import SHOWN_HASH

pytestmark = pytest.mark.usefixtures("home")


def list_threads(factwire: Factwire, *arguments: str) -> dict[str, Any]:
    done = factwire("threads", "--json", *arguments)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


@pytest.mark.requirement("cli.threads")
def test_a_fresh_machine_has_no_threads_and_says_how_to_begin(factwire: Factwire, home: Home):
    done = factwire("threads")
    assert (done.code, done.out) == (0, "")
    assert 'factwire run demo "hello"' in done.err
    assert list_threads(factwire) == {"threads": [], "after": None}
    assert not home.state.exists()


@pytest.mark.requirement("cli.threads")
def test_threads_are_listed_by_their_last_activity(factwire: Factwire):
    factwire("run", "echo", "first thing", "--thread", "one")
    factwire("run", "fails", f"second {HOSTILE}", "--thread", "two")
    done = factwire("threads")
    two, one = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert two.startswith("✗ failed    two  ")
    assert "second \\x1b[2J" in two
    assert one.startswith("✓ completed one  ")
    assert "first thing" in one
    found = list_threads(factwire, "--status", "failed")["threads"]
    assert [each["thread"]["threadId"] for each in found] == ["two"]
    assert list_threads(factwire, "--project", "other")["threads"] == []


@pytest.mark.requirement("cli.threads")
def test_a_status_that_there_is_not_is_refused(factwire: Factwire):
    done = factwire("threads", "--status", "lost")
    assert (done.code, done.out) == (2, "")
    assert "expected one of the statuses idle, running" in done.err


@pytest.mark.requirement("cli.threads.pages")
def test_pages_follow_each_other(factwire: Factwire):
    for name in ("one", "two", "three"):
        factwire("run", "echo", "x", "--thread", name)
    names: list[str] = []
    page = list_threads(factwire, "--limit", "2")
    while True:
        names += [each["thread"]["threadId"] for each in page["threads"]]
        if page["after"] is None:
            break
        page = list_threads(factwire, "--limit", "2", "--after", page["after"])
    assert names == ["three", "two", "one"]
    assert "more threads: --after" in factwire("threads", "--limit", "2").err


@pytest.mark.requirement("cli.threads")
@pytest.mark.requirement("cli.threads.stale")
def test_a_thread_that_waits_says_for_what_and_one_that_nobody_runs_is_stale(
    factwire: Factwire, home: Home
):
    with home.background("run", "asks", "x", "--thread", "mine") as running:
        action = action_in(running.until("factwire deny act_"))
        shown = factwire("threads").out
        assert shown.startswith("■ waiting   mine  ")
        assert f"\n    ? factwire approve {action}\n" in shown
        assert list_threads(factwire)["threads"][0]["live"]
        running.process.kill()
        running.end()
    factwire("approve", action, "--hash", SHOWN_HASH)
    assert factwire("threads").out.startswith("▸ stale     mine  ")
    assert not list_threads(factwire)["threads"][0]["live"]


@pytest.mark.requirement("cli.resume")
def test_resuming_shows_the_thread_and_takes_a_new_prompt(factwire: Factwire):
    factwire("run", "echo", "first thing", "--thread", "mine")
    done = factwire("resume", "mine", "second thing")
    assert (done.code, done.err) == (0, "")
    assert "status  ✓ completed" in done.out
    assert "user  first thing" in done.out
    assert "\nsecond thing\n✓ completed · thread mine\n" in done.out
    idle = factwire("resume", "mine")
    assert (idle.code, idle.out.splitlines()[-1]) == (0, "✓ completed · thread mine")


@pytest.mark.requirement("cli.resume")
def test_a_turn_that_failed_is_tried_again(factwire: Factwire):
    factwire("run", "fails", "x", "--thread", "mine")
    again = factwire("resume", "mine", "--retry")
    assert again.code == 1
    assert "✗ failed · out_of_luck" in again.out
    facts = factwire("resume", "mine", "--retry", "--json")
    first = json.loads(facts.out.splitlines()[0])
    assert (first["eventClass"], first["payload"]["attempt"]) == ("turn.submitted", 3)
    factwire("run", "echo", "x", "--thread", "mine")
    refused = factwire("resume", "mine", "--retry")
    assert refused.code == 2
    assert "nothing_to_retry" in refused.err


@pytest.mark.requirement("cli.resume")
def test_a_thread_or_an_agent_that_there_is_not_is_refused(factwire: Factwire):
    assert "no journal at" in factwire("resume", "mine").err
    factwire("run", "echo", "x", "--thread", "mine")
    unknown = factwire("resume", "other")
    assert (unknown.code, unknown.out) == (2, "")
    assert "unknown_thread" in unknown.err
    assert "unknown_agent" in factwire("resume", "mine", "more", "--agent", "nobody").err
