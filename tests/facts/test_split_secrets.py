"""Validation finds a secret however the pieces of a text cut it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import inspect_stream
from factwire.facts.secret_shapes import find_secrets
from tests.facts.samples import wire
from tests.facts.secret_corpus import NEGATIVES, POSITIVES

ENDS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"eventClass": "model.completed", "kind": "model", "messageId": "m"},
    {"eventClass": "turn.completed", "threadId": "t"},
)


@st.composite
def cut_texts(draw: st.DrawFn, texts: tuple[str, ...]) -> list[dict[str, Any]]:
    text = draw(st.sampled_from(texts))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(bounds)]
    facts = [
        wire("model.delta", n, turnId="u", messageId="m", payload={"delta": piece})
        for n, piece in enumerate(pieces, 1)
    ]
    end = draw(st.sampled_from(ENDS))
    return facts if end is None else [*facts, wire("x", len(facts) + 1, turnId="u") | end]


def secret_issues(facts: list[dict[str, Any]]) -> list[str]:
    return [it.path for it in inspect_stream(facts) if it.code == "secret_leak_risk"]


@pytest.mark.requirement("validation.split-secrets")
@given(cut_texts(tuple(case.text for case in POSITIVES)))
def test_a_secret_is_found_in_any_pieces(facts: list[dict[str, Any]]):
    assert secret_issues(facts)


@pytest.mark.requirement("validation.split-secrets")
@given(cut_texts(tuple(case.text for case in NEGATIVES)))
def test_text_without_secrets_has_none_in_any_pieces(facts: list[dict[str, Any]]):
    alone = [fact["payload"]["delta"] for fact in facts if "payload" in fact]
    if not any(find_secrets(piece) for piece in alone):
        assert secret_issues(facts) == []


@pytest.mark.requirement("validation.split-secrets")
def test_a_split_secret_is_named_once_at_the_piece_that_completes_it():
    secret = "ghp_" + "a1B2c3D4" * 5
    pieces = ["use ", secret[:12], secret[12:], " and go on"]
    facts = [
        wire("model.delta", n, turnId="u", messageId="m", payload={"delta": piece})
        for n, piece in enumerate(pieces, 1)
    ]
    (issue,) = [it for it in inspect_stream(facts) if it.code == "secret_leak_risk"]
    assert issue.path == "$[3].payload.delta"
    assert issue.message == "looks like a secret split over pieces (value:github)"
    whole = [wire("model.delta", 1, turnId="u", messageId="m", payload={"delta": secret + " x"})]
    assert secret_issues(whole) == ["$[0].payload.delta"]
