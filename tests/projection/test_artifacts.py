"""Artifacts: refs, versions and how far preview, diff and export are; never content."""

import pytest

from tests.projection.fact_maker import FactMaker, as_json, project_facts

IDS = {"turnId": "turn", "artifactId": "a"}
REF = {"ref": "artifact:sha256:0", "kind": "artifact", "bytes": 5}


@pytest.mark.requirement("projection.artifact.life")
def test_an_artifact_goes_through_its_life():
    tell = FactMaker()
    facts = [
        tell("artifact.created", **IDS, payload={"kind": "document", "title": "Doc"}),
        tell("artifact.updated", **IDS),
        tell("artifact.failed", **IDS, failureCategory="disk"),
        tell("artifact.deleted", **IDS),
        tell("artifact.changed", **IDS),
    ]
    found = [project_facts(*facts[:count]).artifacts["a"].status for count in range(1, 6)]
    assert found == ["created", "updated", "failed", "deleted", "changed"]
    artifact = project_facts(*facts).artifacts["a"]
    assert (artifact.kind, artifact.title) == ("document", "Doc")


@pytest.mark.requirement("projection.artifact.versions")
def test_versions_are_kept_once_each_with_their_refs():
    tell = FactMaker()
    state = project_facts(
        tell("artifact.versioned", **IDS, versionId="v1", contentRef="blob:1"),
        tell("artifact.versioned", **IDS, versionId="v2", contentRef=REF),
        tell("artifact.preview.ready", **IDS, versionId="v1", previewRef="blob:p"),
    )
    artifact = state.artifacts["a"]
    found = [(row.version_id, row.content_ref, row.preview_ref) for row in artifact.versions]
    assert found == [("v1", "blob:1", "blob:p"), ("v2", REF["ref"], None)]
    assert as_json(state.messages[0].parts)[0]["versionId"] == artifact.version_id


@pytest.mark.requirement("projection.artifact.export")
def test_an_export_is_started_and_ends():
    tell = FactMaker()
    facts = [tell("artifact.created", **IDS), tell("artifact.export.started", **IDS)]
    assert project_facts(*facts).artifacts["a"].export_status == "running"
    done = tell("artifact.export.completed", **IDS, exportRef="blob:e")
    artifact = project_facts(*facts, done).artifacts["a"]
    assert (artifact.export_status, artifact.export_ref, artifact.status) == (
        "completed",
        "blob:e",
        "created",
    )
    failed = tell("artifact.failed", **IDS, sequence=3, failureCategory="export")
    assert project_facts(*facts, failed).artifacts["a"].export_status == "failed"


@pytest.mark.requirement("projection.artifact.card")
def test_a_card_stands_once_in_each_message_that_brought_a_version():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", turnId="turn", messageId="m", delta="x"),
        tell("artifact.created", **IDS),
        tell("artifact.updated", **IDS, payload={"versionId": "v2"}),
        tell("model.delta", turnId="turn", messageId="n", delta="y"),
        tell("artifact.updated", **IDS, payload={"versionId": "v3"}),
    )
    cards = [
        (message.message_id, part["versionId"])
        for message in state.messages
        for part in as_json(message.parts)
        if part["type"] == "artifact-card"
    ]
    assert cards == [("m", "v2"), ("n", "v3")]


@pytest.mark.requirement("projection.artifact.card")
def test_several_artifacts_of_one_fact_are_all_known():
    state = project_facts(
        FactMaker()("artifact.changed", turnId="turn", artifactRefs=["a", "b", "a"])
    )
    assert list(state.artifacts) == ["a", "b"]


@pytest.mark.requirement("projection.artifact.file")
def test_a_changed_file_is_an_artifact_and_a_file():
    tell = FactMaker()
    changed = {"path": "a/b~c.py", "change": "modified", "addedLines": 2, "removedLines": 1}
    state = project_facts(
        tell("file.read", turnId="turn", path="a/b~c.py"),
        tell("file.changed", **IDS, payload=changed),
        tell("file.changed", **IDS, payload=changed),
    )
    assert state.artifacts["a"].kind == "file"
    file = state.coding.files["a/b~c.py"]
    assert (file.reads, file.changes, file.added_lines, file.removed_lines) == (1, 2, 4, 2)
