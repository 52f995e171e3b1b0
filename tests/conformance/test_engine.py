"""The conformance engine: good agents pass, each broken one fails exactly what it breaks."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from factwire.conformance import (
    REQUIREMENTS,
    Report,
    Result,
    provider_checks,
    provider_trial,
    try_provider,
)
from factwire.conformance.provider_minimums import MINIMUMS, TrialCourse, run_straight
from factwire.conformance.provider_trial import RecordingProvider
from factwire.conformance.report import build_standings
from factwire.conformance.stream_checks import JudgedStream, check_streams
from factwire.facts import CapabilityManifest
from tests.conformance import broken_providers as agents
from tests.conformance.broken_providers import BROKEN
from tests.conformance.reference_provider import PROMPTS, AsksByFact, Keeps, Promptless, Reference

SECONDS = 20.0
NEEDS_REDUCER = {
    *("screen.early-snapshots", "screen.late-facts", "screen.counts", "screen.recovery"),
    *("screen.child-turns", "screen.one-part", "screen.cancelled-work", "screen.lenient"),
    *("screen.empty-repairs", "screen.restarts", "screen.lost-text", "screen.restored-doubts"),
    *("screen.ui-round-trip", "screen.ui-repeats"),
}


def try_agent(make: Callable[[], Reference], **options: object) -> Report:
    arguments = {"seconds": SECONDS, **options}
    return try_provider(make, name="agent", **arguments)  # pyright: ignore[reportArgumentType]


def result_of(report: Report, name: str) -> Result:
    [found] = [each for each in report.results if each.id == name]
    return found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that has to be cut off is cut off at once."""
    monkeypatch.setattr(provider_trial, "INTERRUPT_SECONDS", 0.2)


@pytest.mark.requirement("conformance.reference")
def test_the_reference_agent_passes_every_requirement():
    report = try_agent(Keeps)
    assert report.failed == set()
    assert (report.conformant, report.level) == (True, "runtime")
    held_to = {
        name for name in REQUIREMENTS if name.startswith(("stream.", "screen.", "provider."))
    }
    passed = {row.id for row in report.requirements if row.status == "passed"}
    assert held_to - passed == {"screen.expected", *NEEDS_REDUCER}


@pytest.mark.requirement("conformance.reference")
@pytest.mark.requirement("provider.approval")
def test_an_agent_may_ask_in_its_own_stream_and_be_told_by_respond_action():
    report = try_agent(AsksByFact)
    assert report.failed == set()
    for name in ("provider.approval", "provider.denial", "stream.approval"):
        assert result_of(report, name).status == "passed"


@pytest.mark.requirement("conformance.broken")
@pytest.mark.requirement("conformance.raw")
@pytest.mark.requirement("stream.schema")
@pytest.mark.requirement("stream.scope-ids")
@pytest.mark.requirement("stream.ids")
@pytest.mark.requirement("stream.sequence")
@pytest.mark.requirement("stream.lifecycle")
@pytest.mark.requirement("stream.terminal")
@pytest.mark.requirement("stream.status")
@pytest.mark.requirement("stream.approval")
@pytest.mark.requirement("stream.failure")
@pytest.mark.requirement("stream.secrets")
@pytest.mark.requirement("stream.size")
@pytest.mark.requirement("stream.input")
@pytest.mark.requirement("screen.final-text")
@pytest.mark.requirement("screen.stable-ids")
@pytest.mark.requirement("provider.manifest")
@pytest.mark.requirement("provider.text")
@pytest.mark.requirement("provider.tool")
@pytest.mark.requirement("provider.approval")
@pytest.mark.requirement("provider.denial")
@pytest.mark.requirement("provider.failure")
@pytest.mark.requirement("provider.retry")
@pytest.mark.requirement("provider.cancel")
@pytest.mark.requirement("provider.resume")
@pytest.mark.requirement("provider.refs")
@pytest.mark.requirement("provider.read-model")
@pytest.mark.parametrize("make", BROKEN, ids=lambda make: make.__name__)
def test_a_broken_agent_fails_exactly_what_it_breaks(make: type[Reference]):
    report = try_agent(make)
    assert report.failed == BROKEN[make]
    assert not report.conformant


