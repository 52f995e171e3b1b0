"""Hydration: whether a state shows all there is."""

import pytest

from factwire.projection import Projection, thread_read_model
from factwire.projection.limits import GAPS_KEPT, HELD_FACTS
from factwire.projection.thread_status import AGENT_SESSIONS_PATH
from tests.projection.fact_maker import (
    THREAD,
    FactMaker,
    as_json,
    codes,
    project_facts,
    watch_facts,
)

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.hydration.status")
def test_the_status_goes_from_idle_to_live():
    tell = FactMaker()
    assert Projection(THREAD).state.hydration.status == "idle"
    assert project_facts(tell("turn.started", **TURN)).hydration.status == "live"


@pytest.mark.requirement("projection.hydration.status")
def test_a_state_from_a_read_model_is_hydrating_until_a_fact_comes():
    tell = FactMaker()
    model = thread_read_model(project_facts(tell("turn.started", **TURN), tell("run.status")))
    projection = Projection.from_read_model(model)
    hydration = projection.state.hydration
    assert (hydration.status, hydration.cursor, hydration.event_count) == ("hydrating", 2, 0)
    projection.apply(tell("model.delta", **TURN, delta="x"))
    assert (hydration.status, hydration.cursor, hydration.event_count) == ("live", 3, 1)


@pytest.mark.requirement("projection.hydration.status")
def test_a_read_model_fills_a_hole_up_to_its_cursor():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), *(tell("run.status") for _ in range(5))]
    seen = watch_facts([facts[0], facts[4], facts[5]])
    assert seen.state.hydration.status == "stale"
    seen.projection.repair(thread_read_model(project_facts(*facts[:4])))
    hydration = seen.state.hydration
    assert (hydration.status, hydration.cursor, hydration.gaps) == ("live", 6, [])


@pytest.mark.requirement("projection.hydration.reported")
def test_a_gap_that_the_source_reports_is_stale_until_it_says_that_it_was_mended():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("stream.gap.detected", reason="lost connection"),
        tell("stream.repair.started"),
        tell("stream.repair.completed"),
        tell("stream.repair.completed", toSequence=3),
    ]
    found = [project_facts(*facts[:count]).hydration.status for count in range(1, 6)]
    assert found == ["live", "stale", "repairing", "stale", "live"]
    assert codes(project_facts(*facts)) == ["stream_gap_reported"]


@pytest.mark.requirement("projection.hydration.reported")
def test_texts_are_not_final_while_a_gap_is_reported():
    tell = FactMaker()
    part = {**TURN, "messageId": "m", "partId": "p"}
    facts = [
        tell("stream.gap.detected"),
        tell("model.completed", **part, text="x"),
        tell("turn.completed", **TURN),
        tell("stream.repair.completed", toSequence=3),
    ]
    before, after = project_facts(*facts[:3]).messages[0], project_facts(*facts).messages[0]
    assert (before.status, as_json(before.parts)[0]["state"]) == ("stale", "stale")
    assert (after.status, as_json(after.parts)[0]["state"]) == ("final", "final")


@pytest.mark.requirement("projection.hydration.reported")
@pytest.mark.parametrize(
    ("end", "status"), [("turn.completed", "final"), ("turn.canceled", "interrupted")]
)
def test_what_a_turn_left_open_during_a_gap_is_closed_after_the_repair(end: str, status: str):
    tell = FactMaker()
    state = project_facts(
        tell("stream.gap.detected"),
        tell("model.delta", **TURN, messageId="m", partId="p", delta="cut"),
        tell(end, **TURN),
        tell("stream.repair.completed", toSequence=3),
    )
    assert state.messages[0].status == status


@pytest.mark.requirement("projection.hydration.gaps")
def test_only_so_many_holes_are_listed():
    tell = FactMaker()
    seen = watch_facts([tell("turn.started", **TURN)])
    for place in range(3, 3 + 4 * GAPS_KEPT, 2):
        seen.projection.apply(tell("run.status", sequence=place))
    hydration = seen.state.hydration
    assert (len(hydration.gaps), hydration.status) == (GAPS_KEPT, "stale")


@pytest.mark.requirement("projection.hydration.gaps")
def test_holes_that_were_given_up_stay_listed_until_a_snapshot_covers_them():
    tell = FactMaker()
    projection = Projection(THREAD)
    projection.apply(tell("turn.started", **TURN))
    for place in range(3, 3 + HELD_FACTS + 1):
        projection.apply(tell("run.status", sequence=place))
    hydration = projection.state.hydration
    assert (hydration.status, len(hydration.gaps)) == ("degraded", 1)
    projection.apply(tell("run.status", sequence=2, id="late"))
    assert (hydration.status, hydration.late) == ("degraded", 1)
    projection.apply(tell("snapshot.repaired", sequence=3 + HELD_FACTS + 1, toSequence=HELD_FACTS))
    assert (hydration.status, len(hydration.gaps)) == ("degraded", 1)
    projection.apply(tell("snapshot.repaired", toSequence=HELD_FACTS, messages=[]))
    assert (hydration.status, hydration.gaps) == ("live", [])


@pytest.mark.requirement("projection.hydration.session")
def test_the_session_is_known_from_the_first_fact_whatever_it_is():
    tell = FactMaker()
    for name in ("turn.started", "model.delta"):
        state = project_facts(tell(name, sequence=1, **TURN, delta="x"))
        assert (state.session_id, state.thread_id) == ("session", THREAD)


@pytest.mark.requirement("projection.hydration.agent-sessions")
def test_the_name_that_each_agent_has_for_the_thread_is_kept_up_to_a_bound():
    tell = FactMaker()
    names = [("a", "one"), ("b", "two"), ("a", "three")]
    facts = [tell("session.updated", agentId=agent, agentSessionId=name) for agent, name in names]
    assert project_facts(*facts).agent_sessions == {"a": "three", "b": "two"}
    facts += [tell("session.updated", agentId=f"a-{n}", agentSessionId="x") for n in range(40)]
    assert len(project_facts(*facts).agent_sessions or {}) == AGENT_SESSIONS_PATH


@pytest.mark.requirement("projection.hydration.gaps")
@pytest.mark.parametrize("other", [True, 1.0])
def test_a_fact_that_is_held_is_told_from_another_body_by_its_bytes(other: object):
    """Python takes 1, 1.0 and true for equal; facts that were taken are compared by digest, too."""
    tell = FactMaker()
    held = tell("tool.args", **TURN, toolCallId="c", args={"n": 1}, sequence=3)
    again = tell("tool.args", **TURN, toolCallId="c", args={"n": other}, sequence=3)
    counts: list[tuple[int, int, list[str]]] = []
    for second in (held, again):
        projection = Projection(THREAD, first=1)
        projection.apply_all([held, second])
        state = projection.state
        counts.append((state.hydration.repeated, state.hydration.dropped, codes(state)))
    assert counts == [(1, 0, []), (0, 1, ["conflicting_fact"])]
