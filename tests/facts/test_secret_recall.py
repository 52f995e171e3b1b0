"""How many secrets that were made by rule are hidden, and how many look-alikes are not."""

import json
from collections.abc import Iterable

import pytest

from factwire.facts import read_fact
from factwire.facts.fact import Fact
from factwire.facts.redaction import Redactor, redact_value
from tests.facts.samples import wire
from tests.facts.secret_generators import (
    COMMON,
    LOOK_ALIKES,
    RARER,
    half_of,
    look_alikes,
    made_secrets,
)
from tests.facts.secret_transcripts import (
    COMMON_LINES,
    HARMLESS_LINES,
    RARER_LINES,
    fill_lines,
)

SEEDS = (101, 202)
"""Other ones than those with which the rules were written."""


def _is_hidden(value: object, secrets: tuple[str, ...]) -> bool:
    """Whether no eight characters of a secret in a row are left."""
    clean = redact_value(value)[0]
    text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)
    return not any(
        secret[at : at + 8] in text for secret in secrets for at in range(max(1, len(secret) - 7))
    )


def _share(found: Iterable[bool]) -> float:
    results = list(found)
    assert len(results) >= 150
    return sum(results) / len(results)


@pytest.mark.requirement("redaction.recall")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("half", ["seen", "held_out"])
@pytest.mark.parametrize(
    ("kinds", "least"), [(COMMON, 0.95), (RARER, 0.80)], ids=("common", "rarer")
)
def test_secrets_of_many_kinds_are_hidden(
    kinds: tuple[str, ...], least: float, half: str, seed: int
):
    share = _share(
        _is_hidden(made.value, made.secrets)
        for kind in kinds
        if half_of(kind) == half
        for made in made_secrets(kind, seed, 6)
    )
    assert share >= least


@pytest.mark.requirement("redaction.recall")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("half", ["seen", "held_out"])
def test_what_only_looks_like_a_secret_stays(half: str, seed: int):
    share = _share(
        not redact_value(text)[1]
        for kind in LOOK_ALIKES
        if half_of(kind) == half
        for text in look_alikes(kind, seed, 6)
    )
    assert share >= 0.98


@pytest.mark.requirement("redaction.recall")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("lines", "least"), [(COMMON_LINES, 0.95), (RARER_LINES, 0.80)], ids=("common", "rarer")
)
def test_secrets_in_what_tools_print_are_hidden(lines: tuple[str, ...], least: float, seed: int):
    made = fill_lines(lines, seed, 3)
    assert _share(_is_hidden(each.text, each.secrets) for each in made) >= least


@pytest.mark.requirement("redaction.recall")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_tools_print_without_a_secret_stays(seed: int):
    made = fill_lines(HARMLESS_LINES, seed, 3)
    assert _share(not redact_value(each.text)[1] for each in made) >= 0.98


@pytest.mark.requirement("redaction.key")
def test_a_text_that_was_harmless_elsewhere_is_hidden_under_a_name_of_a_secret():
    """The memory of clean texts must not vouch for them under another key."""
    value = "q7Rk" + "29xWmZ4tLpVb8sYd"

    def fact(number: int, payload: dict[str, str]) -> Fact:
        return read_fact(wire("run.status", number, payload=payload))

    for key in ("auth", "token", "licenseKey", "pass"):
        redactor = Redactor()
        redactor.feed(fact(1, {"note": value, key: "none" if key != "token" else ""}))
        assert redactor.feed(fact(2, {key: value})).fact.payload == {key: "[redacted]"}
