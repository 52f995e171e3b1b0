"""A secret that is cut into pieces is hidden as if it had come in one."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import delta_redaction, secret_shapes
from factwire.facts.delta_redaction import CONTEXT_CHARACTERS, HELD_CHARACTERS, DeltaRedactor
from factwire.facts.redaction import redact_text
from factwire.facts.secret_rules import SECRET_SHAPES
from tests.facts.secret_corpus import FRAGMENTS, NEGATIVES, POSITIVES
from tests.facts.secret_generators import COMMON, LOOK_ALIKES, RARER, look_alikes, made_secrets

TOKEN = "gh" + "p_" + "a1B2c3D4e5" * 4

PROSE = """
The committee met on Tuesday, and most of its members agreed that the well-known plan was a good
one. They don't expect any trouble; it's simple enough. "We should wait until spring," she said,
"and then decide." A few would have preferred a faster route (as they do every year), but nobody
had an objection in the end. After lunch the group went on to other subjects: the cost of paper,
the state of the roof, which has been leaking for months, and the garden behind the house. In 1987
some 40 people had worked there, and the old photographs still hang in the hall. Nothing of that
is left today, except for a bench and two apple trees. He was asked whether he would sell the
place, and he laughed: not for all the money in the world. So the story ends as it began, with an
open door, a cup of tea and a long walk home through the fields in the evening light.
"""


def _tokens(text: str) -> list[str]:
    """Pieces as language models send them: words with the space before them, long ones in two."""
    words: list[str] = re.findall(r" ?[A-Za-z]+|'[a-z]+|\d{1,3}|[^\w\s]+|\s+", text)
    return [part for word in words for part in (word[:6], word[6:]) if part]


def _feed_pieces(pieces: list[str]) -> tuple[list[str], list[str]]:
    redactor = DeltaRedactor()
    shown: list[str] = []
    rules: list[str] = []
    for piece in pieces:
        text, fired = redactor.feed("m", piece)
        shown.append(text)
        rules += fired
        assert len(redactor.pending_text("m")) <= HELD_CHARACTERS
    text, fired = redactor.flush("m")
    return [*shown, text], rules + fired


def _cut_text(text: str, places: list[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *places, len(text)])]


def _check(text: str, pieces: list[str]) -> None:
    whole, rules = redact_text(text)
    shown, fired = _feed_pieces(pieces)
    assert "".join(shown) == whole
    assert fired == rules


@st.composite
def made_texts(draw: st.DrawFn) -> str:
    """A secret or a look-alike of any kind that is made by rule."""
    seed = draw(st.integers(0, 999))
    if draw(st.booleans()):
        kinds = [kind for kind in (*COMMON, *RARER) if not kind.startswith("argument-")]
        (made,) = made_secrets(draw(st.sampled_from(kinds)), seed, 1)
        return str(made.value)
    (text,) = look_alikes(draw(st.sampled_from(tuple(LOOK_ALIKES))), seed, 1)
    return text


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    fragments = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=14)
    case = st.sampled_from([case.text for case in (*POSITIVES, *NEGATIVES)]) | made_texts()
    parts = draw(st.lists(fragments.map("".join) | case, max_size=3))
    text = "".join(parts)
    places = draw(st.lists(st.integers(0, len(text)), max_size=12))
    return _cut_text(text, sorted(places))


@pytest.mark.requirement("redaction.split-deltas")
@given(cut_texts())
def test_any_cut_gives_the_redacted_whole(pieces: list[str]):
    _check("".join(pieces), pieces)


@pytest.mark.requirement("redaction.split-deltas")
@given(cut_texts())
def test_single_characters_give_the_redacted_whole(pieces: list[str]):
    text = "".join(pieces)
    _check(text, list(text))


@pytest.mark.requirement("redaction.split-deltas")
@given(cut_texts(), st.data())
def test_what_was_shown_is_never_taken_back(pieces: list[str], data: st.DataObject):
    """The output after some pieces is a beginning of the redacted whole, whatever follows."""
    shown, _ = _feed_pieces(pieces)
    count = data.draw(st.integers(0, len(pieces)))
    other = data.draw(cut_texts())
    whole, _ = redact_text("".join(pieces[:count] + other))
    assert whole.startswith("".join(shown[:count]))


@pytest.mark.requirement("redaction.split-deltas")
@pytest.mark.parametrize("rule", sorted({case.rule for case in POSITIVES}))
def test_a_secret_cut_at_any_place_is_hidden(rule: str):
    for case in [case for case in POSITIVES if case.rule == rule][:4]:
        text = f"It is here: see {case.text} and so on."
        for place in range(len(text) + 1):
            _check(text, _cut_text(text, [place]))
        _check(text, list(text))


LONG = {
    "token": "it is " + TOKEN * 400 + " and more",
    "assignment": "password=" + "a1b2" * 3_000 + " and more",
    "quoted": '"token": "' + "a1b2" * 3_000 + '", "b": 1',
    "key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75n\n" * 900
    + "-----END RSA " + "PRIVATE KEY----- and more",
    "unfinished key": "-----BEGIN " + "PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75n\n" * 900,
    "jwt": "ey" + "JhbGciOiJI.ey" + "Jz" * 6_000 + ".sig, and more",
    "no digit, no secret": "ya" + "29." + "abcd" * 3_000 + " " + TOKEN,
    "letters": "password: " + "abcd" * 3_000 + " " + TOKEN,
}  # fmt: skip


@pytest.mark.requirement("redaction.split-deltas")
@pytest.mark.parametrize("lead", ["IncomingWebhook/", "Xab8Q~"])
def test_a_secret_that_begins_inside_a_word_is_hidden_when_its_lead_is_a_piece(lead: str):
    text = f"see https://x.example.com/{lead}{'4f128ad4f8b95401' * 2} there"
    start = text.index(lead)
    for end in range(start + 1, start + len(lead) + 2):
        _check(text, _cut_text(text, [start, end]))


@pytest.mark.requirement("redaction.split-deltas")
@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
@pytest.mark.parametrize("size", [1, 7, 100, 4_095, 5_000])
def test_a_secret_longer_than_the_bound_is_swallowed_without_being_kept(text: str, size: int):
    _check(text, [text[at : at + size] for at in range(0, len(text), size)])


def test_the_end_mark_of_a_long_key_may_be_cut_anywhere():
    text = LONG["key"]
    for place in range(text.index("-----END") - 2, len(text)):
        _check(text, _cut_text(text, [HELD_CHARACTERS + 500, place]))


@pytest.mark.requirement("redaction.split-deltas")
def test_ordinary_words_pass_at_once():
    redactor = DeltaRedactor()
    pieces = _tokens(PROSE)
    assert "".join(pieces) == PROSE
    late = [piece for piece in pieces if redactor.feed("m", piece) and redactor.pending_text("m")]
    assert len(late) / len(pieces) < 0.03


def test_a_piece_that_passes_is_the_same_object():
    redactor = DeltaRedactor()
    piece = "nothing to see here, "
    assert redactor.feed("m", piece)[0] is piece
    assert not redactor.is_holding


@pytest.mark.requirement("redaction.split-deltas")
def test_what_may_be_a_secret_waits_until_it_is_decided():
    redactor = DeltaRedactor()
    assert redactor.feed("m", "use " + TOKEN[:9]) == ("use ", [])
    assert (redactor.is_holding, redactor.pending_text("m")) == (True, TOKEN[:9])
    assert redactor.feed("other", "plain") == ("plain", [])
    assert redactor.feed("m", TOKEN[9:]) == ("", [])
    assert redactor.feed("m", " now") == ("[redacted] now", ["github"])
    assert redactor.feed("m", " password: hun") == (" password: ", [])
    assert redactor.flush("m") == ("hun", [])
    assert not redactor.is_holding


def test_the_end_of_a_text_releases_or_hides_what_was_held():
    redactor = DeltaRedactor()
    redactor.feed("a", TOKEN)
    redactor.feed("b", "task sk")
    assert redactor.flush("a") == ("[redacted]", ["github"])
    assert redactor.flush("b") == ("sk", [])
    assert redactor.flush("b") == ("", [])


def test_a_dropped_stream_says_nothing_more():
    redactor = DeltaRedactor()
    redactor.feed("a", TOKEN[:20])
    redactor.drop("a")
    assert redactor.pending_text("a") == ""
    assert redactor.flush("a") == ("", [])


@pytest.mark.requirement("redaction.split-deltas")
def test_a_stream_pushed_out_by_others_leaks_neither_what_it_held_nor_what_follows():
    redactor = DeltaRedactor(streams=2)
    redactor.feed("a", "it is " + TOKEN[:20])
    redactor.feed("b", "plain ")
    redactor.feed("c", "plain ")
    assert redactor.pending_text("a") == ""
    assert redactor.feed("a", TOKEN[20:30]) == ("", [])
    assert redactor.feed("a", TOKEN[30:] + " after") == (" after", [])


def test_names_and_their_separators_fit_into_what_a_stream_remembers():
    longest = max(len(trigger) for shape in SECRET_SHAPES for trigger in shape.triggers)
    assert CONTEXT_CHARACTERS > 64 + 64
    assert longest < CONTEXT_CHARACTERS


def test_the_cost_of_a_piece_grows_with_its_length_alone(monkeypatch: pytest.MonkeyPatch):
    """A piece with many secrets is not searched from each of them on."""
    searched: list[int] = []
    find = delta_redaction._find_opening

    def counted(text: str, at: int, shown: int, names: list[int] | None) -> object:
        searched.append(len(text) - at)
        return find(text, at, shown, names)

    monkeypatch.setattr(delta_redaction, "_find_opening", counted)
    text = "password = hunter2hunter2 key: " * 400
    shown, _ = DeltaRedactor().feed("t", text)
    assert shown == redact_text(text)[0][: len(shown)]
    assert sum(searched) <= 4 * len(text)


SLOW = {
    "key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + ("MIIEpAIBAAKCAQEA75n" * 3 + "\n") * 60,
    "token": TOKEN * 90,
    "assignment": "password=" + "a1b2" * 900,
}


@pytest.mark.requirement("redaction.linear-time")
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_what_is_held_back_is_not_searched_again_with_each_letter(
    text: str, monkeypatch: pytest.MonkeyPatch
):
    searched: list[int] = []
    scan = delta_redaction.scan_secrets

    def counted(text: str, start: int, names: list[int] | None = None) -> object:
        searched.append(len(text))
        return scan(text, start, names)

    monkeypatch.setattr(delta_redaction, "scan_secrets", counted)
    redactor = DeltaRedactor()
    for letter in text:
        redactor.feed("m", letter)
    lines = text.count("\n") + 1
    assert sum(searched) <= (lines + 40) * len(text)


@pytest.mark.requirement("redaction.linear-time")
def test_names_whose_values_were_shown_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch):
    judged: list[str] = []
    judge = secret_shapes._secret_named_by

    def counted(lead: re.Match[str]) -> str | None:
        judged.append(lead["key"])
        return judge(lead)

    monkeypatch.setattr(secret_shapes, "_secret_named_by", counted)
    redactor = DeltaRedactor()
    for _ in range(200):
        redactor.feed("m", "key: ")
        redactor.feed("m", "some plain words, and more ")
    assert len(judged) <= 200 * 16
