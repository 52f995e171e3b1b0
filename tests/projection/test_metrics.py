"""Metrics: routing, cost, limits and figures, as their facts state them."""

from typing import Any

import pytest

from tests.projection.fact_maker import FactMaker, as_json, project_facts

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.metrics.cost")
def test_what_was_recorded_adds_up_and_estimates_are_kept_apart():
    tell = FactMaker()
    state = project_facts(
        tell("cost.estimated", **TURN, totalCostUsd=9),
        tell("cost.recorded", **TURN, inputTokens=10, outputTokens=5, totalCostUsd=0.5),
        tell("cost.recorded", **TURN, totalTokens=100, totalCostUsd=0.25, currency="USD"),
    )
    assert as_json(state.metrics.usage) == {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 115,
        "totalCostUsd": 0.75,
        "records": 2,
        "estimatedCostUsd": 9.0,
        "currency": "USD",
    }


@pytest.mark.requirement("projection.metrics.cost")
@pytest.mark.parametrize("cost", [1.7e308, -1.7e308, 10**400])
def test_costs_that_no_number_can_hold_are_left_out(cost: float):
    tell = FactMaker()
    facts = [tell("cost.recorded", totalCostUsd=cost, inputTokens=-5) for _ in range(3)]
    usage = project_facts(*facts).metrics.usage
    assert (usage.records, usage.input_tokens) == (3, 0)
    assert abs(usage.total_cost_usd) < float("inf")


@pytest.mark.requirement("projection.metrics.limits")
def test_limits_are_known_by_name_and_hits_are_counted():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("rate_limit.hit", payload={"name": "rpm/1", "retryAfterMs": 10}),
        tell("rate_limit.hit", payload={"name": "rpm/1"}),
        tell("quota.low", payload={"remaining": 2}),
        tell("quota.blocked", payload={"remaining": 0}),
    )
    limits = {key: (row.status, row.hits) for key, row in state.metrics.limits.items()}
    assert limits == {"rpm/1": ("hit", 2), "quota": ("blocked", None)}
    assert state.runtime.status == "blocked"


@pytest.mark.requirement("projection.metrics.routing")
def test_a_decision_names_the_model_and_candidates_do_not():
    tell = FactMaker()
    facts = [
        tell("routing.candidates.resolved", **TURN, model="maybe", candidates=["a", "b"]),
        tell("routing.decided", **TURN, model="chosen", provider="p"),
    ]
    assert project_facts(facts[0]).runtime.model is None
    state = project_facts(*facts)
    assert (state.runtime.model, state.runtime.provider) == ("chosen", "p")
    assert [row.decision for row in state.metrics.routing] == ["candidates.resolved", "decided"]


@pytest.mark.requirement("projection.metrics.values")
def test_figures_are_kept_by_name_as_they_were_stated_last():
    tell = FactMaker()
    stated: list[Any] = [1, True, 1.0]
    for value in stated:
        state = project_facts(
            tell("metrics.changed", sequence=1, a=1), tell("metrics.changed", a=value)
        )
        assert repr(state.metrics.values["a"]) == repr(value)
    state = project_facts(
        tell("metrics.changed", sequence=1, payload={"a/b": 1, "list": [], "none": None})
    )
    assert state.metrics.values == {"a/b": 1}


@pytest.mark.requirement("projection.metrics.values")
def test_a_text_among_figures_is_kept_only_where_its_name_says_what_it_is():
    payload = {"model": "large", "unit": "ms", "rawResponse": "anything", "nested": {"steps": 1}}
    state = project_facts(FactMaker()("metrics.changed", payload={**payload, "steps": 3}))
    assert state.metrics.values == {"model": "large", "unit": "ms", "steps": 3}
