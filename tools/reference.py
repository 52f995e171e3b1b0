"""Write the reference pages under docs/reference from the tables in the code."""

import ast
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from factwire.client import limits as client_limits
from factwire.conformance import limits as conformance_limits
from factwire.edge import limits as edge_limits
from factwire.edge.edge_app import PROBLEM_CODES, build_openapi
from factwire.edge.events.event_schemas import payload_rows, type_rows
from factwire.evidence import limits as evidence_limits
from factwire.facts import (
    EDGE_CLASSES,
    ISSUE_CODES,
    REQUIRED_FIELDS,
    RESUME_CODES,
    RUNTIME_CLASSES,
    UI_CLASSES,
    VIOLATION_CODES,
    CapabilityManifest,
    EventClass,
    required_fields_of,
    vocabulary,
)
from factwire.facts import limits as facts_limits
from factwire.facts.classes.class_tables import CLASS_ALIASES, PAYLOAD_TYPES
from factwire.hub import hub_app
from factwire.hub import limits as hub_limits
from factwire.hub.frames.frame_types import FRAMES, REQUESTS, Direction, FramePayload
from factwire.hub.frames.hub_asyncapi import list_frames
from factwire.hub.frames.hub_socket import FRAME_ERROR_CODES, HUB_CLOSE_NAMES
from factwire.hub.mirror.mirror_app import MIRROR_PROBLEM_CODES
from factwire.projection import DIAGNOSTIC_CODES
from factwire.projection import limits as projection_limits
from factwire.runtime import FAILURE_CATEGORIES
from factwire.runtime import limits as runtime_limits
from factwire.runtime.agents import openai_limits
from factwire.runtime.agents.openai_agent import MODEL_FAILURES
from factwire.runtime.processes import limits as process_limits
from factwire.runtime.sandbox import limits as sandbox_limits
from factwire.runtime.toolbox import TOOL_FAILURES
from factwire.runtime.toolbox import limits as toolbox_limits
from factwire.serving import limits as serving_limits
from factwire.sources import OUTSIDE_AGENTS, SOURCE_NAMES, find_source
from factwire.sources.claude_code import transcript as claude_limits

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
GENERATED = "<!-- Written by `make schemas` from the code; edit the code instead. -->\n\n"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _class_rows(rows: dict[str, EventClass]) -> list[tuple[str, ...]]:
    return [
        (
            f"`{row.name}`",
            row.owner,
            row.scope,
            row.phase,
            row.surface,
            row.persistence,
            ", ".join(need.expected for need in required_fields_of(row.name)),
            _payload(row.name),
            " ".join(f"`{name}`" for name in row.ui),
        )
        for row in rows.values()
    ]


def classes() -> str:
    runtime, edge = _class_rows(RUNTIME_CLASSES), _class_rows(EDGE_CLASSES)
    ui = [
        (f"`{row.name}`", row.owner, row.scope, row.phase, row.surface, row.persistence)
        for row in UI_CLASSES.values()
    ]
    columns = ("class", "owner", "scope", "phase", "surface", "persistence")
    return (
        "# Classes\n\n"
        "What each class says about every fact that carries it. `unknown` stands where that "
        "depends on the fact. In the `runtime-event` shape, `turn`, `model`, `reasoning`, "
        "`permission` and `sandbox` classes also need threadId and turnId.\n\n"
        f"## Runtime classes ({len(runtime)})\n\n"
        + table((*columns, "needs", "payload", "UI events"), runtime)
        + f"\n## The Edge's classes ({len(edge)})\n\n"
        + table((*columns, "needs", "payload", "UI events"), edge)
        + f"\n## Agent UI classes ({len(ui)})\n\n"
        + table(columns, ui)
    )


def _payload(name: str) -> str:
    payload = PAYLOAD_TYPES.get(name)
    return f"`{payload.__name__}`" if payload else ""


