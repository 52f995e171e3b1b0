"""The rules that say what a secret is: every row of the table fires, and nothing else does."""

import subprocess
import sys
from collections import Counter
from hashlib import sha256
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import secret_shapes
from factwire.facts.redaction import redact_text
from factwire.facts.secret_key_names import names_secret
from factwire.facts.secret_rules import SECRET_SHAPES
from factwire.facts.secret_shapes import ASSIGNMENT_RULE as ASSIGNMENT
from factwire.facts.secret_shapes import find_secrets, may_hold_secret, scan_secrets
from tests.facts.secret_corpus import FRAGMENTS, NEGATIVES, POSITIVES

close_texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=14).map("".join)

SECRET_KEYS = (
    "apiKey", "api_key", "API_KEY", "X-Api-Key", "apikey", "OPENAI_API_KEY", "openai.api.key",
    "Api Key", "APIKey", "xApiKeyV2", "authorization", "Authorization", "Proxy-Authorization",
    "authorizationHeader", "password", "userPassword", "db_passwd", "PWD", "pwd", "passphrase",
    "secret", "secrets", "clientSecret", "client-secret", "secretKey", "secretkey",
    "token", "accessToken", "refresh_token", "idToken", "sessionToken", "token1", "HTTPToken",
    "accesstoken", "credential", "credentials", "awsCredentials", "privateKey", "private_key",
    "accessKey", "secretAccessKey", "signingKey", "encryption-key", "cookie", "Set-Cookie",
    "cookies", "bearer", "bearerToken", "tokens", "accessTokens", "tokenValue",
)  # fmt: skip

PLAIN_KEYS = (
    "totalTokens", "inputTokens", "max_tokens", "tokenCount", "token_usage", "tokensRemaining",
    "tokenLimit", "tokenType", "tokenizer", "cacheReadInputTokens", "reasoning_tokens",
    "secretRef", "tokenId", "apiKeyId", "secretName", "credentialRef", "accessKeyId",
    "progressToken", "nextPageToken", "pageToken", "continuationToken", "syncToken",
    "cancellationToken", "nextToken", "eos_token", "authorizationUrl", "authorizationStatus",
    "authorizationEndpoint", "tokenExpiresAt", "expires_in", "secretary", "passwordless",
    "keyboard", "monkey", "key", "publicKey", "keyPath", "author", "authority", "passage",
    "tokenised", "", "id", "messageId", "cookiePolicy", "password_min_length",
)  # fmt: skip


@pytest.mark.requirement("redaction.key")
@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_key_whose_words_name_a_secret_is_one(key: str):
    assert names_secret(key, "value")


@pytest.mark.requirement("redaction.counters-untouched")
@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_counters_descriptions_references_and_other_words_are_not(key: str):
    assert not names_secret(key, "value")


@pytest.mark.requirement("redaction.counters-untouched")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokens", 5),
        ("tokens", {"input": 5, "output": 3.5}),
        ("tokens", [1, 2, 3]),
        ("tokens", "512"),
        ("token", 7),
        ("accessToken", 0),
    ],
)
def test_a_number_under_a_token_key_is_a_counter(key: str, value: object):
    assert not names_secret(key, value)


@pytest.mark.requirement("redaction.key")
@pytest.mark.parametrize("value", [None, True, False, "", "[redacted]", [], {}, [None], {"a": ""}])
def test_what_says_nothing_leaks_nothing(value: object):
    assert not names_secret("password", value)


@pytest.mark.requirement("redaction.key")
@pytest.mark.parametrize(
    "value",
    [1234, "x", ["x"], {"a": "x"}, {"a": 1}, ("x",), [["x"]], b"raw", {"type": {"a": [1]}, "b": 1}],
)
def test_any_other_value_of_a_password_is_secret(value: object):
    assert names_secret("password", value)


@pytest.mark.requirement("redaction.key")
def test_the_schema_of_a_parameter_is_a_description_unless_it_carries_values():
    schema: dict[str, Any] = {"type": "string", "description": "Key of the account", "minLength": 3}
    assert not names_secret("apiKey", schema)
    assert not names_secret("token", {"anyOf": [{"type": "string"}, {"type": "null"}]})
    assert names_secret("apiKey", {**schema, "default": "abc"})
    assert names_secret("apiKey", {**schema, "enum": ["abc"]})
    assert names_secret("apiKey", {"description": "no mark of a schema"})


@pytest.mark.requirement("redaction.key")
def test_a_key_of_any_length_is_judged_alike():
    assert names_secret("a" * 500 + "_token", "x")
    assert not names_secret("a" * 500 + "_tokenizer", "x")


