"""`factwire steer` and `queue`: said to a run from another terminal, and refused with a code."""

import json
import re

import pytest

from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import Home, action_in

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.requirement("cli.steer")]


def test_a_turn_is_steered_from_another_process(home: Home):
    with home.background("run", "listens", "go", "--thread", "mine") as running:
        running.until("Listening.")
        answer = home.run("steer", "mine", "to the left")
        assert running.end() == 0
        assert "Heard: to the left." in running.seen
    assert answer.code == 0
    assert answer.out.startswith("pending: steer_")


def test_what_cannot_be_steered_is_refused_or_queued_and_the_queue_can_be_changed(home: Home):
    with home.background("run", "endless", "go", "--thread", "mine") as running:
        running.until("Waiting.")
        refused = home.run("steer", "mine", "left")
        first, second = (
            json.loads(home.run("steer", "mine", text, "--queue", "--json").out)
            for text in ("left", "right")
        )
        listed = home.run("queue", "mine")
        moved = home.run("queue", "mine", "--promote", second["steerId"], "--json")
        left = home.run("queue", "mine", "--remove", first["steerId"])
        missing = home.run("queue", "mine", "--remove", first["steerId"])
    assert (refused.code, refused.err.split(": ")[1]) == (1, "steer_unsupported")
    assert (first["status"], second["status"]) == ("queued", "queued")
    rows = [line.split("  ")[1:] for line in listed.out.splitlines()]
    assert rows == [[first["steerId"], "endless", "left"], [second["steerId"], "endless", "right"]]
    order = [turn["turnId"] for turn in json.loads(moved.out)["turns"]]
    assert order == [second["steerId"], first["steerId"]]
    assert left.out.splitlines()[0].split("  ")[1] == second["steerId"]
    assert (missing.code, "unknown_turn" in missing.err) == (1, True)


@pytest.mark.requirement("cli.queue.held")
def test_what_a_cancel_has_held_waits_at_rest_until_it_is_continued(home: Home):
    with home.background("run", "endless", "go", "--thread", "mine") as running:
        running.until("Waiting.")
        queued = [
            json.loads(home.run("steer", "mine", text, "--queue", "--json").out)["steerId"]
            for text in ("left", "right")
        ]
        assert home.run("cancel", "mine").code == 0
        assert running.end() == 130
    statuses = [
        [turn["status"] for turn in json.loads(home.run(*words, "--json").out)["turns"]]
        for words in (
            ("queue", "mine"),
            ("queue", "mine", "--continue", queued[1]),
            ("queue", "mine", "--continue-all"),
        )
    ]
    assert statuses == [["held", "held"], ["held", "queued"], ["queued", "queued"]]


def test_without_a_run_there_is_nothing_to_steer_and_the_queue_is_read_at_rest(
    factwire: Factwire, home: Home
):
    factwire("run", "echo", "x", "--thread", "mine")
    steered = factwire("steer", "mine", "left")
    assert (steered.code, "turn_not_active" in steered.err) == (1, True)
    assert factwire("queue", "mine").out == "no queued turns\n"
    unknown = factwire("queue", "none")
    assert (unknown.code, "unknown_turn" in unknown.err) == (1, True)
    assert factwire("steer", "mine").code == 2
    assert home.threads()


@pytest.mark.requirement("runtime.standing.lasts")
def test_always_is_given_from_another_process_and_lasts(home: Home):
    asking = ("run", "shell", "true", "--thread", "mine", "--sandbox", "off")
    with home.background(*asking) as waiting:
        seen = waiting.until("factwire deny act_")
        action, shown = action_in(seen), re.findall(r"--hash [0-9a-f]{16}", seen)[0].split()
        wrong = home.run("approve", action, "--always", "ever")
        assert home.run("approve", action, *shown, "--always", "thread").code == 0
        assert waiting.end() == 0
    again = home.run(*asking)
    assert (wrong.code, again.code) == (2, 0)
    assert "factwire approve" not in again.out


@pytest.mark.requirement("cli.rules")
def test_rules_are_shown_before_they_are_granted_listed_and_revoked(home: Home):
    asking = ("run", "shell", "true", "--thread", "mine", "--sandbox", "off")
    for flags in ((), ("--expires-in", "0", "--always", "thread")):
        assert home.run("approve", "act_1", "--expires-in", "60", *flags).code == 2
    with home.background(*asking) as waiting:
        seen = waiting.until("factwire deny act_")
        action, shown = action_in(seen), re.findall(r"--hash [0-9a-f]{16}", seen)[0].split()
        lasting = ("--always", "thread", "--expires-in", "3600")
        approved = home.run("approve", action, *shown, *lasting)
        assert waiting.end() == 0
    listed = home.run("rules", "--json")
    [rule] = json.loads(listed.out)["rules"]
    lines = home.run("rules").out
    revoked = home.run("rules", "--revoke", rule["ruleId"])
    again = home.run("rules", "--revoke", rule["ruleId"])
    folder = rule["folder"]

    assert approved.err.splitlines() == [
        "always: Bash(true)",
        f"  in {folder} alone",
        "  it matches 0 of the last 0 requests",
    ]
    assert (rule["rule"], rule["lasts"], rule["threadId"]) == ("Bash(true)", "thread", "mine")
    until = f"until {rule['expiresAt']}"
    words = [rule["ruleId"], "Bash(true)", f"folder {folder}", "thread mine", until]
    assert lines == "  ".join(words) + "\n"
    assert (revoked.code, revoked.out) == (0, "no standing rules\n")
    assert (again.code, "unknown_standing_rule" in again.err) == (1, True)
