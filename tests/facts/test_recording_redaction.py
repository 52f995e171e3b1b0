"""Redaction of complete recordings, and what validation finds where redaction replaces."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    Fact,
    NameRedactor,
    RecordingRedactor,
    inspect_fact,
    read_fact,
    redact_text,
)
from factwire.facts.foreign_files import WAITING_FACTS
from tests.facts.samples import wire
from tests.facts.secret_corpus import FRAGMENTS, NEGATIVES, POSITIVES

SECRET = "ghp_" + "a1B2c3D4" * 5
TEXTS = (
    st.sampled_from([case.text for case in (*POSITIVES, *NEGATIVES)])
    | st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)
)  # fmt: skip


@st.composite
def recordings(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Deltas of two texts, in any pieces and order; perhaps the turn ends, perhaps not."""
    texts = {"m1": draw(TEXTS), "m2": draw(TEXTS)}
    rows: list[tuple[str, str]] = []
    for name, text in texts.items():
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=5)))
        bounds = [0, *cuts, len(text)]
        rows += [(name, text[a:b]) for a, b in itertools.pairwise(bounds)]
    if draw(st.booleans()):
        rows = sorted(rows, key=lambda row: row[0] == "m1") if draw(st.booleans()) else rows
    facts = [
        wire("model.delta", n, turnId="u", messageId=name, payload={"delta": piece})
        for n, (name, piece) in enumerate(rows, 1)
    ]
    if draw(st.booleans()):
        facts.append(wire("turn.completed", len(facts) + 1, threadId="t", turnId="u"))
    return facts, texts


@pytest.mark.requirement("redaction.recordings")
@given(recordings())
def test_each_text_of_a_recording_is_redacted_as_a_whole_and_nothing_else_is_lost(
    made: tuple[list[dict[str, Any]], dict[str, str]],
):
    values, texts = made
    facts = [read_fact(value) for value in values]
    clean = list(RecordingRedactor().redact(facts))
    assert [fact.id for fact in clean] == [fact.id for fact in facts]
    for name, text in texts.items():
        pieces = [fact.payload["delta"] for fact in clean if fact.message_id == name]
        assert "".join(pieces) == redact_text(text)[0]


@pytest.mark.requirement("redaction.recordings")
def test_a_recording_that_is_cut_keeps_back_what_may_be_half_a_secret():
    halves = [SECRET[:20], SECRET[20:]]
    facts = [
        read_fact(wire("model.delta", n, turnId="u", payload={"delta": half}))
        for n, half in enumerate(halves, 1)
    ]
    redactor = RecordingRedactor()
    shown = [*redactor.feed(facts[0]), *redactor.finish(cut=True)]
    assert [fact.payload for fact in shown] == [{"delta": ""}]


@pytest.mark.requirement("redaction.recordings")
def test_only_so_many_facts_wait_behind_what_may_be_half_a_secret():
    texts = {1: f"key {SECRET[:20]}", 2 * WAITING_FACTS: f"{SECRET[20:]} and more"}
    redactor, fed, shown, most = RecordingRedactor(), 0, list[Fact](), 0
    for n in range(1, 2 * WAITING_FACTS + 1):
        piece = {"delta": texts.get(n, "")}
        name = "model.delta" if n in texts else "run.status"
        shown += redactor.feed(read_fact(wire(name, n, turnId="u", payload=piece)))
        fed += 1
        most = max(most, fed - len(shown))
    assert most == WAITING_FACTS
    assert [fact.sequence for fact in [*shown, *redactor.finish()]] == list(range(1, fed + 1))
    assert "".join(fact.payload["delta"] for fact in shown) == "key [redacted] and more"
    assert redactor.count == 1


@pytest.mark.requirement("redaction.recordings")
def test_ids_with_secrets_stay_different_and_the_same():
    other = SECRET.replace("a1", "z9")
    names = NameRedactor()
    ids = [SECRET, other, SECRET, "plain"]
    facts = [names.feed(read_fact(wire("run.status", 1, runId=name))) for name in ids]
    assert [fact.run_id for fact in facts] == ["[redacted]", "[redacted] 2", "[redacted]", "plain"]
    assert names.count == 3


PLACES: list[tuple[dict[str, Any], str]] = [
    ({"title": "{}"}, "$.title"),
    ({"detail": "{}"}, "$.detail"),
    ({"refIds": ["{}"]}, "$.refIds"),
    ({"artifactRefs": ["{}"]}, "$.artifactRefs"),
    ({"evidenceRefs": ["{}"]}, "$.evidenceRefs"),
    ({"colour": "{}"}, "$.colour"),
    ({"colour": {"deep": ["{}"]}}, "$.colour"),
    ({"payload": {"message": "{}"}}, "$.payload"),
    ({"runId": "{}"}, "$.runId"),
]


def fill(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: fill(item, text) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [fill(item, text) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return text if value == "{}" else value


@pytest.mark.requirement("validation.inline-size")
@pytest.mark.parametrize(("fields", "path"), PLACES)
def test_every_place_of_a_fact_is_held_to_the_limit_of_a_payload(fields: dict[str, Any], path: str):
    big = inspect_fact(wire("run.status", 1, **fill(fields, "word " * 6_500)))
    assert [(issue.code, issue.path) for issue in big] == [("large_payload_inline", path)]
    assert inspect_fact(wire("run.status", 1, **fill(fields, "word " * 6_000))) == []


@pytest.mark.requirement("validation.secret-places")
@pytest.mark.parametrize(("fields", "path"), PLACES[:-1])
def test_every_place_of_a_fact_is_searched_for_secrets(fields: dict[str, Any], path: str):
    (issue,) = inspect_fact(wire("run.status", 1, **fill(fields, f"see {SECRET}")))
    assert (issue.code, issue.path.startswith(path)) == ("secret_leak_risk", True)


@pytest.mark.requirement("validation.inline-size")
def test_the_preview_of_a_ref_in_an_unknown_field_is_held_to_its_limit():
    field = {"ref": "output:1", "preview": "x " * 300}
    (issue,) = inspect_fact(wire("run.status", 1, colour={"a": [field]}))
    assert (issue.code, issue.path) == ("large_payload_inline", "$.colour.a[0].preview")
