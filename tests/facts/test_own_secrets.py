"""What an operator names as secret is hidden in every form, whatever the pieces it arrives in."""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import REDACTED, Redactor, find_secret_spans, redact_text, redact_value
from factwire.facts.delta_redaction import DeltaRedactor, SavedText
from factwire.facts.own_secrets import OWN_SECRETS, OwnPattern, PatternError, compile_pattern
from tests.facts.secret_corpus import NEGATIVES, POSITIVES

pytestmark = pytest.mark.requirement("redaction.own")

PATTERNS: Final = (
    OwnPattern("employee", r"\bEMP-?\d{6,8}\b"),
    OwnPattern("corporate", r"(?:corp|acme)_[a-z0-9]{10,40}"),
    OwnPattern("case", r"case no [A-Z]{2} [0-9]{4}"),
    OwnPattern("any-case", r"(?i)zk-[a-f]{8}"),
)
VALUES: Final = {
    'hunter2;the&big/one "q"': "ODD",
    "correct horse battery": "WORDS",
    "p@ssw0rd!": "SHORT",
    "päss/wörd€1": "LETTERS",
    "first line of a key\nsecond line of it\nend": "LINES",
    "Zq9" * 300: "LONG",
    "aaaaaaaaab": "REPEATS",
}


@pytest.fixture(autouse=True)
def declared_secrets() -> Iterator[None]:
    OWN_SECRETS.declare(PATTERNS, VALUES)
    yield
    OWN_SECRETS.clear()


def encode_inside(value: str, before: str) -> str:
    return base64.b64encode(f"{before}{value} and more".encode()).decode()


FORMS: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "JSON": lambda value: json.dumps({"a": value}),
    "JSON with letters": lambda value: json.dumps([value], ensure_ascii=False),
    "JSON in JSON": lambda value: json.dumps(json.dumps(value)),
    "URL": lambda value: f"https://h/?q={quote(value, safe='')}&x=1",
    "URL path": lambda value: f"https://h/{quote(value)}",
    "form": lambda value: f"q={quote_plus(value)}&x=1",
    "URL in small letters": lambda value: re.sub(
        "%..", lambda sign: sign[0].lower(), quote(value, safe="")
    ),
    "base64": lambda value: encode_inside(value, ""),
    "base64 behind one": lambda value: encode_inside(value, "u"),
    "base64 behind two": lambda value: encode_inside(value, "u:"),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
}


