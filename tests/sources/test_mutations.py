"""Converters meet what nobody recorded: fields that are missing, null, or of another type."""

import copy
import json
import random
from math import ceil
from pathlib import Path
from typing import Any, cast

import pytest

from factwire.facts import is_valid
from factwire.sources import Unreadable, convert_recording, find_source, read_items
from tests.sources.recordings import RECORDINGS, name_of
from tests.sources.streams import find_defects
from tests.trials import TRIAL_SECONDS, count_trials

ROUNDS = 60
ODD_SHARE = 0.3
"""Part of the items of a stream that are changed."""

INPUTS = 200_000
ODD: list[Any] = [None, True, 0, -1, 1e300, "", "x", "\u202e", [], {}, [None], {"a": None}, [[]]]


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("sources.recordings.hostile")
@pytest.mark.parametrize("path", RECORDINGS, ids=name_of)
def test_a_stream_with_odd_items_gives_valid_facts_and_never_raises(path: Path):
    source = find_source(path.parent.name)
    lines = path.read_bytes().splitlines(keepends=True)
    items = [item for item in read_items(lines, source.framing) if not isinstance(item, Unreadable)]
    rounds = count_trials(full=ceil(INPUTS / (ODD_SHARE * len(items))), share=ROUNDS)
    for seed in range(rounds):
        chance = random.Random(seed)
        odd = [
            _mutate_item(chance, item) if chance.random() < ODD_SHARE else item for item in items
        ]
        if chance.random() < 0.2:
            chance.shuffle(odd)
        facts = list(convert_recording(source, _frame_items(odd, source.framing), thread_id="t"))
        issues = find_defects(facts)
        assert is_valid(issues), (seed, issues[:3])


def _mutate_item(chance: random.Random, item: Any) -> Any:
    """An item with a few of its values replaced or dropped."""
    changed = copy.deepcopy(item)
    for _ in range(chance.randint(1, 3)):
        holder: Any = changed
        while chance.random() < 0.7:
            inner = [value for _, value in _entries(holder) if _entries(value)]
            if not inner:
                break
            holder = chance.choice(inner)
        _spoil(chance, holder)
    return changed


def _entries(holder: Any) -> list[tuple[Any, Any]]:
    if isinstance(holder, dict):
        return list(cast("dict[Any, Any]", holder).items())
    return list(enumerate(cast("list[Any]", holder))) if isinstance(holder, list) else []


def _spoil(chance: random.Random, holder: Any) -> None:
    entries = _entries(holder)
    if not entries:
        return
    key, _ = chance.choice(entries)
    if isinstance(holder, dict) and chance.random() < 0.4:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(chance.choice(ODD))


def _frame_items(items: list[Any], framing: str) -> list[bytes]:
    encoded = [json.dumps(item).encode() for item in items]
    if framing == "events":
        return [line for data in encoded for line in (b"data: " + data + b"\n", b"\n")]
    return [data + b"\n" for data in encoded]