def test_there_is_a_broken_agent_for_every_requirement_of_streams_and_agents():
    shown = {name for names in BROKEN.values() for name in names}
    held_to = {name for name in REQUIREMENTS if name.startswith(("stream.", "provider."))}
    # The runtime lets no second turn start, answers requests itself, and repairs by its own read
    # model: these three are shown by recorded streams.
    assert held_to - shown == {"stream.one-turn", "stream.decision", "provider.repair"}


@pytest.mark.requirement("conformance.broken")
def test_a_failure_is_shown_by_the_fact_that_commits_it():
    report = try_agent(agents.GuessesStatus)
    [finding, *_] = result_of(report, "stream.status").findings
    assert finding.fact is not None
    assert (finding.fact["eventClass"], finding.fact["status"]) == ("tool.started", "completed")
    assert finding.path == "$.status"
    assert finding.fact_id == finding.fact["id"]


@pytest.mark.requirement("conformance.raw")
def test_what_the_runtime_mends_is_still_the_agents_fault():
    report = try_agent(agents.InlinesOutput)
    assert report.failed == {"stream.size"}
    assert result_of(report, "provider.tool").status == "passed"
    assert result_of(report, "provider.refs").status == "passed"


@pytest.mark.requirement("conformance.raw")
@pytest.mark.parametrize(
    ("make", "prompt"),
    [(agents.LeaksSecret, "tool"), (agents.InlinesOutput, "tool"), (agents.NeverEnds, "text")],
)
def test_the_journal_alone_would_not_show_it(make: type[Reference], prompt: str):
    """Without the witness, what the runtime mended would look well."""
    play = TrialCourse(
        name=prompt,
        prompt=PROMPTS[prompt],
        witness=RecordingProvider(make()),
        make=lambda: RecordingProvider(make()),
        seconds=SECONDS,
    )
    kept = asyncio.run(run_straight(play))
    mended, _ = check_streams([JudgedStream(items=kept.facts)])
    assert {name for each in mended for name in each.broken} == set()
    results, _ = check_streams(
        [JudgedStream(items=kept.account.items, begun=(play.turn_id,), typed=True)]
    )
    assert {name for each in results for name in each.broken} == BROKEN[make]


@pytest.mark.requirement("conformance.raw")
def test_a_turn_that_the_runtime_had_to_refuse_is_not_judged_twice():
    report = try_agent(agents.InventsCompletion)
    found = result_of(report, "provider.tool")
    assert found.status == "not-applicable"
    assert found.reason == "not judged: what the agent gave breaks stream.lifecycle"


@pytest.mark.requirement("conformance.levels")
@pytest.mark.parametrize(
    ("make", "level"),
    [
        (agents.LeaksSecret, None),
        (agents.DoublesText, "facts"),
        (agents.Raises, "projection"),
        (Keeps, "runtime"),
    ],
)
def test_the_level_is_the_highest_without_a_failure(make: type[Reference], level: str | None):
    assert try_agent(make).level == level


@pytest.mark.requirement("conformance.levels")
def test_only_what_was_asked_for_counts():
    report = try_agent(agents.Raises, level="projection")
    assert (report.conformant, report.level) == (True, "projection")
    assert {each.level for each in report.results} == {"facts", "projection"}
    [row] = [row for row in report.requirements if row.id == "provider.text"]
    assert row.reason == "beyond the level that was asked for, projection"


class OnlyTalks(Keeps):
    """Has neither tools nor approvals, and cannot be stopped."""

    manifest = CapabilityManifest(
        agent_id="talker",
        title="Only talks",
        approvals="none",
        cancel="no",
        resume="no",
        event_classes=("model.delta", "model.completed", "turn.completed", "turn.failed"),
    )


@pytest.mark.requirement("conformance.not-applicable")
def test_what_a_manifest_rules_out_is_named_and_not_passed():
    report = try_agent(OnlyTalks, prompts={})
    assert report.failed == set()
    reasons = {
        each.id: each.reason
        for each in report.results
        if each.status == "not-applicable" and each.id.startswith("provider.")
    }
    assert reasons == {
        "provider.tool": "the manifest names no tool.* among its event classes",
        "provider.approval": "the manifest says approvals: none",
        "provider.denial": "the manifest says approvals: none",
        "provider.cancel": "the manifest says cancel: no",
        "provider.resume": "the manifest says resume: no",
        "provider.refs": "no fact states a ref",
    }
    assert report.counts.not_applicable > len(reasons)


