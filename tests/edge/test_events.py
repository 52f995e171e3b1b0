"""Facts in the Edge's words: the list of types is kept in both directions, payloads are typed."""

import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.edge.events import (
    ERROR_CODES,
    EVENT_TYPES,
    FRAME_TYPES,
    build_envelope,
    encode,
    encode_envelope,
)
from factwire.edge.events.event_types import EVENT_MAPPINGS
from factwire.facts import (
    EDGE_CLASSES,
    KNOWN_CLASSES,
    PAYLOAD_TYPES,
    Fact,
    decode_fact,
    read_fact,
)
from factwire.facts.fact import ATTRIBUTES
from factwire.journal import Cursor, Filter
from factwire.journal.filter import list_keys
from factwire.runtime import FAILURE_CATEGORIES
from factwire.runtime.mint import run_of
from factwire.serving.envelopes import (
    VIEWS,
    Envelope,
    EventIdInvalid,
    Scope,
    ThreadPlace,
    View,
    build_error_event,
    encode_frame,
    event_id_of,
    fact_id_of,
    scope_ids_of,
)
from factwire.serving.streams import FrameEncoder, Selection
from tests.edge.event_samples import EDGE, EPOCH, SAMPLES, TIME, TURN, Sample, fact, to_envelope
from tests.edge.event_spec import ADDED, SPECIFIED
from tests.facts.samples import EXTRA_IDS, full_fact
from tests.projection.generated_streams import RandomFacts

STREAMS = sorted((Path(__file__).resolve().parents[2] / "examples" / "streams").glob("*.ndjson"))
PLAIN = re.compile(r"[!-~]{1,128}")

NAMED = [
    pytest.param(sample, id=f"{number} {sample.fact.event_class} {sample.type}")
    for number, sample in enumerate(SAMPLES)
]

every_view = pytest.mark.parametrize("view", VIEWS)


