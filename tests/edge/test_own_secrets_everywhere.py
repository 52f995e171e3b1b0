"""What the operator's settings name comes out of a live Edge by no way, and stays in no file."""

import asyncio
import base64
import io
import json
import logging
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from websockets.asyncio.client import connect

from factwire.facts.own_secrets import OWN_SECRETS, OwnPattern
from factwire.runtime.configuration import RedactionSettings
from factwire.serving.logs import set_up_logs
from tests.cli.cli_commands import run
from tests.edge.edges import TOKEN, RunningEdge, configuration_in, running_edge
from tests.edge.streaming import until

pytestmark = pytest.mark.requirement("redaction.own-everywhere")

VALUE: Final = "velvet/Quagga mire"
CODE: Final = "UNIT-778899"
FORMS: Final = (
    VALUE, "velvet%2FQuagga%20mire", "velvet\\/Quagga mire", CODE,
    base64.b64encode(VALUE.encode()).decode(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_own_secrets() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers, root.level, logging.getLogger("factwire").level
    yield
    OWN_SECRETS.clear()
    root.handlers = before[0]
    root.setLevel(before[1])
    logging.getLogger("factwire").setLevel(before[2])
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def outside_facts() -> list[dict[str, Any]]:
    """A text of another runtime, one character a fact, with every form of the value in it."""
    text = f"I use {' and '.join(FORMS)} here."
    rows: list[tuple[str, dict[str, Any]]] = [
        ("turn.submitted", {"prompt": f"use {VALUE}"}), ("turn.started", {}),
        *(("model.delta", {"delta": sign}) for sign in text),
        ("model.completed", {}),
        ("tool.started", {"toolName": "x", "args": {"a": VALUE, VALUE: 1}}),
        ("tool.result", {"output": f"{VALUE}\n" * 5_000}),
        ("turn.completed", {}),
    ]  # fmt: skip
    return [
        {
            "id": f"o{n}", "kind": "k", "status": "s", "title": f"title {VALUE}",
            "createdAt": "2026-01-01T00:00:00Z", "schemaVersion": "v1", "runtimeId": "outside",
            "sequence": n, "eventClass": name, "threadId": "outside", "turnId": "turn",
            "messageId": "m" if name.startswith("model") else None,
            "toolCallId": "c" if name.startswith("tool") else None, "payload": payload,
        }
        for n, (name, payload) in enumerate(rows, 1)
    ]  # fmt: skip


def read_whole(path: Path) -> bytes:
    """A file's bytes, and what is packed in them."""
    data = path.read_bytes()
    if not zipfile.is_zipfile(path):
        return data
    with zipfile.ZipFile(path) as pack:
        return data + b"".join(pack.read(name) for name in pack.namelist())


async def use_edge(edge: RunningEdge) -> list[str]:
    """All that an Edge shows of an agent that prints the value, and of facts with it."""
    seen: list[str] = []
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with connect(f"{edge.socket_url}/v1/facts", additional_headers=headers) as socket:
        command = f"printf '%s' 'velvet/Quag'; printf 'ga mire {CODE}\\n'; echo '{VALUE}' >&2"
        started = await edge.start(command, agent="shell")
        approval = await edge.wait_for_approval(started["runId"])
        card = await edge.get(f"/v1/approvals/{approval['approvalId']}")
        seen.append(json.dumps([approval, card]))
        assert (await edge.decide(approval, "allow")).status_code == 200
        assert (await edge.run_until(started["runId"]))["status"] == "finished"
        facts = [{k: v for k, v in row.items() if v is not None} for row in outside_facts()]
        await edge.post("/v1/facts", facts)
        stored = await edge.post(
            "/v1/blobs", {"content": base64.b64encode(f"see {VALUE}".encode()).decode()}, status=201
        )
        seen.append((await edge.http.get(f"/v1/blobs/{stored['ref']}")).text)
        await until(lambda: edge.machine.feed.cursor.seq > len(facts))
        for _ in range(edge.machine.feed.cursor.seq):
            seen.append(str(await asyncio.wait_for(socket.recv(), 60)))
            if "turn.completed" in seen[-1] and "outside" in seen[-1]:
                break
    lists = ("/v1/threads", "/v1/runs", "/v1/approvals", "/v1/events")
    seen += [(await edge.http.get(path)).text for path in lists]
    for thread in (started["threadId"], "outside"):
        seen.append((await edge.http.get(f"/v1/threads/{thread}/projection")).text)
        pack = await edge.post("/v1/evidence", {"threadId": thread, "withBlobs": True}, status=201)
        seen.append(json.dumps(pack))
    return seen


@pytest.mark.asyncio
async def test_no_way_out_of_an_edge_and_no_file_of_it_has_a_value(tmp_path: Path):
    folder, log = tmp_path / "edge", io.StringIO()
    folder.mkdir()
    env_file = tmp_path / ".env"
    env_file.write_text(f"PHRASE='{VALUE}'\n")
    redaction = RedactionSettings(
        patterns=(OwnPattern("unit", "UNIT-[0-9]{6}"),), never_store=(str(env_file),)
    )
    set_up_logs("debug", "json", log)
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    configuration = configuration_in(folder, redaction=redaction)
    async with running_edge(folder, configuration=configuration, tracer_provider=provider) as edge:
        logging.getLogger("factwire").warning("about %s", VALUE)
        seen = await use_edge(edge)
    traces = "".join(span.to_json() for span in spans.get_finished_spans())
    contents = {path: read_whole(path) for path in folder.rglob("*") if path.is_file()}
    assert len(contents) > 3
    assert "run" in traces
    assert "[redacted]" in "".join(seen)
    for form in FORMS:
        assert form not in log.getvalue()
        assert form not in traces
        assert not [text[:200] for text in seen if form in text]
        assert not [path.name for path, data in contents.items() if form.encode() in data]


COMMANDS: Final = (
    ("convert", "{file}", "--to", "runtime-event"), ("convert", "{file}", "--to", "ui"),
    ("project", "{file}", "--json"), ("project", "{file}"), ("play", "{file}", "--speed", "0"),
    ("diff", "{file}", "{file}"), ("validate", "{file}", "--json"),
    ("journal", "import", "{journal}", "{file}"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_a_value(tmp_path: Path, command: tuple[str, ...]):
    config = tmp_path / "factwire" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        "[redaction]\nnever_store = ['PHRASE']\npatterns = { unit = 'UNIT-[0-9]{6}' }\n"
    )
    rows = [{k: v for k, v in row.items() if v is not None} for row in outside_facts()]
    file = tmp_path / "facts.ndjson"
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    journal = tmp_path / "new.db"
    arguments = [part.format(file=file, journal=journal) for part in command]
    home = {"XDG_CONFIG_HOME": str(tmp_path), "PHRASE": VALUE}
    done = run(*arguments, environment=home)
    assert done.out + done.err
    for form in FORMS:
        assert form not in done.out + done.err
    bare = run(*arguments, environment={"XDG_CONFIG_HOME": str(tmp_path / "none")})
    shows = command[0] in ("convert", "project")
    assert not shows or VALUE in bare.out


def test_doctor_counts_and_names_no_value(tmp_path: Path):
    config = tmp_path / "factwire" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        "[redaction]\nnever_store = ['PHRASE', 'TOO_SHORT']\n"
        "patterns = { unit = 'UNIT-[0-9]{6}' }\n"
    )
    home = {
        "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"),
        "PHRASE": VALUE, "TOO_SHORT": "abc9",
    }  # fmt: skip
    done = run("doctor", "--json", "--workspace", tmp_path, environment=home)
    [finding] = [each for each in json.loads(done.out)["findings"] if each["name"] == "redaction"]
    assert finding["status"] == "warn"
    assert finding["message"] == (
        "1 own pattern and 1 value that are never stored; "
        "too short or too common to hide: TOO_SHORT"
    )
    assert VALUE not in done.out + done.err
    assert "abc9" not in done.out + done.err


def test_settings_that_cannot_be_used_end_a_command_with_a_reason(tmp_path: Path):
    config = tmp_path / "factwire" / "config.toml"
    config.parent.mkdir()
    config.write_text("[redaction]\npatterns = { unit = 'UNIT-[0-9]+' }\n")
    file = tmp_path / "facts.ndjson"
    file.write_text("{}\n")
    done = run("convert", file, "--to", "ui", environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert done.code == 2
    assert f"{config}:2: redaction.patterns expected for 'unit' runs with an upper" in done.err