def words() -> str:
    names = ("KINDS", "STATUSES", "OWNERS", "SCOPES", "PHASES", "SURFACES", "PERSISTENCE")
    more = ("CONTROLS", "TOPOLOGIES", "RUNTIME_ENTITIES", "ACTION_TYPES", "TOOL_STATES")
    last = ("TASK_STATES", "EVIDENCE_KINDS")
    rows = [
        (name.lower().replace("_", " "), " ".join(f"`{w}`" for w in getattr(vocabulary, name)))
        for name in (*names, *more, *last)
    ]
    aliases = [(f"`{old}`", f"`{new}`") for old, new in sorted(CLASS_ALIASES.items())]
    return (
        "# Words\n\nEvery list is open: a word that is not here is kept and shown.\n\n"
        + table(("list", "words"), rows)
        + "\n## Aliases, normalised on the way in\n\n"
        + table(("comes as", "becomes"), aliases)
    )


def codes() -> str:
    issues = [(f"`{code}`", meaning) for code, meaning in ISSUE_CODES.items()]
    resume = [(f"`{code}`", meaning) for code, meaning in RESUME_CODES.items()]
    violations = [(f"`{code}`",) for code in VIOLATION_CODES]
    remarks = [(f"`{code}`", meaning) for code, meaning in DIAGNOSTIC_CODES.items()]
    failures = [(f"`{name}`", meaning) for name, meaning in FAILURE_CATEGORIES.items()]
    tools = [(f"`{name}`", meaning) for name, meaning in TOOL_FAILURES.items()]
    models = [(f"`{name}`", meaning) for name, meaning in MODEL_FAILURES.items()]
    problems = [(f"`{code}`", meaning) for code, meaning in PROBLEM_CODES.items()]
    mirrors = [(f"`{code}`", meaning) for code, meaning in MIRROR_PROBLEM_CODES.items()]
    fields = [
        (f"`{shape}`", ", ".join(f"`{name}`" for name in names))
        for shape, names in REQUIRED_FIELDS.items()
    ]
    return (
        "# Codes\n\nCodes are stable; messages may change.\n\n## Issues\n\n"
        + table(("code", "meaning"), issues)
        + "\n## Required fields\n\n"
        + table(("shape", "fields"), fields)
        + "\n## Lifecycle violations\n\nEach is reported as a `sequence_violation`.\n\n"
        + table(("code",), violations)
        + "\n## Resume\n\n"
        + table(("code", "meaning"), resume)
        + "\n## Diagnostics of a projection\n\nWhat a projection remarks itself; facts that are "
        "diagnostics bring codes of their own.\n\n"
        + table(("code", "meaning"), remarks)
        + "\n## Failure categories\n\nWhat the runtime itself gives a failed turn; agents may "
        "give others.\n\n"
        + table(("category", "meaning"), failures)
        + "\n## Failures of tools\n\nWhat the toolbox gives a call that failed.\n\n"
        + table(("category", "meaning"), tools)
        + "\n## Failures of models\n\nWhat the agent `openai` gives a turn that failed.\n\n"
        + table(("category", "meaning"), models)
        + "\n## Problems of an Edge\n\nWhy a request is refused; see [errors]"
        "(../edge-rest.md#errors). A pack that cannot be made or verified has a code of "
        "[evidence packs](../evidence.md).\n\n"
        + table(("code", "meaning"), problems)
        + "\n## Problems of a mirror\n\nWhy a Hub refuses a request about the [mirror]"
        "(../hub-mirror.md) of an Edge.\n\n"
        + table(("code", "meaning"), mirrors)
        + "\n## Problems of a Hub\n\nWhy a [Hub](../hub.md) refuses a request, beside the codes "
        "that it shares with an Edge.\n\n"
        + table(("code", "meaning"), _code_rows(hub_app.HUB_PROBLEM_CODES))
        + "\n## Errors on a Hub's socket\n\nWhy a socket sends the frame `error`; see [frames]"
        "(../hub-frames.md#errors).\n\n"
        + table(("code", "meaning"), _code_rows(FRAME_ERROR_CODES))
        + "\n## Why a Hub does not start\n\n"
        + table(("code", "meaning"), _code_rows(hub_app.HUB_START_CODES))
    )