def wire(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def check_envelope(value: Fact, view: View, seq: int = 7) -> Envelope:
    """The envelope of a fact, held against the list of types and its own JSON."""
    envelope = to_envelope(value, view, seq)
    data = encode(seq, value, view, epoch=EPOCH, edge_id=EDGE)
    read = msgspec.json.decode(data, type=Envelope)
    kind = EVENT_TYPES.get(envelope.type)
    if kind is None:
        assert envelope.type == value.event_class
        assert envelope.type not in FRAME_TYPES
        assert PLAIN.fullmatch(envelope.type)
        assert type(envelope.payload) is dict
    else:
        assert type(envelope.payload) is kind.payload
        assert view in kind.views
        payload = msgspec.convert(read.payload, kind.payload, strict=True)
        read = msgspec.structs.replace(read, payload=payload)
        assert read == envelope
    assert fact_id_of(envelope.id) == value.id
    assert (envelope.seq, envelope.cursor) == (seq, str(Cursor(EPOCH, seq)))
    return envelope


@pytest.mark.requirement("edge.events.payloads")
@pytest.mark.requirement("edge.events.views")
@pytest.mark.parametrize("sample", NAMED)
def test_a_fact_is_told_in_the_words_of_a_view(sample: Sample):
    for view in sample.views:
        envelope = check_envelope(sample.fact, view)
        assert (envelope.type, wire(envelope.payload)) == (sample.type, sample.payload)


@pytest.mark.requirement("edge.events.types.emitted")
def test_every_listed_type_is_given_by_a_sample_in_each_of_its_views():
    values = {(sample.type, view) for sample in SAMPLES for view in sample.views}
    values |= {("run.status.changed", "conversation"), ("error", "runtime")}
    assert {name for name, _ in values} == set(EVENT_TYPES)


@pytest.mark.requirement("edge.events.types.emitted")
@pytest.mark.parametrize("name", sorted(set(EVENT_TYPES) - {"error", "unknown"}))
def test_every_listed_type_follows_from_known_classes(name: str):
    kind = EVENT_TYPES[name]
    assert kind.classes
    assert set(kind.classes) <= set(KNOWN_CLASSES)


@pytest.mark.requirement("edge.events.types.listed")
@pytest.mark.parametrize("name", sorted(EVENT_MAPPINGS))
def test_a_class_has_only_words_that_are_listed(name: str):
    words = EVENT_MAPPINGS[name]
    assert set(words.runtime.types) | set(words.conversation.types) <= set(EVENT_TYPES)


@pytest.mark.requirement("edge.events.types.listed")
def test_what_a_sample_gives_is_declared_beside_its_teller():
    for sample in SAMPLES:
        for view in sample.views if sample.fact.event_class else ():
            assert sample.type in getattr(EVENT_MAPPINGS[sample.fact.event_class or ""], view).types


@pytest.mark.requirement("edge.events.types.specified")
def test_the_listed_types_are_those_of_the_specification():
    assert set(EVENT_TYPES) - ADDED == set(SPECIFIED)


@pytest.mark.requirement("edge.events.types.specified")
@pytest.mark.parametrize("name", SPECIFIED)
def test_a_payload_has_the_fields_of_the_specification(name: str):
    fields = {field.encode_name for field in msgspec.structs.fields(EVENT_TYPES[name].payload)}
    assert set(SPECIFIED[name].split()) <= fields


@pytest.mark.requirement("edge.events.types.specified")
@pytest.mark.parametrize("name", EVENT_TYPES)
def test_a_type_says_what_it_means(name: str):
    sentence = EVENT_TYPES[name].sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")


@pytest.mark.requirement("edge.events.one-envelope")
@every_view
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_recorded_fact_is_one_envelope(path: Path, view: View):
    facts = [decode_fact(line) for line in path.read_bytes().splitlines()]
    envelopes = [check_envelope(value, view, seq) for seq, value in enumerate(facts, 1)]
    assert [envelope.seq for envelope in envelopes] == [*range(1, len(facts) + 1)]
    ids = [envelope.id for envelope in envelopes]
    assert len(set(ids)) == len({value.id for value in facts})
    assert all(name.startswith("evt_") for name in ids)


@pytest.mark.requirement("edge.events.one-envelope")
@every_view
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_every_known_class_is_told_with_and_without_what_it_needs(name: str, view: View):
    whole = check_envelope(msgspec.structs.replace(full_fact(name), subagent_id=None), view)
    words = getattr(EVENT_MAPPINGS.get(name), view, None)
    assert whole.type == name or (words is not None and whole.type in words.types)
    bare = check_envelope(fact(name), view)
    assert bare.type in (name, "unknown", *(words.types if words else ()))


@pytest.mark.requirement("edge.events.payloads")
@pytest.mark.fuzz
@every_view
@pytest.mark.parametrize("seed", range(4))
def test_no_payload_of_a_fact_breaks_the_payload_of_a_type(seed: int, view: View):
    for value in RandomFacts(seed).facts(1_500):
        check_envelope(value, view)


JUNK: tuple[Any, ...] = (
    None,
    "",
    "x",
    True,
    -1,
    0,
    1.5,
    2**64 - 1,
    1.7e308,
    [],
    ["x", 1, None, {}],
    {},
    {"a": [1]},
    "é\n",
)
FIELDS = sorted(
    {
        field.encode_name
        for payload in (*PAYLOAD_TYPES.values(), *(kind.payload for kind in EVENT_TYPES.values()))
        for field in msgspec.structs.fields(payload)
    }
    | {"retryOf", "chunks", "shown", "command", "threshold", "isAuthenticating", "startedAt"}
)


@pytest.mark.requirement("edge.events.payloads")
@pytest.mark.fuzz
@every_view
@pytest.mark.parametrize("name", sorted(EVENT_MAPPINGS))
def test_junk_in_every_field_that_a_teller_reads_is_left_out(name: str, view: View):
    chance = random.Random(name)
    for _ in range(40):
        payload = {field: chance.choice(JUNK) for field in chance.sample(FIELDS, 60)}
        check_envelope(fact(name, payload, **chance.choice([{}, TURN, EXTRA_IDS])), view)


@pytest.mark.requirement("edge.events.pure")
@every_view
def test_the_same_fact_at_the_same_place_is_the_same_envelope(view: View):
    for sample in SAMPLES:
        once = encode(7, sample.fact, view, epoch=EPOCH, edge_id=EDGE)
        assert once == encode(7, sample.fact, view, epoch=EPOCH, edge_id=EDGE)
        assert once == encode_envelope(to_envelope(sample.fact, view))


@pytest.mark.requirement("edge.events.envelope")
def test_an_envelope_says_where_it_belongs_and_where_to_go_on():
    value = fact("turn.started", **TURN, conversationId="cnv_1", traceId="t" * 32)
    assert wire(to_envelope(value, seq=12)) == {
        "version": "v1",
        "id": "evt_1",
        "seq": 12,
        "type": "run.started",
        "scope": {
            "projectId": "prj_1",
            "conversationId": "cnv_1",
            "threadId": "thr_1",
            "runId": "run_1",
            "edgeId": "edge_1",
        },
        "traceId": "t" * 32,
        "sentAt": TIME,
        "payload": {"runId": "run_1", "status": "running", "projectId": "prj_1"}
        | {"threadId": "thr_1", "startedAt": TIME},
        "cursor": f"fw1.{EPOCH}.0000000000000012",
    }


@pytest.mark.requirement("edge.events.envelope")
def test_the_scope_has_the_run_and_the_item_that_the_payload_names():
    queued = fact("queue.changed", {}, threadId="t", control="queue", queuedTurnId="trn_5")
    assert to_envelope(queued).scope.run_id == "run_5"
    piece = fact("model.delta", {"delta": "x"}, threadId="t", turnId="trn_5", messageId="m")
    assert to_envelope(piece, "conversation").scope.item_id == "m"
    assert to_envelope(piece).scope.run_id == run_of("trn_5") == "run_5"
    assert run_of("turn-7") == "run_turn-7"


@pytest.mark.requirement("edge.events.envelope")
def test_facts_of_one_run_share_a_trace():
    one, other = fact("turn.started", **TURN), fact("model.delta", {"delta": "x"}, **TURN)
    apart = fact("turn.started", **TURN | {"runId": "run_2"})
    assert to_envelope(one).trace_id == to_envelope(other).trace_id != to_envelope(apart).trace_id
    assert re.fullmatch(r"[0-9a-f]{32}", to_envelope(one).trace_id)
    assert to_envelope(fact("runner.online")).trace_id


@pytest.mark.requirement("edge.events.envelope")
@pytest.mark.parametrize(
    ("created", "sent"),
    [
        (TIME, TIME),
        ("2026-06-10T02:00:00+02:00", "2026-06-10T00:00:00Z"),
        ("2026-06-10T00:00:00.123456789Z", "2026-06-10T00:00:00.123456789Z"),
        ("2026-06-10T00:00:00", "unknown"),
        ("2026-13-40T00:00:00Z", "unknown"),
        ("0001-01-01T00:00:00+23:00", "unknown"),
        ("yesterday", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_time_is_the_facts_own_in_utc(created: str, sent: str):
    assert to_envelope(fact("turn.started", **TURN, createdAt=created)).sent_at == sent


@pytest.mark.requirement("edge.events.ids")
@pytest.mark.parametrize(
    "fact_id", ["evt_01HX", "evt_", "text_turn-003", "evt_~", "evt_~YQ", "a/b c#é", "é", "evt"]
)
def test_an_event_id_leads_back_to_its_fact(fact_id: str):
    event_id = event_id_of(fact_id)
    assert event_id.startswith("evt_")
    assert fact_id_of(event_id) == fact_id


@pytest.mark.requirement("edge.events.ids")
def test_no_two_facts_share_an_event_id():
    ids = ["a", event_id_of("a"), event_id_of(event_id_of("a")), "evt_a", "evt_~a"]
    assert len({event_id_of(name) for name in ids}) == len(ids)


@pytest.mark.requirement("edge.events.ids")
@pytest.mark.parametrize(
    "text",
    ["", "fact_1", "fw1.x", "evt_~", "evt_~Y", "evt_~YR", "evt_~====", "evt_~ZXZ0XzE", "evt_~_w"],
)
def test_a_text_that_is_no_event_id_is_refused(text: str):
    with pytest.raises(EventIdInvalid) as caught:
        fact_id_of(text)
    assert caught.value.code == "cursor_invalid"


@pytest.mark.requirement("edge.events.runs")
@pytest.mark.parametrize(("category", "code"), [*ERROR_CODES.items(), ("odd", "UNKNOWN")])
def test_a_failed_run_has_a_code(category: str, code: str):
    failed = fact("turn.failed", {"failureCategory": category}, **TURN)
    payload = to_envelope(failed).payload
    assert (payload.error.code, payload.error.details) == (code, {"failureCategory": category})
    assert to_envelope(failed, "conversation").payload.error == payload.error


@pytest.mark.requirement("edge.events.runs")
def test_the_runtimes_own_categories_have_the_codes_that_clients_know():
    codes = {name: ERROR_CODES.get(name, "UNKNOWN") for name in FAILURE_CATEGORIES}
    assert codes["runtime_restarted"] == "EDGE_RESTARTED"
    assert codes["timeout"] == "TIMEOUT"
    assert codes["stream_interrupted"] == "UNKNOWN"


@pytest.mark.requirement("edge.events.runs")
@every_view
@pytest.mark.parametrize(
    "name", ["turn.submitted", "turn.started", "turn.completed", "turn.failed"]
)
def test_a_turn_of_a_subagent_is_no_run(name: str, view: View):
    value = fact(name, {"prompt": "x"}, **TURN, subagentId="sub_1")
    assert to_envelope(value, view).type == name


@pytest.mark.requirement("edge.events.runs")
def test_where_a_run_came_from_is_told_only_where_the_fact_knows():
    told_so = fact("turn.canceled", {"from": "queued"}, **TURN)
    assert to_envelope(told_so, "conversation").payload.from_ == "queued"
    forged = fact("turn.canceled", {"from": "finished"}, **TURN)
    assert to_envelope(forged, "conversation").payload.from_ is None


@pytest.mark.requirement("edge.events.unpromoted")
@every_view
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("tool.started", {"toolName": "read"}),
        ("tool.result", {"output": "x"}),
        ("action.required", {"prompt": "x"}),
        ("turn.started", {}),
        ("process.output", {"text": "x"}),
        ("reasoning.completed", {}),
        ("queue.changed", {"queuedTurns": []}),
        ("queue.changed", {"queuedTurnId": "trn_2", "change": "moved"}),
        ("routing.decided", {"model": "m"}),
        ("snapshot.updated", {"status": "completed"}),
        ("snapshot.updated", {"toSequence": 4, "turnId": "trn_1"}),
        ("metrics.changed", {"firstTextMs": 4}),
        ("team.changed", {"teamName": "x"}),
        ("run.status", {}),
        ("model.failed", {"failureCategory": "x"}),
        ("hook.started", {"hookName": "x"}),
        ("task.started", {"title": "x"}),
        ("file.changed", {"change": "added"}),
        ("context.resolved", {"selected": 3}),
        ("policy.changed", {"mode": 3}),
    ],
)
def test_a_fact_that_lacks_what_a_type_needs_keeps_its_class(
    name: str, payload: dict[str, Any], view: View
):
    assert wire(to_envelope(fact(name, payload), view).payload) == payload
    assert to_envelope(fact(name, payload), view).type == name


@pytest.mark.requirement("edge.events.unpromoted")
def test_a_fact_under_its_own_class_keeps_the_ids_that_tie_it_to_others():
    value = fact("tool.output.delta", {"delta": "x"}, **TURN, toolCallId="call_1", refIds=["r:1"])
    assert to_envelope(value).payload == {
        "turnId": "trn_1",
        "toolCallId": "call_1",
        "refIds": ["r:1"],
        "delta": "x",
    }


@pytest.mark.requirement("edge.events.unforged")
@every_view
@pytest.mark.parametrize(
    "name",
    [
        *("error", "checkpoint", "fact", "projection.snapshot", "projection.delta", "unknown"),
        *("run.agent.text_delta", "approval.decided", "run.status.changed", "run.queued"),
        *("a\nevent: error", "a b", "é", "x" * 129),
    ],
)
def test_a_class_does_not_pass_for_a_type_or_a_frame(name: str, view: View):
    envelope = check_envelope(fact(name, {"code": "forged"}, turnId="trn_1"), view)
    assert envelope.type == "unknown"
    assert envelope.payload.event_class == name


@pytest.mark.requirement("edge.events.unforged")
def test_the_edges_own_words_need_what_they_are_about():
    for name in EDGE_CLASSES.keys() & EVENT_TYPES.keys():
        assert to_envelope(fact(name)).type == "unknown"
    assert to_envelope(fact("run.finished")).type == "unknown"


@pytest.mark.requirement("edge.events.unforged")
def test_an_unknown_class_is_passed_on_as_it_is():
    assert to_envelope(fact("lamp.dimmed", {"level": 3})).type == "lamp.dimmed"


@pytest.mark.requirement("edge.events.types.emitted")
def test_an_error_is_told_by_the_stream_and_is_no_place_to_resume_from():
    error = build_error_event(
        "cursor_expired", "too old", seq=7, trace_id="t", sent_at=TIME, scope=Scope(edge_id=EDGE)
    )
    assert error.id.startswith("evt_")
    assert msgspec.json.decode(encode_frame(error)) == {
        "version": "v1",
        "id": error.id,
        "seq": 7,
        "type": "error",
        "scope": {"edgeId": EDGE},
        "traceId": "t",
        "sentAt": TIME,
        "payload": {"code": "cursor_expired", "message": "too old", "traceId": "t"},
    }


@pytest.mark.requirement("edge.events.envelope")
def test_the_view_that_nobody_names_is_the_runtimes():
    value = fact("model.delta", {"delta": "x"}, **TURN)
    assert build_envelope(1, value, epoch=EPOCH, edge_id=EDGE) == to_envelope(value, "runtime", 1)


@pytest.mark.requirement("edge.events.one-envelope")
def test_a_fact_read_from_another_shape_is_told_alike():
    shaped = {"type": "text.delta", "payload": {"delta": "x"}, "turnId": "trn_1", "id": "evt_9"}
    envelope = check_envelope(read_fact(shaped, "ui"), "runtime")
    assert (envelope.type, envelope.sent_at) == ("run.agent.text_delta", "unknown")


_IDS = st.sampled_from(["1", "run_1", "trn_1", "2"])
_PLACES = {"t1": ThreadPlace(project_id="p1", project_seq=3), "t2": ThreadPlace(project_id="p2")}


@st.composite
def _facts_with_ids(draw: st.DrawFn) -> Fact:
    """A fact that names what it is about in its fields, in its payload, or in both."""
    names = ("runId", "turnId", "queuedTurnId", "projectId", "threadId")
    values = {
        "projectId": st.sampled_from(["p1", "p2"]),
        "threadId": st.sampled_from(["t1", "t2", "t3"]),
    }
    fields: dict[str, Any] = {
        ATTRIBUTES[name]: draw(st.none() | values.get(name, _IDS)) for name in names
    }
    within = {name: draw(st.none() | values.get(name, _IDS)) for name in names}
    return Fact(
        id="f",
        kind="state",
        status="running",
        title="t",
        created_at="2026-01-01T00:00:00Z",
        schema_version="factwire-fact/v1",
        runtime_id="r",
        sequence=1,
        event_class=draw(st.sampled_from(["queue.changed", "run.status", "tool.started"])),
        payload={name: value for name, value in within.items() if value is not None},
        **fields,
    )


@pytest.mark.requirement("edge.events.scope")
@given(fact=_facts_with_ids(), seq=st.integers(1, 5))
def test_the_index_finds_every_fact_whose_envelope_names_a_run_or_a_project(fact: Fact, seq: int):
    scope = scope_ids_of(seq, fact, _PLACES.get)
    keys = list_keys(fact)
    for wanted in (Filter(run=scope.run_id), Filter(project=scope.project_id)):
        encoder = FrameEncoder(
            Selection(face="facts", filter=wanted),
            envelope_of=partial(build_envelope, edge_id="e"),
            place_of=_PLACES.get,
            threads_of=lambda project: [
                thread for thread, place in _PLACES.items() if place.project_id == project
            ],
        )
        found = encoder.build_replay_filter()
        assert found is None or found.lets_through(keys)
