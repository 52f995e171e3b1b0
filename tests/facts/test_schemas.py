"""The JSON Schemas say what `factwire.facts` does, and the committed files say what they do now."""

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import factwire.facts
from factwire.facts.capabilities import CapabilityManifest
from factwire.facts.classes import payloads as payloads_module
from factwire.facts.classes.class_tables import CLASS_ALIASES, KNOWN_CLASSES, PAYLOAD_TYPES
from factwire.facts.classes.payloads import Payload
from factwire.facts.fact import Fact
from factwire.facts.inputs import read_input
from factwire.facts.inspection import Fixture, inspect_fact
from factwire.facts.issues import FactError
from factwire.facts.schemas import IssueReport, ReportError, json_schemas, schema_files
from factwire.facts.shapes import REQUIRED_FIELDS, shape_issues, wire_name
from factwire.facts.vocabulary import KINDS, LEGACY_TERMINALS, SHAPES, Shape

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = json_schemas()
FILES: dict[Shape, str] = {
    "facts": "fact.schema.json",
    "runtime-event": "runtime-event.schema.json",
    "ui": "ui-event.schema.json",
}
PAYLOADS = PAYLOAD_TYPES

json = pytest.mark.requirement("schemas.json")


VALIDATORS: dict[str, Any] = {name: Draft202012Validator(SCHEMAS[name]) for name in SCHEMAS}


def accepts(name: str, value: Any) -> bool:
    return VALIDATORS[name].is_valid(value)


def refs(document: dict[str, Any]) -> set[str]:
    """Every ref of a document; no property is called `$ref`."""
    return set(re.findall(r'"\$ref":"([^"]+)"', msgspec.json.encode(document).decode()))


@json
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_json_schema_2020_12(name: str):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@json
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_stands_alone_and_claims_no_host(name: str):
    schema = SCHEMAS[name]
    slug = name.removesuffix(".schema.json")
    defined = {f"#/$defs/{type_name}" for type_name in schema.get("$defs", {})}
    assert schema["$id"] == f"urn:factwire:schema:{slug}:v1"
    assert refs(schema) == defined


# JSON Schema takes 1.0 for a whole number and Factwire does not, so fractions are real ones here.
fractions = st.integers(-1_000, 1_000).map(lambda number: number + 0.5)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | fractions | st.text(max_size=4)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
classes = st.sampled_from([*KNOWN_CLASSES, *CLASS_ALIASES, "acme.reindexed", "unknown"])
nothing: dict[str, Any] = {}
no_classes = st.sampled_from([*LEGACY_TERMINALS, ""])
samples: list[Any] = [
    *("words", "more words", "", None, True, 1, 0.5, {}, {"any": [1]}, [], ["words"], [{"any": 1}]),
    {"ref": "output:1", "kind": "output", "bytes": 1, "preview": None},
    {"completedSteps": 1, "totalSteps": None},
]


def fits(value: object, expected: object) -> bool:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        return False
    return True


def values_for(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    return st.sampled_from([sample for sample in samples if fits(sample, field.type)])


@st.composite
def payloads(draw: st.DrawFn, event_class: str) -> dict[str, Any]:
    """A payload that fits its class, or nearly does."""
    expected = PAYLOADS.get(CLASS_ALIASES.get(event_class, event_class), Payload)
    fields = {field.encode_name: field for field in msgspec.structs.fields(expected)}
    names = st.sampled_from([*fields, "custom"])
    value = {
        name: draw(values_for(fields[name]) if name in fields else anything)
        for name in draw(st.lists(names, max_size=4))
    }
    return value | draw(st.just(nothing) | st.dictionaries(names, anything, max_size=1))


@st.composite
def objects(draw: st.DrawFn, shape: Shape) -> dict[str, Any]:
    """An object that is of the shape, or nearly is."""
    fields = {
        wire_name(shape, field.encode_name): field
        for field in msgspec.structs.fields(Fact)
        if field.encode_name
    }
    some = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4))
    value = {name: draw(values_for(fields[name]) | st.none()) for name in some}
    value |= {name: draw(values_for(fields[name])) for name in REQUIRED_FIELDS[shape]}
    value["sequence"] = draw(st.sampled_from([0, 1, 2, 3, 2**53 - 1, 2**53, -1, -(2**53)]))
    value |= draw(st.sampled_from([nothing, {"custom": [1], "": None}]))
    event_class = draw(classes)
    value[wire_name(shape, "eventClass")] = event_class
    value["payload"] = draw(payloads(event_class))
    return draw(
        disturb_object(value, wire_name(shape, "eventClass"), [*fields, "", "id", "custom"])
    )


