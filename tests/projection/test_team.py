"""The team workbench: another view of the same facts."""

import pytest

from factwire.projection.limits import LANE_EVENTS_KEPT
from tests.projection.fact_maker import FactMaker, as_json, project_facts, watch_facts

IDS = {"turnId": "turn", "subagentId": "s", "taskId": "k"}


@pytest.mark.requirement("projection.team.views")
def test_roster_and_board_say_what_subagents_and_tasks_say():
    tell = FactMaker()
    state = project_facts(
        tell("task.created", turnId="turn", taskId="k", payload={"title": "Work"}),
        tell("subagent.spawned", **IDS, payload={"name": "Ada", "role": "coder"}),
        tell("task.delegated", turnId="turn", taskId="k", delegatedTo="s"),
        tell("subagent.completed", **IDS),
        tell("task.completed", turnId="turn", taskId="k"),
    )
    assert as_json(state.team_workbench.roster_nodes) == {
        "s": {
            "memberId": "s",
            "status": "completed",
            "kind": "subagent",
            "name": "Ada",
            "role": "coder",
            "taskId": "k",
        }
    }
    assert as_json(state.team_workbench.work_items) == {
        "k": {"taskId": "k", "status": "completed", "title": "Work", "assignee": "s"}
    }


@pytest.mark.requirement("projection.team.handoff")
@pytest.mark.parametrize(
    ("name", "status", "owner"),
    [
        ("handoff.accepted", "accepted", "b"),
        ("handoff.completed", "completed", "b"),
        ("handoff.rejected", "rejected", None),
    ],
)
def test_a_handoff_changes_the_owner_only_when_it_is_taken(
    name: str, status: str, owner: str | None
):
    tell = FactMaker()
    ids = {"turnId": "turn", "handoffId": "h/1"}
    state = project_facts(
        tell("handoff.requested", **ids, fromAgent="a", toAgent="b"), tell(name, **ids)
    )
    team = state.team_workbench
    assert (team.handoff_events["h/1"].status, team.active_agent) == (status, owner)
    assert [event.status for event in team.lane_events] == ["requested", status]
    assert ("subagent:a>subagent:b:handed_off" in state.graph.edges) == (owner is not None)


@pytest.mark.requirement("projection.team.changed")
def test_the_team_is_described_as_it_says():
    state = project_facts(
        FactMaker()(
            "team.changed",
            teamId="t",
            teamName="Team",
            teamPhase="reviewing",
            topology="review_team",
            activeAgent="a",
            policy={"parallel": 2},
        )
    )
    team = as_json(state.team_workbench)
    assert {key: team[key] for key in ("teamId", "teamName", "teamPhase", "topology")} == {
        "teamId": "t",
        "teamName": "Team",
        "teamPhase": "reviewing",
        "topology": "review_team",
    }
    assert (team["activeAgent"], team["policy"]) == ("a", {"parallel": 2})


@pytest.mark.requirement("projection.team.remote")
def test_a_remote_member_is_known_by_its_channel():
    tell = FactMaker()
    ids = {"turnId": "turn", "channelId": "far"}
    facts = [
        tell("channel.connected", **ids),
        tell("channel.message", **ids, message="hello"),
        tell("channel.disconnected", **ids),
        tell("channel.resumed", **ids),
    ]
    found = [
        project_facts(*facts[:count]).subagents.threads["far"].status for count in (1, 2, 3, 4)
    ]
    assert found == ["connected", "connected", "disconnected", "connected"]
    state = project_facts(*facts)
    assert state.team_workbench.roster_nodes["far"].kind == "remote_teammate"
    assert state.messages == []


@pytest.mark.requirement("projection.bounded")
def test_lanes_are_kept_as_far_as_there_is_room():
    tell = FactMaker()
    seen = watch_facts([tell("turn.started", turnId="turn")])
    for _ in range(LANE_EVENTS_KEPT + 5):
        seen.projection.apply(tell("worker.notification", **IDS, message="ping"))
    team = seen.state.team_workbench
    assert (len(team.notifications), len(team.lane_events)) == (LANE_EVENTS_KEPT, LANE_EVENTS_KEPT)
    assert team.notifications[-1].event_id == seen.state.runtime.latest_event_id