@pytest.mark.nightly
@pytest.mark.requirement("redaction.value")
def test_every_secret_of_the_corpus_is_found():
    missed = [case for case in POSITIVES if not _hides(case.text, case.secret)]
    assert len(POSITIVES) >= 300
    assert missed == []


@pytest.mark.nightly
@pytest.mark.requirement("redaction.value")
def test_nothing_else_in_the_corpus_is_taken_for_a_secret():
    wrong = [case for case in NEGATIVES if find_secrets(case.text)]
    assert len(NEGATIVES) >= 300
    assert wrong == []


@pytest.mark.requirement("redaction.value")
@pytest.mark.parametrize("rule", sorted({shape.rule for shape in SECRET_SHAPES} | {ASSIGNMENT}))
def test_each_rule_has_three_secrets_and_three_near_misses(rule: str):
    fired = [
        case for case in POSITIVES if rule in {found.rule for found in find_secrets(case.text)}
    ]
    assert len(fired) >= 3
    assert Counter(case.rule for case in NEGATIVES)[rule] >= 3


PLACED_RULES = (
    *("assignment", "login", "private-key", "url-password", "terraform", "telegram"),
    "huggingface-organization",
)
"""Rules whose secrets are known by what stands before them."""


@pytest.mark.requirement("redaction.value")
@pytest.mark.parametrize("name", ["password=", '"token": "', "Authorization: Bearer ", "api key: "])
def test_a_secret_with_a_name_before_it_is_hidden_whole(name: str):
    for case in POSITIVES:
        if case.rule not in PLACED_RULES:
            assert _hides(name + case.secret, case.secret), name + case.secret


def _hides(text: str, secret: str) -> bool:
    """Whether no eight characters of the secret are left in the text."""
    kept, end = "", 0
    for found in find_secrets(text):
        kept += text[end : found.start] + "\0"
        end = found.end
    kept += text[end:]
    return all(secret[at : at + 8] not in kept for at in range(len(secret) - 7))


@pytest.mark.requirement("redaction.value")
def test_the_quick_look_never_misses_a_secret_of_the_corpus():
    for case in POSITIVES:
        assert may_hold_secret(case.text), case
        assert may_hold_secret(case.secret) or not list(scan_secrets(case.secret, 0)), case


@pytest.mark.requirement("redaction.value")
def test_the_quick_look_knows_every_trigger():
    for order, shape in enumerate(SECRET_SHAPES):
        for trigger in shape.triggers:
            before = "shop" if len(trigger) == 1 else "ann@ "
            text = f"{before}{trigger}1{'a1B' * 40}:"
            assert order in secret_shapes._find_tokens(text), trigger
            assert may_hold_secret(text), trigger


@pytest.mark.nightly
@pytest.mark.requirement("redaction.value")
@given(close_texts)
def test_the_quick_look_never_misses_a_secret(text: str):
    if list(scan_secrets(text, 0)):
        assert may_hold_secret(text)


@given(close_texts)
def test_secrets_come_in_order_and_do_not_overlap(text: str):
    end = 0
    for found in find_secrets(text):
        assert end <= found.start < found.end <= len(text)
        end = found.end


def test_ids_and_prose_seldom_need_a_search():
    plain = [case.text for case in NEGATIVES if case.rule == "id"]
    assert sum(map(may_hold_secret, plain)) <= len(plain) // 20


@pytest.mark.requirement("redaction.value")
@pytest.mark.parametrize("before", ["ar-", "my_", "build-7-", "A_B_", "x/", "--"])
def test_a_token_is_found_behind_a_dash_or_an_underscore(before: str):
    for token in ("gh" + "p_" + "a1B2c3D4e5" * 4, "gl" + "pat-" + "a1B2c3D4e5" * 2):
        (found,) = find_secrets(f"see {before}{token} here")
        assert (found.start, found.end) == (4 + len(before), 4 + len(before) + len(token))


@pytest.mark.requirement("redaction.value")
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("x --token bY-EX2D9hrOkdo-l7", "x --token [redacted]"),
        ("e['API_TOKEN'] = 'q7Rk29xWmZ4t'", "e['API_TOKEN'] = '[redacted]'"),
        ("Cookie: theme=dark; lang=en", "Cookie: theme=dark; lang=en"),
        ("Cookie: sid=q7Rk29xWmZ4tLpVb; lang=en", "Cookie: sid=[redacted]; lang=en"),
    ],
)
def test_a_value_is_found_behind_its_name_however_it_is_written(text: str, clean: str):
    assert redact_text(text)[0] == clean


