"""Write the workbench's types, web/src/api/generated, from the contracts.

The page declares nothing about the wire by hand. What facts, states and streams look like is in the
declarations of `schemas/`; here they become modules of the page. What REST takes and answers comes
from the Edge's own OpenAPI document: a type for each resource, and a row for each operation, so
that the page's client knows addresses, bodies and answers by the name of an operation.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from factwire.edge.edge_app import build_openapi
from factwire.edge.events.event_schemas import edge_typescript
from factwire.evidence.schemas import evidence_files
from factwire.facts import ISSUE_CODES
from factwire.facts.schemas import typescript
from factwire.projection import DIAGNOSTIC_CODES
from factwire.projection.schemas import projection_files
from factwire.runtime import FAILURE_CATEGORIES
from factwire.runtime.agents.openai_agent import MODEL_FAILURES
from factwire.runtime.toolbox import TOOL_FAILURES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "web" / "src" / "api" / "generated"

_ELSEWHERE: Final = {
    "ProjectionState": ("projection", "ProjectionState"),
    "ArtifactState": ("projection", "ArtifactState"),
    "Action": ("projection", "Action"),
    "Attempt": ("projection", "Attempt"),
    "Diagnostic": ("projection", "Diagnostic"),
    "QueuedTurn": ("projection", "QueuedTurn"),
    "Fact": ("factwire", "Fact"),
    "FactFrame": ("edge", "FactFrame"),
    "Envelope": ("edge", "Envelope"),
}
"""Component of OpenAPI → module and name of the same type as facts, states and streams have it."""

_PRIMITIVES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_REST_PRELUDE: Final = """\
// Generated from the Edge's OpenAPI document by `make schemas`; change its handlers instead.
"""
_METHODS: Final = ("get", "post", "patch", "put", "delete")
_WITHOUT_A_BODY: Final = "undefined"
_IMPORT_OF_DECLARATIONS: Final = re.compile(r'(from "\./\w+)\.js"')
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")

Schema = dict[str, Any]
Operation = tuple[str, str, str, Schema]


def modules() -> dict[str, str]:
    """Every module: its file's name and its text."""
    declared = {
        "factwire": typescript(),
        "projection": projection_files()["projection.d.ts"],
        "evidence": evidence_files()["evidence.d.ts"],
        "edge": edge_typescript(),
    }
    texts = {name: _as_module(text) for name, text in declared.items()}
    texts |= {"rest": rest(build_openapi()), "codes": codes()}
    return {f"{name}.ts": text for name, text in texts.items()}


def _as_module(declarations: str) -> str:
    return _IMPORT_OF_DECLARATIONS.sub(r'\1"', declarations).replace(".d.ts", ".ts")


def codes() -> str:
    """The module of codes: what each stable one means, by what it is said of."""
    meanings: dict[str, dict[str, str]] = {
        "remark": {**ISSUE_CODES, **DIAGNOSTIC_CODES},
        "turn": {**FAILURE_CATEGORIES, **MODEL_FAILURES},
        "tool": {**TOOL_FAILURES},
    }
    doc = "What each stable code means, by what it is said of; facts bring others as well."
    prelude = "// Generated from the code's own tables by `make schemas`; change those instead.\n"
    table = json.dumps(meanings, indent=2, sort_keys=True)
    return f"{prelude}\n{_comment(doc)}export const CODE_MEANINGS = {table} as const;\n"


def rest(document: Schema) -> str:
    """The module of REST: resources, then operations."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    operations = sorted(_operations(document), key=lambda row: row[0])
    roots = [_component(name) for row in operations for name in _references(row[3])]
    own = _reachable(["ProblemDocument", *roots], schemas)
    text = "\n".join(
        [
            *(_declare_type(name, schemas[name]) for name in sorted(own)),
            _operation_types(operations),
            _addresses(operations),
        ]
    )
    return "\n".join([_REST_PRELUDE, _imports(text), text])


def _operations(document: Schema) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield item[method]["operationId"], method.upper(), path, item[method]


def _references(node: Any) -> Iterator[str]:
    """Every component of a schema, or of an operation's bodies and successful answers."""
    if isinstance(node, dict) and "$ref" in node:
        yield cast("str", node["$ref"])
    inner = cast("Schema", node).values() if isinstance(node, dict) else node
    if isinstance(node, dict | list):
        for value in cast("Iterable[Any]", inner):
            yield from _references(value)


def _reachable(names: list[str], schemas: dict[str, Schema]) -> set[str]:
    found: set[str] = set()
    while names:
        name = names.pop()
        if name in found or name in _ELSEWHERE or name not in schemas:
            continue
        found.add(name)
        names.extend(_component(reference) for reference in _references(schemas[name]))
    return found