@st.composite
def disturb_object(
    draw: st.DrawFn, value: dict[str, Any], class_field: str, names: list[str]
) -> dict[str, Any]:
    """The object as it is, or with one field missing, replaced, or a class that is none."""
    gone = draw(st.none() | st.none() | st.sampled_from(sorted(value)))
    rest = {name: item for name, item in value.items() if name != gone}
    changes = st.dictionaries(st.sampled_from(names), anything, max_size=1)
    return rest | draw(
        st.just(nothing) | changes | st.fixed_dictionaries({class_field: no_classes})
    )


def well_typed(value: Any, shape: Shape) -> bool:
    """Whether Factwire finds every field there and of its type, those of the payload included.
    What a ref may name is a rule about it, and no type.
    """
    if shape_issues(value, shape):
        return False
    typed = ("$.payload", f"$.{wire_name(shape, 'eventClass')}")
    return not any(
        issue.code == "schema_mismatch"
        and issue.path.startswith(typed)
        and not issue.message.startswith("a ref ")
        for issue in inspect_fact(value, shape)
    )


@json
@given(shape=st.sampled_from(SHAPES), data=st.data())
def test_a_schema_accepts_exactly_what_factwire_finds_well_typed(shape: Shape, data: st.DataObject):
    value = data.draw(objects(shape))
    assert accepts(FILES[shape], value) == well_typed(value, shape)


@json
@given(shape=st.sampled_from(SHAPES), value=anything)
def test_a_schema_judges_any_json_as_factwire_does(shape: Shape, value: Any):
    assert accepts(FILES[shape], value) == (not shape_issues(value, shape))


FACT = {
    "id": "f1",
    "kind": "tool",
    "status": "running",
    "title": "Search",
    "createdAt": "2026-01-01T00:00:00Z",
    "schemaVersion": "1",
    "runtimeId": "r1",
    "sequence": 1,
    "eventClass": "tool.started",
    "toolCallId": "t1",
    "payload": {"toolName": "search", "args": {"q": "facts"}},
}


@json
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sequence": -(2**53 - 1)},
        {"kind": "a kind of tomorrow"},
        {"eventClass": "acme.reindexed", "payload": {"toolName": 7}},
        {"eventClass": None, "payload": None, "refIds": None, "threadId": None},
        {"custom": {"deep": [1, None]}, "": 1},
        {"payload": {"outputRef": "output:1", "progress": 1, "custom": 1}},
    ],
)
def test_a_fact_that_is_well_typed_validates(change: dict[str, Any]):
    value = FACT | change
    assert well_typed(value, "facts")
    assert accepts("fact.schema.json", value)


@json
@pytest.mark.parametrize(
    "change",
    [
        *({name: None} for name in REQUIRED_FIELDS["facts"]),
        {"id": ""},
        {"sequence": "1"},
        {"sequence": True},
        {"sequence": 2**53},
        {"payload": []},
        {"refIds": ["r", 1]},
        {"eventClass": "turn.done"},
        {"payload": {"toolName": 7}},
        {"payload": {"outputRef": {"ref": "output:1"}}},
        {"eventClass": "message.delta", "payload": {"delta": 7}},
    ],
)
def test_a_fact_that_is_not_well_typed_is_refused(change: dict[str, Any]):
    value = FACT | change
    assert not well_typed(value, "facts")
    assert not accepts("fact.schema.json", value)


@json
def test_a_shape_schema_requires_what_the_shape_requires():
    assert {
        shape: tuple(SCHEMAS[name]["required"]) for shape, name in FILES.items()
    } == REQUIRED_FIELDS


