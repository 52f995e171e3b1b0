"""A document kept by changes, held against the projection's own."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.client import PatchFailed, ThreadDelta, ThreadDocument, ThreadSnapshot
from factwire.facts import decode_fact
from factwire.facts.json_patch import InvalidPatch as Failed
from factwire.facts.json_patch import JsonDocument
from factwire.projection import Projection, fold_changes

ROOT = Path(__file__).resolve().parent.parent.parent
STREAMS = [ROOT / "examples" / "first_turn.ndjson", *sorted(ROOT.glob("examples/streams/*.ndjson"))]

pytestmark = pytest.mark.requirement("client.document")


def snapshot(state: dict[str, Any]) -> ThreadSnapshot:
    return ThreadSnapshot(thread_id="t", cursor="c0", state=state)


def delta(operations: list[Any]) -> ThreadDelta:
    plain = msgspec.json.decode(msgspec.json.encode(operations))
    return ThreadDelta(thread_id="t", cursor="c1", operations=plain)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("at_once", [1, 7])
def test_every_example_comes_out_as_the_projection_has_it(path: Path, at_once: int):
    facts = [decode_fact(line) for line in path.read_bytes().splitlines() if line.strip()]
    projection, document = Projection(), ThreadDocument()
    document.take(snapshot(msgspec.json.decode(projection.snapshot())))
    for first in range(0, len(facts), at_once):
        changes = [projection.replay(fact) for fact in facts[first : first + at_once]]
        document.take(delta(fold_changes(changes)))
    assert document.state == msgspec.json.decode(projection.snapshot())
    assert document.cursor == "c1"


STEPS = st.sampled_from(["", "a", "b", "l", "0", "1", "2", "-", "01", "~0", "~1", "t"])
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "remove", "append"]),
            "path": st.lists(STEPS, min_size=1, max_size=3).map(
                lambda steps: "/" + "/".join(steps)
            ),
        },
        optional={"value": st.one_of(st.text(max_size=2), st.lists(st.integers(0, 3), max_size=2))},
    ),
    max_size=4,
)


@given(OPERATIONS)
def test_any_patch_is_carried_out_or_refused_alike(operations: list[dict[str, Any]]):
    start: dict[str, Any] = {"a": {"t": "x", "~": 1}, "l": ["x", ["y"], {"b": "z"}], "b": "text"}
    theirs, ours = JsonDocument(deepcopy(start)), ThreadDocument()
    ours.take(snapshot(deepcopy(start)))
    try:
        theirs.patch(deepcopy(operations))
    except Failed:
        with pytest.raises(PatchFailed):
            ours.take(delta(operations))
        assert ours.cursor == "c0"
    else:
        ours.take(delta(operations))
    assert ours.state == theirs.root


def test_changes_before_a_state_are_refused():
    with pytest.raises(PatchFailed, match="before a state"):
        ThreadDocument().take(delta([]))


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "move", "path": "/a", "from": "/b"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_an_operation_that_no_edge_sends_is_refused(operation: dict[str, Any]):
    document = ThreadDocument()
    document.take(snapshot({"a": 1, "b": 2}))
    with pytest.raises(PatchFailed):
        document.take(delta([operation]))
    assert document.state == {"a": 1, "b": 2}