def _component(reference: str) -> str:
    return reference.rpartition("/")[2]


def _comment(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, 94 - len(indent))
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return "".join(
        [f"{indent}/**\n", *(f"{indent} * {line}\n" for line in lines), f"{indent} */\n"]
    )


def _declare_type(name: str, schema: Schema) -> str:
    doc = _comment(schema["description"]) if "description" in schema else ""
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{doc}export type {name} = {write_type(schema)};\n"
    return f"{doc}export interface {name} {_fields(schema, '')}\n"


def write_type(schema: Schema, indent: str = "") -> str:
    """A schema as a type."""
    if "$ref" in schema:
        return _component(schema["$ref"])
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(write_type(part, indent) for part in schema[union]))
    kinds = schema.get("type", [])
    named = [kinds] if isinstance(kinds, str) else kinds
    return " | ".join(_of_kind(kind, schema, indent) for kind in named) or "unknown"


def _literal(value: Any) -> str:
    return json.dumps(value)


def _of_kind(kind: str, schema: Schema, indent: str) -> str:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind == "array":
        item = write_type(schema.get("items", {}), indent)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if schema.get("properties"):
        return _fields(schema, indent)
    values = schema.get("additionalProperties")
    value = write_type(cast("Schema", values), indent) if isinstance(values, dict) else "unknown"
    return f"{{ [key: string]: {value} }}"


def _fields(schema: Schema, indent: str) -> str:
    required = schema.get("required", ())
    inner = f"{indent}  "
    lines = (
        f"{inner}{_key(name)}{'' if name in required else '?'}: {write_type(field, inner)};\n"
        for name, field in schema["properties"].items()
    )
    return f"{{\n{''.join(lines)}{indent}}}"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else f'"{name}"'


def _operation_types(operations: list[Operation]) -> str:
    rows = "".join(
        f"{_comment(operation['summary'], '  ')}  {name}: {_operation_type(operation)};\n"
        for name, _, _, operation in operations
    )
    doc = (
        "What each operation takes and answers: `path` fills its address, `query` stands behind "
        "it. An answer that is no JSON is a `Blob`."
    )
    return f"{_comment(doc)}export interface Operations {{\n{rows}}}\n"


def _operation_type(operation: Schema) -> str:
    parameters: list[Schema] = operation.get("parameters", [])
    parts = {
        "path": _parameters(parameters, "path"),
        "query": _parameters(parameters, "query"),
        "body": _body(operation),
        "answer": _answer(operation),
    }
    return "{\n" + "".join(f"    {name}: {kind};\n" for name, kind in parts.items()) + "  }"


def _parameters(parameters: list[Schema], place: str) -> str:
    chosen = [parameter for parameter in parameters if parameter.get("in") == place]
    fields = (
        f"{_key(parameter['name'])}{'' if parameter.get('required') else '?'}: "
        + write_type(parameter["schema"])
        for parameter in chosen
    )
    return f"{{ {'; '.join(fields)} }}" if chosen else "Record<never, never>"


def _body(operation: Schema) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return write_type(content["application/json"]["schema"]) if content else _WITHOUT_A_BODY


def _answer(operation: Schema) -> str:
    """The type of the first answer that is a success."""
    success = next(answer for status, answer in operation["responses"].items() if status[0] == "2")
    content = success.get("content", {})
    if "application/json" in content:
        return write_type(content["application/json"].get("schema", {}))
    return "Blob" if content else _WITHOUT_A_BODY


def _addresses(operations: list[Operation]) -> str:
    rows = "".join(
        f'  {name}: {{ method: "{method}", path: "{path}" }},\n'
        for name, method, path, _ in operations
    )
    doc = "Where each operation is; `{…}` in an address stands for a field of `path`."
    return (
        f"{_comment(doc)}export const OPERATIONS = {{\n{rows}"
        "} as const satisfies { [name in keyof Operations]: { method: string; path: string } };\n"
    )


def _imports(text: str) -> str:
    """The types that the text names and another module declares."""
    by_module: dict[str, list[str]] = {}
    for own, (module, name) in sorted(_ELSEWHERE.items()):
        if re.search(rf"\b{own}\b", text):
            imported = name if own == name else f"{name} as {own}"
            by_module.setdefault(module, []).append(imported)
    return "".join(
        f'import type {{ {", ".join(names)} }} from "./{module}";\n'
        for module, names in sorted(by_module.items())
    )


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = modules()
    for stale in FOLDER.glob("*.ts"):
        if stale.name not in wanted:
            stale.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
