"""From runtime facts to UI events, against both tables of the projection contract."""

import msgspec
import pytest
from hypothesis import given

from factwire.facts import RUNTIME_CLASSES, UI_CLASSES, Fact, missing_fields, to_ui_events
from tests.facts import spec, strategies
from tests.facts.samples import fact, full_fact

IDEAS = [
    pytest.param(name, ui, id=f"{idea}: {name}")
    for idea, rows in spec.UI_OF_SOURCE_IDEAS.items()
    for name, ui in rows.items()
]

CARD = {"artifactId": "artifact_1"}


def ui_of(found: Fact) -> list[str | None]:
    return [event.event_class for event in to_ui_events(found)]


def plain_fact(name: str) -> Fact:
    """Complete for its class; a tool's artifact is taken away, since it adds an event."""
    found = full_fact(name)
    return msgspec.structs.replace(found, artifact_id=None) if name.startswith("tool.") else found


@pytest.mark.requirement("ui.agent-runtime-profile")
@pytest.mark.parametrize(("name", "ui"), spec.UI_OF_RUNTIME_SPINE.items())
def test_a_fact_of_the_runtime_spine_is_the_ui_event_of_its_row(name: str, ui: set[str]):
    assert set(ui_of(plain_fact(name))) == ui


@pytest.mark.requirement("ui.source-ideas")
@pytest.mark.parametrize(("name", "ui"), IDEAS)
def test_a_source_idea_is_exactly_its_ui_events(name: str, ui: list[str]):
    assert ui_of(plain_fact(name)) == ui


@pytest.mark.requirement("ui.source-ideas")
def test_every_ui_class_is_made_from_some_runtime_class():
    made = {ui for row in RUNTIME_CLASSES.values() for ui in row.ui}
    # A session's end is told by a UI client; no runtime class states it.
    assert set(spec.UI_CLASSES) - made == {"session.closed"}


@pytest.mark.requirement("ui.complete")
@pytest.mark.parametrize("name", spec.RUNTIME_CLASSES)
def test_every_runtime_class_becomes_ui_events_of_known_classes(name: str):
    events = to_ui_events(full_fact(name))
    assert [event.event_class for event in events][: len(RUNTIME_CLASSES[name].ui)] == list(
        RUNTIME_CLASSES[name].ui
    )
    for event in events:
        assert event.event_class in UI_CLASSES
        assert missing_fields(event, "ui") == []
        assert None not in (event.owner, event.scope, event.phase, event.surface, event.persistence)


@pytest.mark.requirement("ui.ids-kept")
@pytest.mark.parametrize("name", spec.RUNTIME_CLASSES)
def test_a_ui_event_keeps_ids_payload_and_order(name: str):
    source = full_fact(name, payload={"note": "kept"}, custom="kept")
    events = to_ui_events(source)
    for event in events:
        assert event.payload == source.payload
        assert event.extra.items() >= source.extra.items()
        assert (event.turn_id, event.tool_call_id) == (source.turn_id, source.tool_call_id)
    assert [event.sequence for event in events] == [source.sequence, *[None] * (len(events) - 1)]


@pytest.mark.requirement("ui.ids-kept")
@given(strategies.facts())
def test_the_events_of_a_fact_have_ids_of_their_own(source: Fact):
    ids = [event.id for event in to_ui_events(source)]
    assert ids[0] == source.id
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("ui.artifact-card")
@pytest.mark.parametrize("fields", [CARD, {"artifactRefs": ["artifact_1"]}, {"payload": CARD}])
def test_a_tool_fact_that_names_an_artifact_also_is_an_artifact_event(fields: dict[str, object]):
    result = fact("tool.result", toolCallId="call_1", **fields)
    step, card = to_ui_events(result)
    assert (step.event_class, card.event_class) == ("tool.result", "artifact.changed")
    assert card.tool_call_id == "call_1"
    assert card.id == "fact_1#artifact.changed"


@pytest.mark.requirement("ui.artifact-card")
def test_the_card_belongs_to_the_artifacts_and_the_step_to_the_tools():
    step, card = to_ui_events(fact("tool.result", toolCallId="call_1", **CARD))
    assert (step.owner, step.surface) == ("tool", "tool_ui")
    assert (card.owner, card.scope) == ("artifact", "artifact")
    assert (card.surface, card.persistence) == ("artifact_workspace", "artifact_store")


@pytest.mark.requirement("ui.never-promoted")
@pytest.mark.parametrize(
    "name",
    [name for name in spec.RUNTIME_CLASSES if missing_fields(fact(name)) and name != "file.read"],
)
def test_a_fact_that_lacks_its_ids_is_never_promoted(name: str):
    allowed = {"diagnostic.changed", "run.status", "permission.changed", "agent.changed"}
    allowed |= {"agent.completed", "agent.spawned", "agent.handoff", "review.completed"}
    for event in to_ui_events(fact(name)):
        assert missing_fields(event, "ui") == []
        assert event.event_class in allowed


@pytest.mark.requirement("ui.never-promoted")
@pytest.mark.parametrize("name", ["tool.result", "action.resolved", "artifact.changed"])
def test_a_degraded_fact_shows_among_the_diagnostics_and_not_as_completed(name: str):
    (event,) = to_ui_events(fact(name))
    assert event.event_class == "diagnostic.changed"
    assert (event.owner, event.surface, event.phase) == ("diagnostics", "diagnostics", "unknown")


@pytest.mark.requirement("ui.never-promoted")
@pytest.mark.parametrize(
    "name", ["command.started", "process.output", "file.read", "patch.applied"]
)
def test_work_in_a_process_without_a_tool_call_is_run_status(name: str):
    source = fact(name, payload={"commandId": "c", "path": "p", "patchId": "p"})
    assert ui_of(source) == ["run.status"]


@pytest.mark.requirement("ui.unknown-class")
@pytest.mark.parametrize("name", ["never.heard", "done", None])
def test_a_class_that_nobody_knows_is_a_diagnostic(name: str | None):
    source = msgspec.structs.replace(fact(), event_class=name)
    (event,) = to_ui_events(source)
    assert (event.event_class, event.surface) == ("diagnostic.changed", "diagnostics")


@pytest.mark.requirement("ui.stable")
@pytest.mark.parametrize("name", sorted(set(spec.UI_CLASSES) - set(spec.RUNTIME_CLASSES)))
def test_a_ui_event_stays_itself(name: str):
    (event,) = to_ui_events(full_fact(name))
    assert event.event_class == name
    assert to_ui_events(event) == (event,)


@pytest.mark.requirement("ui.stable")
@pytest.mark.parametrize("name", sorted(set(spec.UI_CLASSES) & set(spec.RUNTIME_CLASSES)))
def test_a_class_of_both_tables_is_its_own_ui_event(name: str):
    assert ui_of(plain_fact(name))[0] == name
