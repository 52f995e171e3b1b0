"""JSON Schema 2020-12 of everything that travels, one document for each thing that is sent whole.

Each document stands alone: no other file is needed to validate with it, and its id is a URN, so
nothing is ever fetched. Null in place of an optional field of a fact counts as absent, as it does
when a fact is read. JSON Schema takes 1.0 for a whole number: the one wrong type it lets pass.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from factwire.facts.capabilities import CapabilityManifest
from factwire.facts.classes.payloads import RouteDecision
from factwire.facts.fact import Fact
from factwire.facts.inspection import Fixture
from factwire.facts.limits import SEQUENCE_MAX
from factwire.facts.schemas.wire_types import (
    ALIASED_PAYLOADS,
    CLASSES,
    FIELD_VOCABULARIES,
    INPUT_TYPES,
    PAYLOAD_TYPES,
    PAYLOADS,
    WIRE_SHAPES,
    FieldVocabularies,
    IssueReport,
    WireField,
    WireShape,
    wire_fields,
    wire_spelling,
    words_of,
)
from factwire.facts.shapes import (
    NEVER_EMPTY,
    SEQUENCE_FLOORS,
)
from factwire.facts.vocabulary import LEGACY_TERMINALS

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
DEFINITIONS: Final = "#/$defs/{name}"
"""Where the types of a document are found, for its refs."""
NULL: Final[Schema] = {"type": "null"}

_PAYLOADS: Final = "Payloads by class: the schema of a class's payload is its property here."


def json_schemas() -> dict[str, Schema]:
    """Every JSON Schema document, by its file name."""
    documents = {
        **{wire.slug: shape_schema(wire) | _definitions(PAYLOAD_TYPES) for wire in WIRE_SHAPES},
        "payloads": catalogue("Payloads", _PAYLOADS, PAYLOADS),
        "fixture": struct_schema(Fixture),
        "input": _input_schema() | _definitions(INPUT_TYPES),
        "capabilities": struct_schema(CapabilityManifest),
        "route-decision": route_decision_schema(),
        "issue": struct_schema(IssueReport),
    }
    return schema_documents(documents)


def schema_documents(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """Schemas by their short names as documents by their file names."""
    return {
        f"{name}.schema.json": {"$schema": DIALECT, "$id": f"urn:factwire:schema:{name}:v1"}
        | schema
        for name, schema in schemas.items()
    }


def type_schemas(
    types: Iterable[Any],
    template: str = DEFINITIONS,
    vocabularies: FieldVocabularies = FIELD_VOCABULARIES,
) -> dict[str, Schema]:
    """The schemas of `types` and of all they contain, by name; `template` is where refs look."""
    _, components = msgspec.json.schema_components(
        types, schema_hook=_text_schema, ref_template=template
    )
    return {
        name: _add_examples(vocabularies, name, _tidy(components[name]))
        for name in sorted(components)
    }


def struct_schema(
    root: type[msgspec.Struct], vocabularies: FieldVocabularies = FIELD_VOCABULARIES
) -> Schema:
    """The schema of one type, with all that it contains."""
    schemas = type_schemas([root], vocabularies=vocabularies)
    schema = schemas.pop(root.__name__)
    return schema | {"$defs": schemas} if schemas else schema


def route_decision_schema() -> Schema:
    """What the turn of a team's supervisor has to end with, as its `outputSchema`."""
    return {**struct_schema(RouteDecision), "additionalProperties": False}


def catalogue(
    title: str,
    description: str,
    types: Mapping[str, type],
    vocabularies: FieldVocabularies = FIELD_VOCABULARIES,
) -> Schema:
    """Several types in one document: the schema of each is the property of its name."""
    return {
        "title": title,
        "description": description,
        "type": "object",
        "properties": {name: _ref(kind, DEFINITIONS) for name, kind in types.items()},
        "$defs": type_schemas(dict.fromkeys(types.values()), vocabularies=vocabularies),
    }


