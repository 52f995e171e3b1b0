"""The Edge's contracts in other languages take what is sent, and refuse what is not."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from factwire.edge.events import EVENT_TYPES, build_asyncapi
from factwire.edge.events.event_schemas import edge_files, event_schema
from factwire.facts import decode_fact
from factwire.facts.schemas import typescript
from factwire.projection.schemas import projection_typescript
from factwire.serving.envelopes import VIEWS
from tests.edge.event_samples import SAMPLES, fact, to_envelope
from tests.typescript import compile_strictly
from tools.node import packages

pytestmark = pytest.mark.requirement("edge.events.schemas")

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = build_asyncapi()
ENVELOPE: Any = Draft202012Validator(event_schema())


def wire(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def at(pointer: str) -> Any:
    found: Any = DOCUMENT
    for key in pointer.removeprefix("#/").split("/"):
        found = found[key]
    return found


def message(name: str) -> Any:
    return Draft7Validator(DOCUMENT | {"$ref": f"#/components/messages/{name}/payload"})


@pytest.mark.parametrize("name", edge_files())
def test_a_committed_file_is_what_the_types_say_now(name: str):
    assert (ROOT / "schemas" / name).read_text("utf-8") == edge_files()[name]


def test_the_schema_takes_every_envelope_and_so_does_its_message():
    for sample in SAMPLES:
        for view in VIEWS:
            envelope = wire(to_envelope(sample.fact, view))
            ENVELOPE.validate(envelope)
            own = envelope["type"] if envelope["type"] in EVENT_TYPES else "own-class"
            message(own).validate(envelope)


@pytest.mark.parametrize("stem", ["whole_day", "coding_fixed", "team_at_work", "ids_missing"])
def test_the_schema_takes_the_envelopes_of_a_recorded_day(stem: str):
    path = ROOT / "examples" / "streams" / f"{stem}.ndjson"
    for line in path.read_bytes().splitlines():
        for view in VIEWS:
            ENVELOPE.validate(wire(to_envelope(decode_fact(line), view)))


@pytest.mark.parametrize(
    "broken",
    [
        {"version": "v2"},
        {"id": 7},
        {"seq": "7"},
        {"payload": {"messageId": "m"}},
        {"payload": {"messageId": "m", "content": 7}},
        {"payload": None},
        {"scope": {"runId": 7}},
        {"cursor": None},
    ],
)
def test_the_schema_refuses_an_envelope_that_is_none(broken: dict[str, Any]):
    envelope = wire(to_envelope(fact("model.delta", {"delta": "x"}, turnId="t", messageId="m")))
    assert ENVELOPE.is_valid(envelope)
    assert not ENVELOPE.is_valid(envelope | broken)
    assert not message("run.agent.text_delta").is_valid(envelope | broken)


def test_an_envelope_needs_all_that_identifies_it():
    envelope = wire(to_envelope(fact("turn.started", turnId="t")))
    for name in envelope:
        assert not ENVELOPE.is_valid({key: value for key, value in envelope.items() if key != name})


def test_the_document_is_valid_asyncapi():
    path = packages.install() / "@asyncapi" / "specs" / "schemas" / "3.0.0.json"
    specification: Any = Draft7Validator(msgspec.json.decode(path.read_bytes()))
    assert [error.message for error in specification.iter_errors(DOCUMENT)] == []


def test_every_ref_of_the_document_leads_somewhere():
    text = msgspec.json.encode(DOCUMENT).decode()
    assert [ref for ref in re.findall(r'"\$ref":"([^"]+)"', text) if not at(ref)] == []


def test_the_channels_are_the_three_streams():
    addresses = {name: channel["address"] for name, channel in DOCUMENT["channels"].items()}
    assert addresses == {
        "events": "/v1/events",
        "facts": "/v1/facts",
        "projection": "/v1/threads/{threadId}/projection/stream",
    }
    events = DOCUMENT["channels"]["events"]["messages"]
    assert set(events) == {*EVENT_TYPES, "own-class", "checkpoint"}
    assert set(DOCUMENT["channels"]["facts"]["messages"]) == {"fact", "checkpoint", "error"}
    assert set(DOCUMENT["channels"]["projection"]["messages"]) == {
        *("projection.snapshot", "projection.delta", "error")
    }


USES = """\
import type {
  Envelope, EnvelopeOf, EventFrame, EventType, FactsFrame, KnownEnvelope, ProjectionFrame,
} from "./edge";

export const envelope: Envelope = {
  version: "v1", id: "evt_1", seq: 7, type: "lamp.dimmed", scope: {}, traceId: "t",
  sentAt: "2026-01-01T00:00:00Z", payload: {}, cursor: "fw1.0.7",
};
export const failed: EnvelopeOf<"run.failed"> = {
  ...envelope, type: "run.failed",
  payload: { runId: "run_1", status: "failed", error: { code: "TIMEOUT", message: "late" } },
};
export const general: Envelope = failed;
// @ts-expect-error there is no such code
failed.payload.error.code = "LATE";
// @ts-expect-error there is no such type
export type Unheard = EnvelopeOf<"run.pondered">;
// @ts-expect-error an envelope has a cursor
export const lost: Envelope = { ...envelope, cursor: undefined };

export function text(known: KnownEnvelope): string {
  switch (known.type) {
    case "run.agent.text_delta":
      return known.payload.content;
    case "message.delta":
      return known.payload.delta;
    case "run.status.changed":
      return `${known.payload.from} ${known.payload.to}`;
    default:
      return "";
  }
}
export const place = (frame: EventFrame | FactsFrame): string | undefined =>
  "cursor" in frame ? frame.cursor : frame.payload.details?.asOfCursor ?? undefined;
export const title = (frame: ProjectionFrame): string | null | undefined =>
  frame.type === "projection.snapshot" ? frame.state.title : null;
export const names: EventType[] = ["thread.created", "unknown"];
"""


def test_the_declarations_compile_and_tell_types_apart(tmp_path: Path):
    declarations = {
        "edge.d.ts": edge_files()["edge.d.ts"],
        "factwire.d.ts": typescript(),
        "projection.d.ts": projection_typescript(),
    }
    assert compile_strictly(tmp_path, declarations, USES) == []


def test_the_page_shows_an_envelope_as_it_is_sent():
    page = (ROOT / "docs" / "edge-events.md").read_text("utf-8")
    [shown] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    piece = fact(
        "model.delta",
        {"delta": "Python 3.11 "},
        id="evt_01JXAMPLE",
        createdAt="2026-06-10T09:00:03.000Z",
        threadId="thr_1",
        turnId="trn_1",
        messageId="msg_1",
    )
    assert msgspec.json.decode(shown) == wire(to_envelope(piece, "conversation", 42))
