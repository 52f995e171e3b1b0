"""Evidence and reviews: a verdict is only what a fact says."""

import pytest

from tests.projection.fact_maker import FactMaker, as_json, project_facts

IDS = {"turnId": "turn", "evidenceId": "e"}
REVIEW = {**IDS, "reviewId": "r"}


@pytest.mark.requirement("projection.evidence.items")
def test_evidence_is_cited_once_and_described_as_it_says():
    tell = FactMaker()
    state = project_facts(
        tell("evidence.changed", **IDS, payload={"kind": "trace", "title": "T"}, refIds=["blob:1"]),
        tell("evidence.changed", **IDS, payload={"url": "https://example.test"}),
    )
    item = state.evidence.items["e"]
    assert (item.kind, item.title, item.verdict, item.refs) == ("trace", "T", None, ["blob:1"])
    assert [part["type"] for part in as_json(state.messages[0].parts)] == ["evidence-citation"]


@pytest.mark.requirement("projection.evidence.items")
def test_an_export_is_a_status_and_a_ref():
    state = project_facts(FactMaker()("evidence.exported", **IDS, exportRef="blob:x"))
    item = state.evidence.items["e"]
    assert (item.status, item.export_ref) == ("exported", "blob:x")


@pytest.mark.requirement("projection.evidence.reviews")
def test_a_review_without_a_verdict_passes_nothing():
    tell = FactMaker()
    facts = [tell("review.requested", **REVIEW, reviewer="somebody")]
    state = project_facts(*facts)
    assert (state.evidence.reviews["r"].status, state.evidence.items["e"].verdict) == (
        "requested",
        None,
    )
    state = project_facts(*facts, tell("review.completed", **REVIEW))
    assert (state.evidence.reviews["r"].status, state.evidence.reviews["r"].verdict) == (
        "completed",
        None,
    )


@pytest.mark.requirement("projection.evidence.reviews")
def test_a_verdict_reaches_the_evidence_and_its_citation():
    tell = FactMaker()
    state = project_facts(
        tell("evidence.changed", **IDS),
        tell("review.requested", **REVIEW),
        tell("review.verdict", **REVIEW, verdict="fail"),
    )
    assert state.evidence.items["e"].verdict == "fail"
    assert state.evidence.items["e"].review_ids == ["r"]
    assert as_json(state.messages[0].parts)[0]["verdict"] == "fail"
    lanes = [(row.status, row.verdict) for row in state.team_workbench.review_events]
    assert lanes == [("requested", None), ("completed", "fail")]


@pytest.mark.requirement("projection.evidence.trials")
def test_a_trial_is_known_by_its_id():
    tell = FactMaker()
    state = project_facts(
        tell("benchmark.trial.started", trialId="t/1", dataset="d"),
        tell("benchmark.reward.recorded", trialId="t/1", reward=0.5),
        tell("benchmark.trial.completed", trialId="t/1"),
    )
    trial = state.evidence.trials["t/1"]
    assert (trial.status, trial.dataset, trial.reward) == ("completed", "d", 0.5)