def shape_schema(wire: WireShape, template: str = DEFINITIONS) -> Schema:
    """The schema of one shape; it applies the payload type of each class that has one."""
    fields = wire_fields(wire.shape)
    class_field = next(field.name for field in fields if field.of_fact.name == "event_class")
    properties = _shape_properties(wire, fields)
    properties[class_field]["examples"] = list(CLASSES[wire.classes])
    properties[class_field]["not"] = {"enum": list(LEGACY_TERMINALS)}
    return {
        "title": wire.title,
        "description": wire.description,
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "allOf": _payload_rules(class_field, template),
    }


def _shape_properties(wire: WireShape, fields: list[WireField]) -> dict[str, Schema]:
    plain = type_schemas([Fact])[Fact.__name__]["properties"]
    properties = {
        field.name: _nullable_field(plain[field.of_fact.encode_name], nullable=not field.required)
        for field in fields
    }
    for field in fields:
        if field.required and field.name in NEVER_EMPTY:
            properties[field.name]["minLength"] = 1
    properties["sequence"] |= {"minimum": SEQUENCE_FLOORS[wire.shape], "maximum": SEQUENCE_MAX}
    return properties


def _payload_rules(class_field: str, template: str) -> list[Schema]:
    """One rule a payload type: facts of its classes carry it, or no payload at all."""
    typed = sorted((PAYLOADS | ALIASED_PAYLOADS).items())
    return [
        {
            "if": {
                "properties": {class_field: {"enum": [n for n, kind in typed if kind is payload]}},
                "required": [class_field],
            },
            "then": {"properties": {"payload": {"anyOf": [_ref(payload, template), NULL]}}},
        }
        for payload in PAYLOAD_TYPES
    ]


def _input_schema() -> Schema:
    parts = [_ref(part, DEFINITIONS) for part in INPUT_TYPES]
    return {
        "title": "Input",
        "description": "What a person gives an agent: plain text, or parts in order.",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"anyOf": parts}}],
    }


def _definitions(types: Iterable[Any]) -> Schema:
    return {"$defs": type_schemas(types)}


def _ref(target: type, template: str) -> Schema:
    return {"$ref": template.format(name=target.__name__)}


def _nullable_field(schema: Schema, *, nullable: bool) -> Schema:
    """The schema of one field, with or without null; what it defaults to is the reader's affair."""
    types: str | list[str] = schema["type"]
    names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
    [only] = names
    rest = {key: value for key, value in schema.items() if key != "default"}
    return rest | {"type": [only, "null"] if nullable else only}


def _text_schema(_: type) -> Schema:
    """A class of our own, such as text that grows, is a string on the wire."""
    return {"type": "string"}


def _add_examples(vocabularies: FieldVocabularies, type_name: str, schema: Schema) -> Schema:
    """The schema with the words of each field's vocabulary as examples."""
    for name, field in schema.get("properties", {}).items():
        words = words_of(vocabularies, type_name, name)
        if words:
            field.get("items", field)["examples"] = list(words)
    return schema


def _tidy(schema: Schema) -> Schema:
    """The same schema in fewer words: types in one list, no default that says nothing."""
    tidy = {key: value for key, value in schema.items() if key != "discriminator"}
    if "description" in tidy:
        tidy["description"] = wire_spelling(" ".join(tidy["description"].split()))
    if tidy.get("default", ...) is None:
        del tidy["default"]
    if tidy.get("required") == []:
        del tidy["required"]
    if "properties" in tidy:
        tidy["properties"] = {name: _tidy(field) for name, field in tidy["properties"].items()}
    if "items" in tidy:
        tidy["items"] = _tidy(tidy["items"])
    if "anyOf" in tidy:
        tidy |= _merge_types([_tidy(choice) for choice in tidy.pop("anyOf")])
    return tidy


def _merge_types(choices: list[Schema]) -> Schema:
    """Choices that differ by type alone, as one; at most one of the others can join them."""
    plain = [choice["type"] for choice in choices if choice.keys() == {"type"}]
    others = [choice for choice in choices if choice.keys() != {"type"}]
    if not others:
        return {"type": plain}
    if len(others) == 1 and "type" in others[0]:
        return others[0] | {"type": [others[0]["type"], *plain]}
    return {
        "anyOf": [*others, {"type": plain if len(plain) > 1 else plain[0]}] if plain else others
    }
