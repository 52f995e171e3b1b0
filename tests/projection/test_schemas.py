"""What a projection gives satisfies the schemas, and they take no state that Python refuses."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from factwire.facts import Fact, decode_fact
from factwire.facts.json_patch import InvalidPatch, JsonDocument
from factwire.facts.schemas.wire_types import CLASSES, VOCABULARIES, FieldVocabularies
from factwire.projection import (
    Projection,
    ProjectionState,
    active_process,
    artifact_ref,
    attention,
    decode_state,
    evidence_ref,
    graph_view,
    pending_actions,
    project,
    session_snapshot,
    task_snapshot,
    team_view,
    thread_read_model,
    timeline_page,
)
from factwire.projection.changes import Operation
from factwire.projection.schemas import SPOKEN, projection_files, projection_schemas
from tests.projection.generated_streams import build_random_facts

ROOT = Path(__file__).resolve().parents[2]
STREAMS = [ROOT / "examples" / "first_turn.ndjson", *ROOT.glob("examples/streams/*.ndjson")]

SCHEMAS = projection_schemas()
STATE = SCHEMAS["projection.schema.json"]

every_stream = pytest.mark.parametrize("path", sorted(STREAMS), ids=lambda path: path.stem)
every_schema = pytest.mark.parametrize("name", SCHEMAS)


def facts_of(path: Path) -> list[Fact]:
    return [decode_fact(line) for line in path.read_bytes().splitlines()]


def as_json(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))


@cache
def validator(name: str, place: str = "") -> Any:
    """For a whole document, or for what stands in one property of it."""
    schema = SCHEMAS[name]
    inner = {"$defs": schema.get("$defs", {}), **schema["properties"][place]} if place else schema
    return Draft202012Validator(inner)


def problems(value: object, name: str, place: str = "") -> list[str]:
    return [
        f"{place}{error.json_path}: {error.message}"
        for error in validator(name, place).iter_errors(value)
    ]


@pytest.mark.requirement("projection.schemas.json")
@every_schema
def test_a_schema_is_valid_json_schema_2020_12_and_stands_alone(name: str):
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    used = re.findall(r'"\$ref":"([^"]+)"', msgspec.json.encode(schema).decode())
    assert set(used) == {f"#/$defs/{kind}" for kind in schema["$defs"]}
    assert schema["$id"] == f"urn:factwire:schema:{name.removesuffix('.schema.json')}:v1"


@pytest.mark.requirement("projection.schemas.json")
@every_stream
def test_the_state_after_every_fact_validates_and_so_do_the_changes(path: Path):
    projection = Projection()
    before = msgspec.json.decode(projection.snapshot())
    for fact in facts_of(path):
        changes = as_json(projection.apply(fact).operations())
        after = msgspec.json.decode(projection.snapshot())
        assert problems(news(STATE, before, after), "projection.schema.json") == []
        assert problems(changes, "projection-changes.schema.json") == []
        before = after
    assert problems(before, "projection.schema.json") == []


def news(schema: dict[str, Any], before: Any, after: Any) -> Any:
    """The state with only those entries of lists and maps that are new or have changed.

    It is valid exactly when the whole one is, given that the last one was; and sooner known.
    """
    schema = STATE["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if before is None or after is None:
        return after
    if "items" in schema:
        return [item for at, item in enumerate(after) if [item] != before[at : at + 1]]
    if "additionalProperties" in schema:
        return {key: value for key, value in after.items() if before.get(key) != value}
    if "properties" in schema:
        fields = schema["properties"]
        return {key: news(fields[key], before.get(key), value) for key, value in after.items()}
    return after


@pytest.mark.requirement("projection.schemas.json")
@pytest.mark.parametrize("seed", range(4))
def test_a_state_of_senseless_facts_validates(seed: int):
    projection = Projection("main")
    projection.apply_all(build_random_facts(seed))
    snapshot = msgspec.json.decode(projection.snapshot())
    assert problems(snapshot, "projection.schema.json") == []


READ_MODELS: dict[str, Callable[[ProjectionState], list[Any]]] = {
    "ThreadReadModel": lambda state: [thread_read_model(state)],
    "TaskSnapshot": lambda state: [task_snapshot(state, key) for key in state.tasks],
    "SessionSnapshot": lambda state: [session_snapshot("session", [state, state])],
    "ArtifactRef": lambda state: [artifact_ref(item) for item in state.artifacts.values()],
    "EvidenceRef": lambda state: [evidence_ref(item) for item in state.evidence.items.values()],
}
SELECTORS: dict[str, Callable[[ProjectionState], list[Any]]] = {
    "Attention": lambda state: [*attention(state)],
    "PendingAction": lambda state: [*pending_actions(state)],
    "ActiveProcess": lambda state: [active_process(state)],
    "TimelinePage": lambda state: [timeline_page(state)],
    "GraphView": lambda state: [graph_view(state)],
    "TeamView": lambda state: [team_view(state)],
}
VIEWS = {"read-models.schema.json": READ_MODELS, "selectors.schema.json": SELECTORS}


@pytest.mark.requirement("projection.schemas.views")
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_of_a_state_validates_under_its_name(name: str):
    assert list(SCHEMAS[name]["properties"]) == list(VIEWS[name])
    seen: set[str] = set()
    for path in STREAMS:
        facts = facts_of(path)
        for state in (project(facts[: len(facts) // 2]), project(facts)):
            for kind, views in VIEWS[name].items():
                for view in views(state):
                    assert problems(as_json(view), name, kind) == []
                    seen.add(kind)
    assert seen == set(VIEWS[name])


def reads(value: object) -> bool:
    try:
        decode_state(msgspec.json.encode(value))
    except msgspec.ValidationError:
        return False
    return True


def accepts(value: object) -> bool:
    return validator("projection.schema.json").is_valid(value)


SAMPLE = "examples/streams/team_at_work.ndjson"


def sample() -> Any:
    """A state with messages, tools, tasks and a team."""
    return as_json(project(facts_of(ROOT / SAMPLE)))


@pytest.mark.requirement("projection.schemas.exact")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/messages", {}),
        ("/messages/0/parts/0/type", "hologram"),
        ("/messages/0/parts/0/text", None),
        ("/messages/0/parts/0/text", ["growing"]),
        ("/messages/0/parts/0/state", "paused"),
        ("/messages/0/status", "lost"),
        ("/messages/0/sequence", "1"),
        ("/messages/0/turnId", 7),
        ("/hydration/status", "fine"),
        ("/hydration/gaps", [{"fromSequence": 1}]),
        ("/runtime/latestSequence", 1.5),
        ("/runtime", None),
        ("/shared", []),
        ("/teamWorkbench/rosterNodes", []),
        ("/tasks", {"t": {"taskId": "t"}}),
        ("", []),
    ],
)
def test_what_is_no_state_is_refused_by_both(path: str, value: Any):
    document = JsonDocument(sample())
    assert accepts(document.root)
    document.patch([{"op": "replace", "path": path, "value": value}])
    assert (reads(document.root), accepts(document.root)) == (False, False)


@pytest.mark.requirement("projection.schemas.exact")
@pytest.mark.parametrize("name", STATE["required"])
def test_no_root_of_a_state_may_be_missing(name: str):
    state = sample()
    del state[name]
    assert (reads(state), accepts(state)) == (False, False)


@pytest.mark.requirement("projection.schemas.exact")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/fieldOfTomorrow", {"any": 1}),
        ("/messages/0/fieldOfTomorrow", 1),
        ("/messages/0/turnId", None),
        ("/messages/0/role", "tool"),
        ("/runtime/phase", "a phase of tomorrow"),
        ("/hydration/cursor", None),
        ("/shared/any", [None, {"any": 1}]),
    ],
)
def test_what_a_later_state_may_hold_is_taken_by_both(path: str, value: Any):
    document = JsonDocument(sample())
    document.patch([{"op": "add", "path": path, "value": value}])
    assert (reads(document.root), accepts(document.root)) == (True, True)


# JSON Schema takes 1.0 for a whole number and Factwire does not, so fractions are real ones here.
scalars = st.sampled_from([None, True, 0, 7, -3, 0.5, "", "text", "final", "live"])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def places(value: Any) -> list[Any]:
    """The keys or indexes under which something stands in a value."""
    match value:
        case dict():
            return sorted(cast("dict[str, Any]", value))
        case list():
            return [*range(len(cast("list[Any]", value)))]
        case _:
            return []


@pytest.mark.requirement("projection.schemas.exact")
@given(data=st.data())
def test_a_schema_takes_exactly_the_states_that_python_reads(data: st.DataObject):
    state = sample()
    holder: Any = state
    key = data.draw(st.sampled_from(places(state)))
    while places(holder[key]) and data.draw(st.booleans()):
        holder = holder[key]
        key = data.draw(st.sampled_from(places(holder)))
    if data.draw(st.booleans()):
        holder[key] = data.draw(anything)
    else:
        del holder[key]
    assert accepts(state) == reads(state)


def carried_out(operation: Any) -> bool:
    """Whether an operation is one that Python knows and that could be carried out somewhere."""
    document = JsonDocument({"text": "a", "list": [], "shared": {}})
    try:
        msgspec.convert(operation, Operation)
        document.patch([operation])
    except (msgspec.ValidationError, InvalidPatch):
        return False
    return True


@pytest.mark.requirement("projection.schemas.exact")
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/shared/a", "value": None},
        {"op": "add", "path": "/list/-", "value": {"any": 1}},
        {"op": "replace", "path": "", "value": {}},
        {"op": "replace", "path": "/text", "value": 7},
        {"op": "remove", "path": "/text"},
        {"op": "append", "path": "/text", "value": "b"},
        {"op": "add", "path": "/shared/a"},
        {"op": "replace", "path": "/text"},
        {"op": "append", "path": "/text"},
        {"op": "append", "path": "/text", "value": 7},
        {"op": "append", "path": "/text", "value": None},
        {"op": "remove", "path": ""},
        {"op": "move", "path": "/text", "from": "/shared"},
        {"op": "test", "path": "/text", "value": "a"},
        {"op": "add", "path": "shared", "value": 1},
        {"op": "add", "path": 7, "value": 1},
        {"path": "/text", "value": 1},
        {},
    ],
)
def test_the_schema_of_changes_knows_what_an_operation_is(operation: Any):
    schema = validator("projection-changes.schema.json")
    assert schema.is_valid([operation]) == carried_out(operation)


@pytest.mark.requirement("projection.schemas.json")
def test_fields_that_speak_words_of_facts_offer_them():
    def field_names(spoken: FieldVocabularies) -> set[tuple[str, str]]:
        return {(kind, field) for kind, fields in spoken.items() for field in fields}

    documents = (SCHEMAS["read-models.schema.json"], SCHEMAS["selectors.schema.json"], STATE)
    offered = {
        (kind, field): tuple(schema["examples"])
        for document in documents
        for kind, definition in document["$defs"].items()
        for field, schema in definition["properties"].items()
        if "examples" in schema
    }
    assert offered.keys() == field_names(SPOKEN)
    words = VOCABULARIES | CLASSES
    assert offered == {(kind, f): words[SPOKEN[kind][f]] for kind, f in offered}


@pytest.mark.requirement("schemas.current")
@pytest.mark.parametrize("name", projection_files())
def test_a_committed_schema_is_what_the_types_say_now(name: str):
    assert (ROOT / "schemas" / name).read_text("utf-8") == projection_files()[name]
