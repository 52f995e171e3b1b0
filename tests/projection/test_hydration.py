"""Hydration: whether a state shows all there is."""

import pytest

from factwire.projection import Projection, thread_read_model
from factwire.projection.limits import GAPS_KEPT, HELD_FACTS
from factwire.projection.session import AGENTS
from tests.projection.telling import THREAD, Telling, as_json, codes, shown, watched

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.hydration.status")
def test_the_status_goes_from_idle_to_live():
    tell = Telling()
    assert Projection(THREAD).state.hydration.status == "idle"
    assert shown(tell("turn.started", **TURN)).hydration.status == "live"


@pytest.mark.requirement("projection.hydration.status")
def test_a_state_from_a_read_model_is_hydrating_until_a_fact_comes():
    tell = Telling()
    model = thread_read_model(shown(tell("turn.started", **TURN), tell("run.status")))
    projection = Projection.from_read_model(model)
    hydration = projection.state.hydration
    assert (hydration.status, hydration.cursor, hydration.event_count) == ("hydrating", 2, 0)
    projection.apply(tell("model.delta", **TURN, delta="x"))
    assert (hydration.status, hydration.cursor, hydration.event_count) == ("live", 3, 1)


@pytest.mark.requirement("projection.hydration.status")
def test_a_read_model_fills_a_hole_up_to_its_cursor():
    tell = Telling()
    facts = [tell("turn.started", **TURN), *(tell("run.status") for _ in range(5))]
    seen = watched([facts[0], facts[4], facts[5]])
    assert seen.state.hydration.status == "stale"
    seen.projection.repair(thread_read_model(shown(*facts[:4])))
    hydration = seen.state.hydration
    assert (hydration.status, hydration.cursor, hydration.gaps) == ("live", 6, [])


@pytest.mark.requirement("projection.hydration.reported")
def test_a_gap_that_the_source_reports_is_stale_until_it_says_that_it_was_mended():
    tell = Telling()
    facts = [
        tell("turn.started", **TURN),
        tell("stream.gap.detected", reason="lost connection"),
        tell("stream.repair.started"),
        tell("stream.repair.completed"),
    ]
    found = [shown(*facts[:count]).hydration.status for count in (1, 2, 3, 4)]
    assert found == ["live", "stale", "repairing", "live"]
    assert codes(shown(*facts)) == ["stream_gap_reported"]


@pytest.mark.requirement("projection.hydration.reported")
def test_texts_are_not_final_while_a_gap_is_reported():
    tell = Telling()
    part = {**TURN, "messageId": "m", "partId": "p"}
    facts = [
        tell("stream.gap.detected"),
        tell("model.completed", **part, text="x"),
        tell("turn.completed", **TURN),
        tell("stream.repair.completed"),
    ]
    before, after = shown(*facts[:3]).messages[0], shown(*facts).messages[0]
    assert (before.status, as_json(before.parts)[0]["state"]) == ("streaming", "streaming")
    assert (after.status, as_json(after.parts)[0]["state"]) == ("final", "final")


@pytest.mark.requirement("projection.hydration.reported")
@pytest.mark.parametrize(
    ("end", "status"), [("turn.completed", "final"), ("turn.canceled", "interrupted")]
)
def test_what_a_turn_left_open_during_a_gap_is_closed_after_the_repair(end: str, status: str):
    tell = Telling()
    state = shown(
        tell("stream.gap.detected"),
        tell("model.delta", **TURN, messageId="m", partId="p", delta="cut"),
        tell(end, **TURN),
        tell("stream.repair.completed"),
    )
    assert state.messages[0].status == status


@pytest.mark.requirement("projection.hydration.gaps")
def test_only_so_many_holes_are_listed():
    tell = Telling()
    seen = watched([tell("turn.started", **TURN)])
    for place in range(3, 3 + 4 * GAPS_KEPT, 2):
        seen.projection.apply(tell("run.status", sequence=place))
    hydration = seen.state.hydration
    assert (len(hydration.gaps), hydration.status) == (GAPS_KEPT, "stale")


@pytest.mark.requirement("projection.hydration.gaps")
def test_holes_that_were_given_up_stay_listed_until_a_snapshot_covers_them():
    tell = Telling()
    projection = Projection(THREAD)
    projection.apply(tell("turn.started", **TURN))
    for place in range(3, 3 + HELD_FACTS + 1):
        projection.apply(tell("run.status", sequence=place))
    hydration = projection.state.hydration
    assert (hydration.status, len(hydration.gaps)) == ("degraded", 1)
    projection.apply(tell("run.status", sequence=2, id="late"))
    assert (hydration.status, hydration.late) == ("degraded", 1)
    projection.apply(tell("snapshot.repaired", sequence=3 + HELD_FACTS + 1))
    assert (hydration.status, hydration.gaps) == ("live", [])


@pytest.mark.requirement("projection.hydration.session")
def test_the_session_is_known_from_the_first_fact_whatever_it_is():
    tell = Telling()
    for name in ("turn.started", "model.delta"):
        state = shown(tell(name, sequence=1, **TURN, delta="x"))
        assert (state.session_id, state.thread_id) == ("session", THREAD)


@pytest.mark.requirement("projection.hydration.agent-sessions")
def test_the_name_that_each_agent_has_for_the_thread_is_kept_up_to_a_bound():
    tell = Telling()
    names = [("a", "one"), ("b", "two"), ("a", "three")]
    facts = [tell("session.updated", agentId=agent, agentSessionId=name) for agent, name in names]
    assert shown(*facts).agent_sessions == {"a": "three", "b": "two"}
    facts += [tell("session.updated", agentId=f"a-{n}", agentSessionId="x") for n in range(40)]
    assert len(shown(*facts).agent_sessions or {}) == AGENTS