def _code_rows(codes: dict[str, str]) -> list[tuple[str, ...]]:
    return [(f"`{code}`", meaning) for code, meaning in codes.items()]


def sources() -> str:
    parts = ["# Sources\n\nWhat streams of outside agents become, and what they do not offer.\n"]
    for name in sorted(SOURCE_NAMES):
        source = find_source(name)
        rows = [(emitted, becomes) for emitted, becomes in source.maps.items()]
        parts += [
            f"\n## {source.title}\n\n`--from {name}`, tested with {source.versions}.\n\n",
            table(("it emits", "it becomes"), rows),
            f"\nNot offered: {', '.join(source.lacks) or 'nothing is missing'}.\n",
        ]
    return "".join([*parts, "\n## Live\n\n", _LIVE, table(_LIVE_HEADER, list(_live_rows()))])


_LIVE = """\
What each agent offers while Factwire runs it, as its manifest says; see
[live sources](../sources.md#live). Objects of an SDK say it each for itself.

"""
_LIVE_HEADER = (
    *("agent", "inputs", "text streams", "approvals"),
    *("stop", "steer", "subagents", "cost"),
)


def _live_rows() -> Iterator[tuple[str, ...]]:
    agents = (agent for agent in OUTSIDE_AGENTS if agent.kind == "agent")
    for module in sorted(agent.module(agent.live) for agent in agents if agent.live is not None):
        manifest = getattr(import_module(module), "MANIFEST", None)
        if isinstance(manifest, CapabilityManifest):
            about = manifest.cancel, manifest.steer, manifest.subagents, manifest.cost
            inputs = ", ".join(manifest.inputs)
            name = f"`{manifest.agent_id}`"
            yield name, inputs, manifest.streaming.text, manifest.approvals, *about


def limits() -> str:
    sections = {
        "Facts": facts_limits,
        "Projection": projection_limits,
        "Runtime": runtime_limits,
        "Processes": process_limits,
        "Sandbox": sandbox_limits,
        "Toolbox": toolbox_limits,
        "The agent openai": openai_limits,
        "Evidence and comparison": evidence_limits,
        "Conformance": conformance_limits,
        "Server": serving_limits,
        "Edge": edge_limits,
        "Hub": hub_limits,
        "Client": client_limits,
        "Claude Code's streams": claude_limits,
    }
    header = ("limit", "value", "why")
    pages = (f"## {title}\n\n{table(header, _rows(of))}" for title, of in sections.items())
    return "# Limits\n\n" + "\n".join(pages)


def _rows(module: ModuleType) -> list[tuple[str, ...]]:
    """Each number of a module with the sentence beneath it."""
    body = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8")).body
    rows: list[tuple[str, ...]] = []
    for node, text in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(text, ast.Expr):
            name = ast.unparse(node.target)
            if not isinstance(getattr(module, name), int | float):
                continue
            rows.append((f"`{name}`", f"{getattr(module, name):,}", ast.literal_eval(text.value)))
    return rows


def edge_events() -> str:
    header = ("type", "payload", "views", "facts", "meaning")
    return (
        "# Events of an Edge\n\nEvery type, what it carries and which facts it is made of; see "
        "[events](../edge-events.md). `error` comes from a stream itself.\n\n"
        + table(header, [*type_rows()])
        + "\n## Payloads\n\nFields with a question mark may be absent.\n\n"
        + table(("payload", "fields"), [*payload_rows()])
    )


def edge_rest() -> str:
    return (
        "# Addresses of an Edge\n\nEvery address; see [REST](../edge-rest.md). Bodies and answers "
        "are schemas of `schemas/openapi.json`.\n\n" + _addresses(build_openapi())
    )