@json
def test_known_words_are_examples_and_types_say_what_they_are():
    schema = SCHEMAS["fact.schema.json"]
    assert schema["properties"]["kind"]["examples"] == list(KINDS)
    assert schema["description"].split() == (Fact.__doc__ or "").split()
    assert schema["$defs"]["ToolCallPayload"]["description"].startswith("tool.*: ")


@json
def test_the_schema_of_a_payload_is_found_by_its_class():
    properties = SCHEMAS["payloads.schema.json"]["properties"]
    assert properties == {
        name: {"$ref": f"#/$defs/{payload.__name__}"} for name, payload in sorted(PAYLOADS.items())
    }
    assert accepts("payloads.schema.json", {"tool.started": {"toolName": "search"}})
    assert not accepts("payloads.schema.json", {"tool.started": {"toolName": 7}})


INPUTS = [
    "plain words",
    [],
    [{"type": "text", "text": "look"}, {"type": "asset", "kind": "image", "ref": "artifact:1"}],
    [{"type": "capability", "ref": "capability:1", "purpose": None}],
    [{"type": "text"}],
    [{"type": "asset", "kind": "hologram", "ref": "artifact:1"}],
    [{"type": "text", "text": "look", "bytes": "no such field"}],
    [{"type": "video"}],
    ["text"],
]


@json
@pytest.mark.parametrize("value", INPUTS)
def test_the_input_schema_agrees_with_reading_an_input(value: Any):
    try:
        read_input(value)
        readable = True
    except FactError:
        readable = False
    assert accepts("input.schema.json", value) == readable


DOCUMENTS: list[tuple[str, type[msgspec.Struct], dict[str, Any]]] = [
    (
        "fixture.schema.json",
        Fixture,
        {
            "id": "x",
            "schemaVersion": "agent-ui-fixture/v0.1",
            "title": "One tool",
            "events": [FACT],
            "expected": {"status": "completed", "artifactCount": 0},
        },
    ),
    (
        "capabilities.schema.json",
        CapabilityManifest,
        {"agentId": "a", "title": "A", "controls": ["stop"], "streaming": {"text": "yes"}},
    ),
    (
        "issue.schema.json",
        IssueReport,
        {
            "valid": False,
            "issues": [{"code": "sequence_gap", "path": "$[1]", "message": "3 after 1"}],
            "facts": 2,
            "issuesOmitted": 1,
            "error": {"code": "unreadable_input", "line": 3, "message": "not JSON"},
        },
    ),
]


@json
@pytest.mark.parametrize(("name", "expected", "value"), DOCUMENTS)
@given(data=st.data())
def test_a_document_schema_agrees_with_its_type(
    name: str, expected: type, value: dict[str, Any], data: st.DataObject
):
    changed = data.draw(
        st.dictionaries(st.sampled_from([*SCHEMAS[name]["properties"], "custom"]), anything)
    )
    assert accepts(name, value)
    assert accepts(name, value | changed) == fits(value | changed, expected)


# Types that never leave the process.
INSIDE = {
    *("Blob", "FactReading", "IntakeResult", "RedactedFact", "RedactionFinding", "RequiredField"),
    *("RouteDecision", "Spill", "Violation"),
}


def public_types() -> set[str]:
    public = {name: getattr(factwire.facts, name) for name in factwire.facts.__all__}
    public |= vars(payloads_module) | {"IssueReport": IssueReport, "ReportError": ReportError}
    return {
        name
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, msgspec.Struct)
    }


@pytest.mark.requirement("schemas.typescript")
def test_every_public_type_is_declared_in_typescript():
    declarations = schema_files()["factwire.d.ts"]
    declared = set(re.findall(r"^export (?:interface|type) (\w+)", declarations, re.MULTILINE))
    assert public_types() - declared == INSIDE


@pytest.mark.requirement("schemas.current")
@pytest.mark.parametrize("name", schema_files())
def test_a_committed_schema_is_what_the_types_say_now(name: str):
    assert (ROOT / "schemas" / name).read_text("utf-8") == schema_files()[name]
