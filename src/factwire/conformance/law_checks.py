"""The laws of Factwire's own projection, judged on the streams of the fixtures.

A foreign reducer has neither changes nor checkpoints, so these are about Factwire alone: facts come
to one state, however they are cut into pieces, saved, restored, repeated or followed by changes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

import msgspec

from factwire.conformance.case import Case, Finding, Reducer
from factwire.conformance.delivery_streams import DeliveredStream
from factwire.conformance.screen_checks import cut_places, find_difference, to_document
from factwire.facts import Fact, read_fact
from factwire.facts.json_patch import InvalidPatch, JsonDocument
from factwire.projection import (
    Changes,
    InvalidReadModel,
    Projection,
    UnreadableCheckpoint,
    advance,
    decode_state,
    encode_state,
    fold_changes,
    project,
    read_thread_model,
    thread_read_model,
)

Problems = Iterator[str]
Law = Callable[[Sequence[Fact]], Problems]


def _compare(what: str, got: object, wanted: object) -> Problems:
    differs = find_difference(got, wanted)
    if differs is not None:
        yield f"{what}: {differs}"


def _state_of(facts: Sequence[Fact]) -> dict[str, Any]:
    projection = Projection()
    projection.apply_all(facts)
    return to_document(projection.state)


def _law_of_replay(facts: Sequence[Fact]) -> Problems:
    whole, pieces, saved = Projection(), Projection(), Projection()
    whole.apply_all(facts)
    places = sorted({0, *cut_places(len(facts)), len(facts)})
    for first, last in pairwise(places):
        pieces.apply_all(facts[first:last])
        saved = Projection.restore(saved.checkpoint())
        saved.apply_all(facts[first:last])
    document = to_document(whole.state)
    yield from _compare("in pieces", to_document(pieces.state), document)
    yield from _compare("from checkpoints", to_document(saved.state), document)


def _law_of_checkpoints(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    projection.apply_all(facts)
    restored = Projection.restore(projection.checkpoint())
    yield from _compare("restored", to_document(restored.state), to_document(projection.state))
    if restored.checkpoint() != projection.checkpoint():
        yield "a restored projection is saved as another checkpoint"


def _law_of_refused_checkpoints(_: Sequence[Fact]) -> Problems:
    for data in (b"", b"{}", b"[1]", b"not JSON"):
        try:
            Projection.restore(data)
            yield f"{data!r} was taken as a checkpoint"
        except UnreadableCheckpoint:
            continue


def _law_of_changes(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    for fact in facts:
        advance(copy, projection.apply(fact))
        if copy.root != to_document(projection.state):
            yield f"at {fact.id} the changes lead elsewhere"
            return


def _law_of_folded_changes(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    changes = [projection.apply(fact) for fact in facts]
    if changes:
        advance(copy, fold_changes(changes))
    yield from _compare("folded changes", copy.root, to_document(projection.state))


def _law_of_sent_changes(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    for fact in facts:
        changes = projection.apply(fact)
        if msgspec.json.decode(msgspec.json.encode(changes), type=Changes) != changes:
            yield f"the changes of {fact.id} differ on the other side of a wire"


def _law_of_duplicates(facts: Sequence[Fact]) -> Problems:
    straight = _state_of(facts)
    doubled = _state_of([fact for fact in facts for _ in range(2)])
    yield from _compare(
        "each fact twice", doubled | {"hydration": None}, straight | {"hydration": None}
    )


def _law_of_states(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    for fact in facts:
        projection.apply(fact)
        data = encode_state(projection.state)
        if encode_state(decode_state(data)) != data:
            yield f"the state at {fact.id} does not decode to itself"


def _law_of_graphs(facts: Sequence[Fact]) -> Problems:
    graph = project(facts).graph
    for edge in graph.edges.values():
        if edge.source not in graph.nodes or edge.target not in graph.nodes:
            yield f"edge {edge.edge_id} leads to no node"
    for node in graph.nodes.values():
        seen, above = {node.node_id}, node.parent_id
        while above is not None:
            if above in seen or above not in graph.nodes:
                yield f"node {node.node_id} is its own ancestor, or has none"
                break
            seen.add(above)
            above = graph.nodes[above].parent_id


def _law_of_timelines(facts: Sequence[Fact]) -> Problems:
    entries = project(facts).timeline
    names = [entry.entry_id for entry in entries]
    if len(names) != len(set(names)):
        yield "two entries of the timeline have the same id"


def _law_of_own_read_models(facts: Sequence[Fact]) -> Problems:
    projection = Projection()
    projection.apply_all(facts)
    if projection.state.hydration.status != "live":
        return
    before = to_document(projection.state)
    projection.repair(thread_read_model(projection.state))
    after = to_document(projection.state)
    roots = ("messages", "tools", "actions", "runtime")
    yield from _compare(
        "repaired by its own read model",
        {root: after[root] for root in roots},
        {root: before[root] for root in roots},
    )


def _law_of_read_models(facts: Sequence[Fact]) -> Problems:
    state = project(facts)
    model = read_thread_model(msgspec.json.encode(thread_read_model(state)))
    waiting = sorted(key for key, row in state.actions.items() if row.status == "pending")
    yield from _compare("open", sorted(row.action_id for row in model.pending_actions), waiting)


def _law_of_refused_read_models(_: Sequence[Fact]) -> Problems:
    for data in (b"[]", b"{", b'{"status": 7}'):
        try:
            read_thread_model(data)
            yield f"{data!r} was taken as a read model"
        except InvalidReadModel:
            continue


_PATCHES: Final[tuple[tuple[dict[str, Any], dict[str, Any] | None], ...]] = (
    ({"op": "add", "path": "/b", "value": 2}, {"a": {"~/": 1}, "b": 2}),
    ({"op": "remove", "path": "/a"}, {}),
    ({"op": "replace", "path": "/a/~0~1", "value": 3}, {"a": {"~/": 3}}),
    ({"op": "test", "path": "/a/~0~1", "value": 1}, {"a": {"~/": 1}}),
    ({"op": "test", "path": "/a/~0~1", "value": 9}, None),
    ({"op": "remove", "path": "/missing"}, None),
)


def _law_of_patches(_: Sequence[Fact]) -> Problems:
    for operation, wanted in _PATCHES:
        document = JsonDocument({"a": {"~/": 1}})
        before = msgspec.json.encode(document.root)
        try:
            document.patch([operation])
        except InvalidPatch:
            unchanged = msgspec.json.encode(document.root) == before
            if wanted is not None or not unchanged:
                yield f"{operation} was refused, or changed something"
        else:
            if document.root != wanted:
                yield f"{operation} gives {document.root}"


EVERY_STREAM: Final[Mapping[str, Law]] = {
    "projection.law.replay": _law_of_replay,
    "projection.law.changes": _law_of_changes,
    "projection.law.duplicates": _law_of_duplicates,
    "projection.repeat": _law_of_duplicates,
    "projection.checkpoint.exact": _law_of_checkpoints,
    "projection.changes.folded": _law_of_folded_changes,
    "projection.changes.wire": _law_of_sent_changes,
    "projection.state.decodes": _law_of_states,
    "projection.graph.sound": _law_of_graphs,
    "projection.timeline.entries": _law_of_timelines,
    "projection.repair.same": _law_of_own_read_models,
    "projection.read-model.thread": _law_of_read_models,
}
"""Requirement → the law that judges it on every stream."""

ONCE: Final[Mapping[str, Law]] = {
    "projection.checkpoint.refused": _law_of_refused_checkpoints,
    "projection.read-model.invalid": _law_of_refused_read_models,
    "projection.json-patch.standard": _law_of_patches,
    "projection.json-patch.pointers": _law_of_patches,
    "projection.json-patch.whole": _law_of_patches,
}
"""Requirement → what judges it without a stream."""


def law_cases(streams: Sequence[DeliveredStream]) -> tuple[Case, ...]:
    """Every law as a case; it judges Factwire's projection, whatever the reducer."""
    rows = [(name, law, streams) for name, law in EVERY_STREAM.items()]
    rows += [(name, law, streams[:1]) for name, law in ONCE.items()]
    return tuple(
        Case(
            id=f"law.{name}",
            title=name,
            source="facts.md §4",
            requirements=(name,),
            level="projection",
            run=partial(_run_law, name, law, own),
        )
        for name, law, own in rows
    )


def _run_law(
    name: str, law: Law, streams: Sequence[DeliveredStream], _: Reducer
) -> Iterator[Finding]:
    for stream in streams:
        for problem in law([read_fact(event, "facts") for event in stream.events]):
            yield Finding(requirement=name, message=f"{stream.name}: {problem}", level="projection")