def feed_pieces(pieces: list[str]) -> str:
    deltas = DeltaRedactor()
    shown = "".join(deltas.feed("text", piece)[0] for piece in pieces)
    return shown + deltas.flush("text")[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", VALUES.values())
def test_a_value_is_hidden_in_every_form_and_at_every_split(form: str, name: str):
    [value] = [value for value, each in VALUES.items() if each == name]
    text = f"before {FORMS[form](value)} behind"
    shown, rules = redact_text(text)
    assert set(rules) == {f"never-store:{name}"}
    gone = shown.replace(REDACTED, "")
    # Left is what stood around it, and at most the ends that the bytes around it have a part in.
    assert len(gone) <= len(f"before {FORMS[form]('')} behind") + 6
    assert shown.startswith("before ")
    assert shown.endswith(" behind")
    for cut in range(len(text) + 1):
        assert feed_pieces([text[:cut], text[cut:]]) == shown
    assert feed_pieces(list(text)) == shown
    assert redact_text(shown) == (shown, [])


OTHERS: Final = st.sampled_from(
    [*VALUES, *(value[:-1] for value in VALUES), "EMP-123456", "xEMP-123456", "EMP123456789",
     "corp_0123456789", "acme_" + "a" * 45, "case no AB 1234", "case no AB 12", "ZK-abcdefAB",
     "ghp_" + "a1B2" * 9, "password=", "API_KEY: ", "token", " ", "\n", "x", ";", '"', "\\", "%20",
     *(case.text for case in (*POSITIVES[::40], *NEGATIVES[::40]))]
)  # fmt: skip


@given(parts=st.lists(OTHERS, min_size=1, max_size=6), cuts=st.lists(st.integers(0, 400)))
def test_pieces_come_out_as_the_whole_text_would(parts: list[str], cuts: list[int]):
    text = "".join(parts)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown = redact_text(text)[0]
    assert feed_pieces([text[start:end] for start, end in pairwise(places)]) == shown
    assert not any(value in shown for value in VALUES)


@given(parts=st.lists(OTHERS, min_size=1, max_size=5), cuts=st.lists(st.integers(0, 200)))
def test_a_saved_text_goes_on_and_holds_no_value(parts: list[str], cuts: list[int]):
    text = "".join(parts)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown, saved = "", dict[object, SavedText]()
    for start, end in pairwise(places):
        deltas = DeltaRedactor()
        deltas.restore({**saved})
        shown += deltas.feed("text", text[start:end])[0]
        saved = {**deltas.save()}
        for value in VALUES:
            starts = [row.own[1:] for row in saved.values()]
            assert not any(len(own) > 3 and value.startswith(own) for own in starts)
    deltas = DeltaRedactor()
    deltas.restore({**saved})
    shown += deltas.flush("text")[0]
    assert not any(value in shown for value in VALUES)


def test_the_rest_of_a_value_stays_hidden_after_a_restart_in_the_middle_of_it():
    deltas = DeltaRedactor()
    assert deltas.feed("text", "it is correct hor")[0] == "it is "
    saved = deltas.save()
    assert "correct" not in repr(saved)
    OWN_SECRETS.clear()
    later = DeltaRedactor()
    later.restore(saved)
    assert later.feed("text", "se-battery staple")[0] == f"{REDACTED} staple"


def test_a_secret_of_ones_own_is_found_in_keys_values_and_commands():
    value = "correct horse battery"
    assert redact_value({f"a {value}": [value, {"b": f"<{value}>"}]})[0] == {
        REDACTED: [REDACTED, {"b": f"<{REDACTED}>"}]
    }
    command = 'echo "p@ssw0rd!"; touch corp_0123456789'
    spans = [command[span.start : span.end] for span in find_secret_spans(command)]
    assert spans == ["p@ssw0rd!", "corp_0123456789"]
    assert Redactor().save_texts() == {}


def test_words_that_name_secrets_and_short_values_are_not_hidden():
    OWN_SECRETS.declare(
        values={"password": "A", "secret_token": "B", "abc1234": "C", "redacted": "D"}
    )
    for text in ("password=", "a secret_token", "abc1234", REDACTED):
        assert redact_text(text) == (text, [])
    assert OWN_SECRETS.value_count == len(VALUES)


REFUSED: Final = {
    "(": "a regular expression",
    "": "at least 4 characters",
    "abc": "at least 4 characters",
    "abcd|": "at least 4 characters",
    "[a-z]{0,9}": "at least 4 characters",
    "abcd+": "upper bound",
    "abcd[a-z]*": "upper bound",
    "abcd.": "literals, classes",
    "a{300}": "upper bound",
    "abcd" + "[a-z]{250}" * 5: "at most 1024 characters",
    "[a-z]{2,5}abcd": "no going back",
    "a{0,20}a{20}": "no going back",
    "[a-z]{4,9}-?[a-z]": "no going back",
    "(?:a|b|ab){4,9}c": "one class of characters",
    "(?:a{1,9}){1,9}": "one class of characters",
    r"(\w{4})\1": "literals, classes",
    "(?=abcd)abcd": "literals, classes",
    "^abcd": "literals, classes",
    "abcd$": "literals, classes",
    r"ab\bcd": r"\b at its beginning",
    "[^ab]cdef": "classes that list",
    "|".join(f"{n:05}" for n in range(30)): "alternatives",
    "red[a-z]{3}": "does not match",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_cannot_be_searched_in_linear_time_is_refused(pattern: str):
    with pytest.raises(PatternError, match=re.escape(REFUSED[pattern])):
        compile_pattern(OwnPattern("own", pattern))


SIGNS: Final = st.sampled_from("ab1-_ .")
CLASSES: Final = st.sampled_from(["a", "b", "[ab]", r"\d", r"\w", "[a-c-]", r"\."])
RUNS: Final = st.sampled_from(["", "{4}", "{2,5}", "?", "{1,3}"])


@given(
    parts=st.lists(st.tuples(CLASSES, RUNS), min_size=1, max_size=5),
    words=st.tuples(st.booleans(), st.booleans()),
    text=st.text(SIGNS, max_size=40),
)
def test_a_pattern_that_is_accepted_finds_what_it_would_as_a_regular_expression(
    parts: list[tuple[str, str]], words: tuple[bool, bool], text: str
):
    edges = [r"\b" if word else "" for word in words]
    pattern = edges[0] + "".join(a + b for a, b in parts) + edges[1]
    try:
        compiled = compile_pattern(OwnPattern("own", pattern))
    except PatternError:
        return
    found = [match.span() for match in re.finditer(compiled[0][0], text)]
    # Our \b is one between a word and anything else; ASCII is all that the texts have.
    if not any(words):
        assert found == [match.span() for match in re.finditer(pattern, text)]
    OWN_SECRETS.clear()
    OWN_SECRETS.declare([OwnPattern("own", pattern)])
    shown = OWN_SECRETS.replace(text)[0]
    assert shown.count(REDACTED) == len(found)
    for cut in range(len(text) + 1):
        first, state, _ = OWN_SECRETS.take("\n", text[:cut])
        second, _, _ = OWN_SECRETS.take(state, text[cut:], at_end=True)
        assert first + second == shown


HOSTILE: Final = {
    "starts of values": "correct horse batter",
    "a repeat": "a",
    "starts of patterns": "corp_aaaa EMP-12345 case no AB 123 ",
    "a long run": "acme_" + "a" * 39 + "A",
}


@pytest.mark.requirement("redaction.linear-time")
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_costs_time_in_proportion(kind: str):
    def measure(size: int) -> float:
        text = (HOSTILE[kind] * size)[:size]
        started = time.process_time()
        for _ in range(3):
            feed_pieces([text[at : at + 64] for at in range(0, size, 64)])
            redact_text(text)
        return time.process_time() - started

    measure(2_000)
    small, big = min(measure(8_000) for _ in range(3)), min(measure(32_000) for _ in range(3))
    assert big < 12 * small
