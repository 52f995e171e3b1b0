"""Both clients have a method for every address, and read what the Edge says that it answers."""

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from factwire import client
from factwire.client import (
    AsyncClient,
    Client,
    Event,
    LogPiece,
    PlacedFact,
    Steered,
    async_client,
    blocking_client,
)
from factwire.client import resources as client_resources
from factwire.client.async_client import AsyncCallMethod, AsyncContentMethod, AsyncListMethod
from factwire.client.edge_connection import EdgeCall
from factwire.client.resources import ThreadDelta, ThreadSnapshot
from factwire.edge.edge_app import build_openapi
from factwire.facts import resources
from factwire.facts.resources import EventPayload, Page, Resource, Row, Run, ThreadRow
from factwire.serving.envelopes import Envelope, FactFrame, ProjectionDelta, ProjectionSnapshot

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = build_openapi()
VERBS: dict[str, Any] = {
    name: verb
    for name, verb in vars(AsyncClient).items()
    if isinstance(verb, AsyncCallMethod | AsyncListMethod | AsyncContentMethod)
}

# Read from a part of an answer, from bytes, or from a page of a stream; each has a test of its own.
OTHERWISE: dict[str, Any] = {
    "send_message": Run,
    "steer": Steered,
    "log": LogPiece,
    "metrics": str,
    "past_events": Page[Event],
    "run_events": Page[Event],
    "past_facts": Page[PlacedFact],
}

# Read from bytes, from streams, or of what an Edge has in types that a client does not know.
NOT_SHARED = {
    "Event",
    "EventScope",
    "HubFrame",
    "LogPiece",
    "EvidenceCheck",
    "PackDifference",
    "PackFinding",
    "PackMatch",
    "EvidenceReport",
    "PackSigner",
    "PlacedFact",
    "ThreadDelta",
    "ThreadSnapshot",
}


def make_call(name: str) -> EdgeCall[Any]:
    """The call of a verb, with an id that can be told from a word of the path."""
    make = VERBS[name]._make
    kinds = get_type_hints(make)
    parameters = inspect.signature(make).parameters.values()
    needed = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    arguments = {each: f"<{each}>" if kinds[each] is str else _some(kinds[each]) for each in needed}
    return make(**arguments)


def _some(kind: Any) -> Any:
    return get_args(kind)[0] if get_args(kind) and isinstance(get_args(kind)[0], str) else []


def address(call: EdgeCall[Any]) -> tuple[str, str]:
    path = "/".join("{}" if "%3C" in step else step for step in call.path.split("/"))
    verb = call.path.rpartition(":")[2] if ":" in call.path else ""
    return call.method, f"{path}:{verb}" if verb and not path.endswith(verb) else path


def addresses() -> dict[tuple[str, str], dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path, operations in DOCUMENT["paths"].items():
        plain = "/".join(_step(step) for step in path.split("/"))
        found |= {(method.upper(), plain): operation for method, operation in operations.items()}
    return found


def _step(step: str) -> str:
    name, colon, verb = step.partition(":")
    return ("{}" if name.startswith("{") else name) + colon + verb


@pytest.mark.requirement("client.addresses")
def test_every_address_of_an_edge_has_a_method():
    assert {address(make_call(name)) for name in VERBS} == set(addresses())


@pytest.mark.requirement("client.addresses")
def test_both_clients_have_the_same_methods():
    def names(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert names(AsyncClient) - {"aclose"} == names(Client) - {"close"}
    for name, verb in VERBS.items():
        assert vars(Client)[name]._make is verb._make
    for name in ("events", "facts", "projection"):
        theirs, ours = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(theirs).parameters == inspect.signature(ours).parameters
    assert len(async_client.__all__) == len(blocking_client.__all__)


@pytest.mark.requirement("client.resources")
@pytest.mark.parametrize("name", VERBS)
def test_what_is_read_is_what_is_answered(name: str):
    if name in OTHERWISE:
        kind = get_args(get_type_hints(VERBS[name]._make)["return"])[0]
        assert kind == OTHERWISE[name]
        return
    operation = addresses()[address(make_call(name))]
    status = next(status for status in operation["responses"] if status.startswith("2"))
    content: dict[str, Any] = operation["responses"][status].get("content", {})
    theirs = next((each["schema"] for each in content.values()), dict[str, Any]())
    kind = get_args(get_type_hints(VERBS[name]._make)["return"])[0]
    if kind is type(None):
        assert status == "204" or "octet-stream" in next(iter(content))
        return
    assert _differences(_ours(kind), theirs, "$") == []


@pytest.mark.requirement("client.resources")
def test_what_an_edge_or_a_hub_answers_is_declared_once():
    hub = msgspec.json.decode((ROOT / "schemas" / "hub-openapi.json").read_bytes())
    described = {*DOCUMENT["components"]["schemas"], *hub["components"]["schemas"]}
    shared = _structs_of(resources) - {Resource, Row, ThreadRow, EventPayload}
    public = {get_origin(kind) or kind for kind in map(vars(client).get, client.__all__)}
    assert shared <= public
    assert {kind.__name__ for kind in shared - {Page}} <= described
    assert {kind.__name__ for kind in _structs_of(client_resources)} == NOT_SHARED


def _structs_of(module: ModuleType) -> set[Any]:
    return {
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ == module.__name__
    }


@pytest.mark.requirement("client.resources")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Event, Envelope),
        (PlacedFact, FactFrame),
        (ThreadSnapshot, ProjectionSnapshot),
        (ThreadDelta, ProjectionDelta),
    ],
)
def test_what_streams_bring_is_what_they_send(ours: type[Resource], theirs: Any):
    mine, yours = (
        {field.encode_name for field in msgspec.structs.fields(kind)} for kind in (ours, theirs)
    )
    assert mine == yours


