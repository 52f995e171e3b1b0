"""Malformed input: 200,000 seeded inputs to the decoder, and as many to the inspector."""

import json
import random
from collections import Counter
from collections.abc import Callable

import pytest

from factwire.facts import (
    ISSUE_CODES,
    SHAPES,
    AnyShape,
    InvalidFacts,
    StreamInspector,
    UnreadableInput,
    decode_fact,
    encode_fact,
    inspect_fact,
)
from tests.facts import spec
from tests.facts.samples import complete, runtime_event
from tests.trials import count_trials

INPUTS = 200_000
ANY_SHAPE: tuple[AnyShape, ...] = ("auto", *SHAPES)

REAL: list[bytes] = [
    *(json.dumps(complete(name)).encode() for name in spec.RUNTIME_CLASSES),
    json.dumps({**complete("tool.result"), "status": "failed"}).encode(),
    *(json.dumps(runtime_event(name, payload={"delta": "é\n"})).encode() for name in spec.CLASSES),
    *(
        json.dumps({"type": name, "payload": {"a": [1, 2.5, None]}}).encode()
        for name in spec.CLASSES
    ),
]
VALUES: list[bytes] = [
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"1E400", b"0x1", b"01", b"1."),
    *(b"9" * 30, b"9" * 5_000, b"-" + b"9" * 25, b"18446744073709551616", b"1e15"),
    *(b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b'"\\x"', b'"\xff"', b'"\xed\xa0\x80"'),
    *(b'"\xf4\x90\x80\x80"', b'"' + b"a" * 600 + b'"', b"null", b"true", b"[]", b"{}", b'""'),
    *(b"[" * 150 + b"]" * 150, b"[" * 300 + b"]" * 300, b'{"":' * 250 + b"1" + b"}" * 250),
    *(b'{"preview":"' + b"p" * 600 + b'"}', b"\xef\xbb\xbf", b"", b"'a'", b"undefined"),
    *(b'{"password":"hunter22"}', b'{"n":[' + b"1e15," * 4_000 + b"1]}"),
]
BRACKETS = b'{}[],:"\\\x00\xff\x1b\n0-'

Mutation = Callable[[random.Random, bytearray], None]


def flip_bits(chance: random.Random, data: bytearray) -> None:
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut_tail(chance: random.Random, data: bytearray) -> None:
    del data[chance.randrange(len(data)) :]


def remove(chance: random.Random, data: bytearray) -> None:
    start = chance.randrange(len(data))
    del data[start : start + chance.randint(1, 8)]


def insert(chance: random.Random, data: bytearray) -> None:
    place = chance.randrange(len(data))
    data[place:place] = bytes([chance.choice(BRACKETS)])


def replace_value(chance: random.Random, data: bytearray) -> None:
    colons = [place for place, byte in enumerate(data) if byte == ord(":")]
    place = chance.choice(colons or [0]) + 1
    ends = [end for end in (data.find(b",", place), data.find(b"}", place)) if end >= 0]
    data[place : min(ends, default=len(data))] = chance.choice(VALUES)


def repeat_key(chance: random.Random, data: bytearray) -> None:
    key = chance.choice([b"id", b"sequence", b"payload", b"", b"type", b"eventClass", b"turnId"])
    data[1:1] = b'"' + key + b'":' + chance.choice(VALUES) + b","


def splice(chance: random.Random, data: bytearray) -> None:
    other = chance.choice(REAL)
    data[chance.randrange(len(data)) :] = other[chance.randrange(len(other)) :]


def mark_byte_order(_: random.Random, data: bytearray) -> None:
    data[:0] = b"\xef\xbb\xbf"


MUTATIONS: list[Mutation] = [
    *(
        flip_bits,
        cut_tail,
        remove,
        insert,
        replace_value,
        replace_value,
        repeat_key,
        repeat_key,
        splice,
    ),
    mark_byte_order,
]


def fuzz_line(chance: random.Random) -> bytes:
    if chance.random() < 0.15:
        return chance.randbytes(chance.randrange(64))
    data = bytearray(chance.choice(REAL))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if data:
            chance.choice(MUTATIONS)(chance, data)
    return bytes(data)


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.requirement("fuzz.decoder")
def test_the_decoder_raises_only_what_it_documents():
    chance = random.Random(2026)
    seen = Counter[str]()
    for number in range(INPUTS):
        data = fuzz_line(chance)
        shape = ANY_SHAPE[number % len(ANY_SHAPE)]
        try:
            fact = decode_fact(data, shape)
        except (UnreadableInput, InvalidFacts) as error:
            seen[error.code] += 1
        else:
            stored = encode_fact(fact)
            if fact.sequence is not None:
                assert decode_fact(stored, "facts").id == fact.id, data
            seen["read"] += 1
    assert min(seen[kind] for kind in ("read", "unreadable_input", "invalid_facts")) > INPUTS // 20


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.requirement("fuzz.inspector")
def test_the_inspector_raises_nothing():
    chance = random.Random(1106)
    seen = Counter[str]()
    for number in range(INPUTS):
        data = fuzz_line(chance)
        for issue in inspect_fact(data, ANY_SHAPE[number % len(ANY_SHAPE)]):
            seen[issue.code] += 1
    assert set(seen) == set(ISSUE_CODES) - {"sequence_gap", "sequence_violation"}


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.requirement("fuzz.inspector")
def test_a_stream_of_malformed_facts_is_inspected_to_its_end():
    chance = random.Random(7)
    inspector = StreamInspector()
    for _ in range(count_trials(full=INPUTS, share=INPUTS // 10)):
        data = fuzz_line(chance)
        text = data.decode("utf-8", "surrogateescape") if chance.random() < 0.2 else data
        try:
            issues = inspector.feed(text)
        except UnreadableInput:
            continue
        assert {issue.code for issue in issues} <= set(ISSUE_CODES)
    assert {issue.code for issue in inspector.finish()} <= {"sequence_gap"}