@pytest.mark.requirement("conformance.prompts")
def test_a_minimum_without_a_prompt_has_failed_and_says_how_to_give_one():
    report = try_agent(Promptless, prompts={"text": PROMPTS["text"]})
    needed = {each.requirement for each in MINIMUMS if each.prompt != "text"}
    assert report.failed == needed
    [finding] = result_of(report, "provider.tool").findings
    assert "conformance_prompts['tool']" in finding.message
    assert "--prompt tool=TEXT" in finding.message


@pytest.mark.requirement("conformance.prompts")
def test_prompts_that_are_given_go_before_the_agents_own():
    assert try_agent(Promptless, prompts=PROMPTS).failed == set()
    swapped = {"failure": PROMPTS["text"]}
    assert try_agent(Keeps, prompts=swapped).failed == {"provider.failure"}


@pytest.mark.requirement("conformance.coverage")
def test_a_report_names_every_requirement_and_why_it_was_not_tried():
    report = try_agent(Keeps)
    rows = {row.id: row for row in report.requirements}
    kinds = ("stream.", "screen.", "provider.", "supervisor.")
    assert set(rows) == {name for name in REQUIREMENTS if name.startswith(kinds)}
    assert report.judged == sum(row.status in ("passed", "failed") for row in rows.values())
    untried = [row for row in rows.values() if row.status == "not-tried"]
    assert all(row.reason for row in untried)
    assert rows["screen.expected"].reason == "needs a fixture, which says what it expects"
    silent = try_agent(agents.OnlyRaises)
    assert silent.judged < report.judged
    assert len(silent.requirements) == len(rows)


@pytest.mark.requirement("conformance.coverage")
def test_factwires_own_promises_are_only_in_its_own_report():
    rows = {row.id: row for row in build_standings(())}
    assert set(rows) == set(REQUIREMENTS)
    own = [row for row in rows.values() if row.id.startswith("journal.")]
    assert {row.reason for row in own} == {
        "needs databases, crashes and restarts; tests/journal proves it"
    }


@pytest.mark.requirement("conformance.time")
def test_an_agent_that_hangs_is_a_finding_and_the_others_are_still_tried():
    report = try_agent(agents.Hangs, seconds=1.0)
    assert report.failed == {"provider.tool"}
    [finding] = result_of(report, "provider.tool").findings
    assert finding.message == "tool: the agent did not end within 1 s"
    assert finding.fact is not None
    assert finding.fact["eventClass"] == "tool.started"
    assert result_of(report, "provider.cancel").status == "passed"


@pytest.mark.requirement("conformance.time")
def test_an_agent_that_blocks_its_loop_cannot_take_the_run_along(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(provider_checks, "GRACE_SECONDS", 0.2)
    report = try_agent(agents.Blocks, seconds=0.5)
    [finding] = result_of(report, "provider.tool").findings
    assert "blocked its event loop and could not be stopped" in finding.message
    assert result_of(report, "provider.text").status == "passed"
    assert result_of(report, "provider.cancel").status == "failed"


@pytest.mark.requirement("conformance.discreet")
def test_a_report_repeats_neither_the_secret_nor_the_megabyte():
    for make in (agents.LeaksSecret, agents.InlinesOutput):
        text = msgspec.json.encode(try_agent(make)).decode()
        assert agents.SECRET not in text
        assert "x" * 1_000 not in text
        assert len(text) < 400_000


@pytest.mark.requirement("conformance.time")
def test_an_agent_that_ends_the_process_ends_only_its_trial():
    report = try_agent(agents.Leaves)
    [finding] = result_of(report, "provider.tool").findings
    assert "SystemExit" in finding.message
    assert result_of(report, "stream.schema").status == "passed"
    assert len(report.results) > len(MINIMUMS)


@pytest.mark.requirement("conformance.coverage")
@pytest.mark.parametrize("make", [agents.OnlyRaises, agents.OnlyHangs])
def test_an_agent_that_gives_no_fact_passes_nothing_but_its_manifest(make: type[Reference]):
    report = try_agent(make, seconds=0.5)
    passed = {each.id for each in report.results if each.status == "passed"}
    assert passed <= {"provider.manifest", "provider.read-model"}
    assert (report.conformant, report.level) == (False, None)
    assert result_of(report, "stream.schema").reason == "not judged: no fact was given"
    assert result_of(report, "provider.retry").status != "passed"