@pytest.mark.requirement("client.addresses")
@pytest.mark.parametrize("name", VERBS)
def test_a_body_has_no_field_that_the_edge_refuses(name: str):
    call = make_call(name)
    if call.body is None:
        return
    content = addresses()[address(call)]["requestBody"]["content"]
    known = _resolve_schema(_some_object(next(iter(content.values()))["schema"]))["properties"]
    fields = inspect.signature(VERBS[name]._make).parameters
    sent: dict[str, Any] = msgspec.json.decode(call.body)
    assert set(sent) <= set(known)
    assert len(known) <= len(fields) + len(sent)


@pytest.mark.requirement("client.addresses")
@pytest.mark.parametrize("name", VERBS)
def test_a_query_has_the_names_that_the_edge_takes(name: str):
    make = VERBS[name]._make
    optional = [
        each.name
        for each in inspect.signature(make).parameters.values()
        if each.default is not inspect.Parameter.empty
    ]
    if make_call(name).method != "GET":
        return
    call = make(**dict.fromkeys(optional, "1"), **_required_parameters(make))
    known = {
        each["name"]
        for each in addresses()[address(make_call(name))].get("parameters", ())
        if each["in"] == "query"
    }
    assert {name for name, _ in call.query} == known - {"since"}


def _required_parameters(make: Any) -> dict[str, str]:
    parameters = inspect.signature(make).parameters.values()
    return {each.name: "<id>" for each in parameters if each.default is inspect.Parameter.empty}


def _ours(kind: Any) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#ours/{name}")
    OURS.update(definitions)
    return schema


OURS: dict[str, Any] = {}


def _resolve_schema(schema: dict[str, Any]) -> dict[str, Any]:
    ref = schema.get("$ref")
    if ref is None:
        return schema
    definitions = OURS if ref.startswith("#ours") else DOCUMENT["components"]["schemas"]
    return _resolve_schema(definitions[ref.rpartition("/")[2]])


def _some_object(schema: dict[str, Any]) -> dict[str, Any]:
    """The object among alternatives; the others are null, or a list of the same."""
    options = list(schema.get("anyOf", schema.get("oneOf", [schema])))
    present = [each for each in options if each.get("type") != "null"]
    return min(present, key=lambda each: each.get("type") == "array")


def _types(schema: dict[str, Any]) -> set[str]:
    options = schema.get("anyOf", schema.get("oneOf"))
    if options is not None:
        return {each for option in options for each in _types(_resolve_schema(option))}
    kinds = schema.get("type", "string" if "enum" in schema else [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _differences(ours: dict[str, Any], theirs: dict[str, Any], path: str) -> list[str]:
    mine, yours = _resolve_schema(ours), _resolve_schema(theirs)
    if not mine.get("type") and "anyOf" not in mine and "enum" not in mine:
        return []
    if _types(mine) != _types(yours):
        return [f"{path}: {sorted(_types(mine))} is not {sorted(_types(yours))}"]
    mine, yours = _resolve_schema(_some_object(mine)), _resolve_schema(_some_object(yours))
    if "enum" in mine and sorted(mine["enum"]) != sorted(yours.get("enum", [])):
        return [f"{path}: {mine['enum']} is not {yours.get('enum')}"]
    if "items" in mine:
        return _differences(mine["items"], yours["items"], f"{path}[]")
    return _object_differences(mine, yours, path) if "properties" in mine else []


def _object_differences(mine: dict[str, Any], yours: dict[str, Any], path: str) -> list[str]:
    names = set(mine["properties"]) ^ set(yours["properties"])
    found = [f"{path}.{name}: known to one side alone" for name in sorted(names)]
    if set(mine.get("required", [])) != set(yours.get("required", [])):
        found.append(f"{path}: {mine.get('required')} is not {yours.get('required')}")
    for name in sorted(set(mine["properties"]) & set(yours["properties"])):
        found += _differences(mine["properties"][name], yours["properties"][name], f"{path}.{name}")
    return found


@pytest.mark.requirement("client.resources")
def test_a_difference_is_found():
    theirs = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    wrong: list[dict[str, Any]] = [
        {"type": "object", "properties": {}, "required": []},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
    ]
    for ours in wrong:
        assert _differences(ours, theirs, "$")
