"""Redaction of text and nested data: what is hidden, what stays, and that it stays so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts.redaction import (
    RedactionFinding,
    find_in_value,
    find_secret_spans,
    redact_text,
    redact_value,
)
from factwire.facts.secret_key_names import REDACTED
from factwire.facts.secret_shapes import find_secrets
from tests.facts.secret_corpus import FRAGMENTS, NEGATIVES, POSITIVES

KEY = "AK" + "IA" + "ABCDEFGHIJKLMNOP"

close_texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=14).map("".join)
corpus_texts = st.sampled_from([case.text for case in (*POSITIVES, *NEGATIVES)])
texts = close_texts | corpus_texts
keys = st.sampled_from(("a", "password", "tokens", "max_tokens", "a b", "x", KEY, "")) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("redaction.value")
def test_only_the_secret_part_of_a_text_is_replaced():
    text = f"use {KEY} or postgres://app:" + "s3cr3t" + "@db/app, password: hunter2!"
    assert redact_text(text) == (
        "use [redacted] or postgres://[redacted]@db/app, password: [redacted]",
        ["aws-access-key", "url-password", "assignment"],
    )


@pytest.mark.requirement("redaction.nested")
def test_keys_and_values_are_hidden_at_any_depth_with_exact_paths():
    value = {
        "payload": {
            "headers": {"authorization": "Bearer x", "Set-Cookie": ["a=b"], "accept": "*/*"},
            "items": [1, "two", {"client_secret": {"value": "x"}}, f"id {KEY}"],
            "usage": {"totalTokens": 12, "tokens": {"input": 5}},
            "pair": ("plain", KEY),
        }
    }
    redacted, findings = redact_value(value)
    assert redacted == {
        "payload": {
            "headers": {"authorization": REDACTED, "Set-Cookie": REDACTED, "accept": "*/*"},
            "items": [1, "two", {"client_secret": REDACTED}, "id [redacted]"],
            "usage": {"totalTokens": 12, "tokens": {"input": 5}},
            "pair": ("plain", REDACTED),
        }
    }
    assert findings == [
        RedactionFinding("$.payload.headers.authorization", "key:authorization"),
        RedactionFinding('$.payload.headers["Set-Cookie"]', "key:cookie"),
        RedactionFinding("$.payload.items[2].client_secret", "key:secret"),
        RedactionFinding("$.payload.items[3]", "value:aws-access-key"),
        RedactionFinding("$.payload.pair[1]", "value:aws-access-key"),
    ]


@pytest.mark.requirement("redaction.nested")
def test_json_inside_a_string_is_searched():
    arguments = '{"path": "a.txt", "api_key": "' + "abc123def456" + '"}'
    assert redact_value({"arguments": arguments}) == (
        {"arguments": '{"path": "a.txt", "api_key": "[redacted]"}'},
        [RedactionFinding("$.arguments", "value:assignment")],
    )


@pytest.mark.requirement("redaction.key")
def test_a_key_that_is_itself_a_secret_is_replaced_and_not_shown_in_paths():
    other = KEY[:-1] + "Q"
    redacted, findings = redact_value({KEY: 1, other: {"password": "x"}}, "$.payload")
    assert redacted == {"[redacted]": 1, "[redacted] 2": {"password": REDACTED}}
    assert findings == [
        RedactionFinding("$.payload[redacted]", "value:aws-access-key"),
        RedactionFinding("$.payload[redacted]", "value:aws-access-key"),
        RedactionFinding("$.payload[redacted].password", "key:password"),
    ]


@pytest.mark.requirement("redaction.key")
def test_what_is_redacted_already_is_no_finding():
    assert redact_value({"password": REDACTED, "token": None, "secret": ""})[1] == []


@pytest.mark.requirement("redaction.nested")
@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("key", ["plain", "password"])
def test_data_nested_beyond_the_bound_is_replaced_instead_of_followed(kind: type, key: str):
    value: Any = KEY
    for _ in range(10_000):
        value = [value] if kind is list else {"a": value}
    redacted, findings = redact_value({key: value})
    assert len(findings) == 1
    assert redact_value(redacted) == (redacted, [])


@pytest.mark.requirement("redaction.counters-untouched")
def test_data_without_secrets_comes_back_as_the_same_object():
    value: dict[str, Any] = {
        "usage": {"inputTokens": 1, "max_tokens": 4096, "tokenType": "bearer"},
        "tools": [{"parameters": {"api_key": {"type": "string", "description": "a key"}}}],
        "ids": ("task-1", "toolu_01A2b3C4", 3.5, None, True, b"raw"),
    }
    redacted, findings = redact_value(value)
    assert redacted is value
    assert findings == []


def test_the_rest_of_a_changed_value_is_shared_and_the_original_untouched():
    kept = {"a": [1]}
    value = {"kept": kept, "password": "x"}
    redacted, _ = redact_value(value)
    assert value == {"kept": kept, "password": "x"}
    assert isinstance(redacted, dict)
    assert redacted["kept"] is kept


@pytest.mark.requirement("redaction.idempotent")
@given(texts)
def test_redacting_a_text_twice_changes_nothing(text: str):
    redacted, rules = redact_text(text)
    assert (redacted is text) == (not rules)
    assert redact_text(redacted) == (redacted, [])


@pytest.mark.requirement("redaction.idempotent")
@given(values)
def test_redacting_data_twice_changes_nothing(value: object):
    redacted, _ = redact_value(value)
    again, findings = redact_value(redacted)
    assert again is redacted
    assert findings == []


@given(values)
def test_findings_agree_with_what_is_replaced(value: object):
    redacted, findings = redact_value(value, "$.x")
    assert find_in_value(value, "$.x") == findings
    assert (redacted is value) == (not findings)
    assert all(finding.path.startswith("$.x") for finding in findings)


SIGNS = " \t\n\r\"'`;&|<>$(){}\\"


@pytest.mark.requirement("redaction.spans")
@given(
    st.lists(
        st.sampled_from([case.text for case in POSITIVES] + list(SIGNS)) | st.text(max_size=6),
        max_size=6,
    ).map("".join)
)
def test_a_span_lies_within_a_secret_and_covers_no_sign_that_a_shell_reads(text: str):
    secrets = find_secrets(text)
    end = 0
    for span in find_secret_spans(text):
        assert end <= span.start < span.end
        assert any(s.start <= span.start and span.end <= s.end for s in secrets)
        assert not set(SIGNS) & set(text[span.start : span.end])
        end = span.end
    for secret in secrets:
        if not set(SIGNS) & set(text[secret.start : secret.end]):
            assert secret in find_secret_spans(text)


@pytest.mark.requirement("redaction.spans")
def test_a_substitution_inside_a_secret_stays_readable():
    text = "PASSWORD=\"a1b2c3d4$(touch pwned)\" token='e5f6g7h8'"
    spans = [text[span.start : span.end] for span in find_secret_spans(text)]
    assert spans == ["a1b2c3d4", "e5f6g7h8"]
