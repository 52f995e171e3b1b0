"""A secret in any text of any request is kept in no file and shown in no list."""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest

from factwire.edge.edge_app import build_openapi
from tests.edge.edges import RunningEdge, running_edge
from tests.edge.things import made_things

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("redaction.edge-requests")]

SECRET: Final = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2
DOCUMENT: Final = build_openapi()
OPERATIONS: Final = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
LISTS: Final = [
    path
    for method, path, _ in OPERATIONS.values()
    if method == "GET" and path.startswith("/v1/") and "{" not in path
]
KEPT_AS_SENT: Final = {"createBlob", "postFacts"}
"""An attachment is what somebody sent for an agent to read; facts have tests of their own."""


def resolve_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return resolve_schema(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return resolve_schema(next(each for each in schema[name] if each.get("type") != "null"))
    return schema


def list_texts(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of a body at which any text may stand."""
    schema = resolve_schema(schema)
    kinds = str(schema.get("type", "any"))
    if "properties" in schema:
        for name, each in schema["properties"].items():
            yield from list_texts(each, (*path, name))
    elif "array" in kinds:
        yield from list_texts(schema.get("items", {}), (*path, "0"))
    elif "enum" not in schema and "const" not in schema:
        if "string" in kinds or "any" in kinds:
            yield path
        elif "object" in kinds:
            yield (*path, "key")


def put_text(body: Any, path: tuple[str, ...], text: str) -> Any:
    """The body with a text at a place."""
    if not path:
        return text
    if path[0] == "0":
        return [put_text({}, path[1:], text)]
    name = text if path[0] == "key" and len(path) == 1 else path[0]
    changed: dict[str, Any] = deepcopy(body or {})
    return {**changed, name: put_text(changed.get(path[0]), path[1:], text)}


def valid_body(name: str, ids: dict[str, list[str]], approval: dict[str, Any]) -> dict[str, Any]:
    bodies: dict[str, dict[str, Any]] = {
        "createProject": {"name": "x"},
        "addMember": {"memberId": "m", "memberType": "user"},
        "createRun": {"agentId": "demo", "prompt": "help"},
        "postMessage": {"text": "help"},
        "createPreview": {"runId": ids["runId"][0]},
        "exportEvidence": {"threadId": ids["threadId"][0]},
        "createToken": {"name": "x", "scopes": ["read"]},
        "decidePermission": {
            "runId": approval["runId"], "requestId": approval["approvalId"], "decision": "deny",
            "argsHash": approval["argsHash"],
        },
    }  # fmt: skip
    return bodies.get(name, {})


async def send_secrets(edge: RunningEdge, ids: dict[str, list[str]]) -> list[tuple[Any, ...]]:
    """Every operation with the secret at each of its places; what was accepted."""
    accepted: list[tuple[Any, ...]] = []
    run = await edge.start("approve")
    for name, (method, path, operation) in OPERATIONS.items():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None or name in KEPT_AS_SENT:
            continue
        for place in list_texts(content["schema"]):
            approval = await edge.wait_for_approval(run["runId"])
            names = {**{key: known[0] for key, known in ids.items()}, "runId": run["runId"]}
            body = put_text(valid_body(name, ids, approval), place, f"a {SECRET}")
            answer = await edge.http.request(method, path.format(**names), json=body)
            assert answer.status_code < 500, (name, place, answer.text)
            assert SECRET not in answer.text, (name, place, answer.text)
            assert not (place[-1].endswith("Id") and answer.is_success), (name, place)
            if answer.is_success:
                accepted.append((name, place))
            if name in ("decidePermission", "cancelRun"):
                run = await edge.start("approve")
    return accepted


def list_files_with_secret(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if SECRET.encode() in path.read_bytes()]


async def test_a_secret_in_any_text_of_any_request_is_neither_kept_nor_listed(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        things = await asyncio.to_thread(made_things, edge.url)
        accepted = await send_secrets(edge, things.ids)
        shown = {path: (await edge.http.get(path)).text for path in LISTS}
    assert len({name for name, _ in accepted}) >= 8, accepted
    leaks = [path for path, text in shown.items() if SECRET in text]
    assert not leaks + list_files_with_secret(tmp_path), accepted