def hub_rest() -> str:
    return (
        "# Addresses of a Hub\n\nEvery address; see [the Hub](../hub.md). Bodies and answers are "
        "schemas of `schemas/hub-openapi.json`.\n\n" + _addresses(hub_app.build_openapi())
    )


_DIRECTIONS: dict[Direction, str] = {
    "hub_to_client": "Hub → client",
    "client_to_hub": "client → Hub",
    "hub_to_edge": "Hub → device",
    "edge_to_hub": "device → Hub",
}


def hub_frames() -> str:
    return (
        "# Frames of a Hub\n\nEvery frame of `/client/ws`; see [frames](../hub-frames.md). An "
        "event is stored, has a cursor and can be resumed; everything else is only sent. Fields "
        "with a question mark may be absent.\n\n"
        + table(("type", "sent", "event", "payload"), list(_frame_rows()))
        + "\n## Ends of a socket\n\nAfter a code with *yes*, connect again with the last "
        "cursor.\n\n" + table(("code", "reason", "reconnect"), sorted(_close_rows()))
    )


def _frame_rows() -> Iterator[tuple[str, ...]]:
    for name, payload in REQUESTS.items():
        yield f"`{name}`", _DIRECTIONS["client_to_hub"], "", _payload_fields(payload)
    for row in FRAMES.values():
        sent = [
            text
            for direction, text in _DIRECTIONS.items()
            if direction != "client_to_hub" and row.name in list_frames(direction)
        ]
        stored = "yes" if row.logged else ""
        yield f"`{row.name}`", ", ".join(sent), stored, _payload_fields(row.payload)


def _payload_fields(payload: type[FramePayload]) -> str:
    fields = msgspec.structs.fields(payload)
    return " ".join(f"`{each.encode_name}{'' if each.required else '?'}`" for each in fields)


def _close_rows() -> Iterator[tuple[str, ...]]:
    for closing in HUB_CLOSE_NAMES:
        if closing is not None:
            yield str(closing.code), closing.reason, "yes" if closing.reconnect else ""


def _addresses(document: dict[str, Any]) -> str:
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    tags = sorted({tag for _, _, operation in operations for tag in operation["tags"]})
    header = ("address", "operation", "takes", "answers", "sentence")
    sections = (
        f"## {tag.capitalize()}\n\n"
        + table(
            header,
            [
                (
                    f"`{method} {path}`",
                    f"`{operation['operationId']}`",
                    _takes(operation),
                    _answers(operation),
                    operation["description"],
                )
                for method, path, operation in operations
                if tag in operation["tags"]
            ],
        )
        for tag in tags
    )
    return "\n".join(sections)


def _takes(operation: dict[str, Any]) -> str:
    query = [f"`?{row['name']}`" for row in operation["parameters"] if row["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return " ".join([*_type_name(body.get("schema", {})), *query])


def _answers(operation: dict[str, Any]) -> str:
    status = next(number for number in operation["responses"] if number.startswith("2"))
    content = operation["responses"][status].get("content", {})
    named = [
        name
        for media, body in content.items()
        for name in (_type_name(body["schema"]) or [f"`{media}`"])
    ]
    return " ".join([status, *named])


def _type_name(schema: dict[str, Any]) -> list[str]:
    """The names of the types in a schema."""
    inner = [schema, schema.get("items", {}), *schema.get("anyOf", [])]
    return [f"`{ref.rpartition('/')[2]}`" for each in inner if (ref := each.get("$ref"))]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = {
        "classes": classes,
        "words": words,
        "codes": codes,
        "limits": limits,
        "sources": sources,
        "edge-events": edge_events,
        "edge-rest": edge_rest,
        "hub-rest": hub_rest,
        "hub-frames": hub_frames,
    }
    for name, page in pages.items():
        (FOLDER / f"{name}.md").write_text(GENERATED + page(), encoding="utf-8")


if __name__ == "__main__":
    main()
