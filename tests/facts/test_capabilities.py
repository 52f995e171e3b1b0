"""The capability manifest: what is not said is unknown, and claims do not contradict."""

import msgspec
import pytest

from factwire.facts import MANIFEST_VERSION, CapabilityManifest, is_valid, manifest_issues

PLAIN = CapabilityManifest(agent_id="a1", title="An agent")


@pytest.mark.requirement("capabilities.unknown")
def test_what_a_manifest_does_not_say_is_unknown():
    wire = msgspec.json.decode(msgspec.json.encode(PLAIN))
    assert wire.pop("streaming") == {
        "text": "unknown",
        "reasoning": "unknown",
        "toolArgs": "unknown",
        "toolOutput": "unknown",
    }
    fields = {"agentId", "title", "schemaVersion", "inputs"}
    assert {key: value for key, value in wire.items() if key in fields} == {
        "agentId": "a1",
        "title": "An agent",
        "schemaVersion": MANIFEST_VERSION,
        "inputs": ["text"],
    }
    assert {str(value) for key, value in wire.items() if key not in fields} == {
        "unknown",
        "None",
        "[]",
    }
    assert manifest_issues(PLAIN) == []


@pytest.mark.requirement("capabilities.unknown")
def test_a_manifest_survives_a_round_trip():
    full = CapabilityManifest(
        agent_id="a1",
        title="An agent",
        version="2",
        inputs=("text", "image"),
        approvals="interrupt",
        action_types=("tool_approval",),
        controls=("send", "stop"),
        topologies=("solo_run",),
        event_classes=("model.delta", "text.delta"),
        cancel="yes",
        max_input_characters=9,
    )
    assert manifest_issues(full) == []
    assert msgspec.json.decode(msgspec.json.encode(full), type=CapabilityManifest) == full


@pytest.mark.requirement("capabilities.words")
@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("inputs", "$.inputs[1]"),
        ("action_types", "$.actionTypes[1]"),
        ("controls", "$.controls[1]"),
        ("topologies", "$.topologies[1]"),
        ("event_classes", "$.eventClasses[1]"),
    ],
)
def test_a_word_outside_the_vocabulary_is_information(field: str, path: str):
    known = {
        "inputs": "text",
        "action_types": "clarification",
        "controls": "send",
        "topologies": "solo_run",
        "event_classes": "run.status",
    }
    manifest = msgspec.structs.replace(PLAIN, **{field: (known[field], "their own")})
    (issue,) = manifest_issues(manifest)
    assert issue.path == path
    assert is_valid([issue])


@pytest.mark.requirement("capabilities.contradictions")
def test_no_approvals_and_an_approval_contradict():
    manifest = msgspec.structs.replace(PLAIN, approvals="none", action_types=("tool_approval",))
    (issue,) = manifest_issues(manifest, "$.manifest")
    assert (issue.code, issue.path) == ("schema_mismatch", "$.manifest.approvals")


@pytest.mark.requirement("capabilities.contradictions")
def test_no_cancel_and_a_stop_contradict():
    manifest = msgspec.structs.replace(PLAIN, cancel="no", controls=("stop",))
    (issue,) = manifest_issues(manifest)
    assert (issue.code, issue.path) == ("schema_mismatch", "$.cancel")