@pytest.mark.requirement("redaction.linear-time")
def test_no_pattern_can_run_wild():
    for shape in SECRET_SHAPES:
        _check_repeats(_parse_pattern(shape.pattern.pattern), nested=False)
        _check_repeats(_parse_pattern(shape.opening), nested=False)


def _parse_pattern(pattern: str) -> Any:
    return import_module("re._parser").parse(pattern)


def _check_repeats(parsed: Any, *, nested: bool) -> None:
    """Every repeat is bounded or never goes back, and none stands inside another."""
    for operator, argument in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = argument
            assert name == "POSSESSIVE_REPEAT" or most <= 200, parsed
            assert most == 1 or not nested
            _check_repeats(inner, nested=most > 1)
        else:
            for inner in _inner(argument):
                _check_repeats(inner, nested=nested)


def _inner(argument: Any) -> list[Any]:
    if type(argument).__name__ == "SubPattern":
        return [argument]
    parts: list[Any] = list(argument) if isinstance(argument, (tuple, list)) else []  # pyright: ignore[reportUnknownArgumentType]
    return [inner for part in parts for inner in _inner(part)]


HOSTILE = (
    "eyJ", "eyJhbGciOiJ.", "://a:", "a://b:c", "-----BEGIN ", "password=", "password=$",
    "-----BEGIN RSA PRIVATE " + "KEY-----\n", "password: x ", "token: your", "a=", "a:b=", "sk-",
    "sk-sk_", "Bearer ", "AKIA", "12345678:AA", "12345678:", "_", "-", "key ", "\\", '"', "a.",
    "%41", "Cookie: a=b", " key:", "AccountKey=xxxx", "secret_", "SG.aaaaaaaaaaaaaaaaaaaa.",
)  # fmt: skip


@pytest.mark.requirement("redaction.linear-time")
@pytest.mark.parametrize("seed", HOSTILE)
def test_a_megabyte_of_hostile_text_is_searched_to_its_end(seed: str):
    text = seed * (1_000_000 // len(seed))
    assert all(found.end <= len(text) for found in scan_secrets(text, 0))


PARTS = st.sampled_from(
    [*(case.text for case in (*POSITIVES, *NEGATIVES)), " ", "\n", "\\n", "=", "x"]
)


def find_all_rows(text: str) -> set[int]:
    del text
    return set(range(len(SECRET_SHAPES)))


@pytest.mark.requirement("redaction.value")
@given(parts=st.lists(PARTS, min_size=1, max_size=4))
def test_a_search_that_skips_rows_finds_what_a_search_of_all_rows_does(parts: list[str]):
    text = "".join(parts)
    skipping = find_secrets(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_shapes, "_find_tokens", find_all_rows)
        assert find_secrets(text) == skipping
    assert find_secrets(text) == skipping
    assert may_hold_secret(text) >= bool(skipping)


COUNT_COMPILED = """
import re
compiled = []
compile_pattern = re.compile
re.compile = lambda pattern, flags=0: compiled.append(pattern) or compile_pattern(pattern, flags)
import factwire.facts
from factwire.facts.delta_redaction import compile_openings
from factwire.facts.secret_rules import SECRET_SHAPES
patterns = {shape.pattern.pattern for shape in SECRET_SHAPES}
print(len(patterns.intersection(compiled)), max(map(len, compiled)))
compile_openings()
print(len(patterns.intersection(compiled)), max(map(len, compiled)))
factwire.facts.redact_text("Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyzAB")
print(len(patterns.intersection(compiled)), max(map(len, compiled)))
"""


@pytest.mark.requirement("redaction.lazy")
def test_patterns_of_secrets_are_compiled_when_they_are_first_used():
    done = subprocess.run(
        [sys.executable, "-c", COUNT_COMPILED], capture_output=True, text=True, check=True
    )
    imported, opened, searched = (tuple(map(int, row.split())) for row in done.stdout.splitlines())
    assert imported[0] == opened[0] == 0 < searched[0] < 16
    assert imported[1] < 1_024 < opened[1]


@pytest.mark.requirement("redaction.digests")
def test_no_digest_passes_for_a_secret():
    """Refs and hashes of what was shown are of no use without all their digits."""
    starts = {trigger for shape in SECRET_SHAPES for trigger in shape.triggers}
    digests = [
        f"sha256:{(start + sha256(bytes([number])).hexdigest())[:64]}"
        for start in starts
        if set(start) <= set("0123456789abcdef")
        for number in range(50)
    ]
    assert digests
    for digest in digests:
        assert redact_text(digest) == (digest, [])
