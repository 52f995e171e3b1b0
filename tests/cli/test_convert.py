"""`factwire convert`: the same facts in another shape, one to a line."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import SHAPES, Shape, read_fact, to_ui_events, write_fact
from tests.cli.cli_commands import COMMAND, Factwire, lines
from tests.facts.samples import complete, runtime_event, wire, without

FACTS = [
    complete("turn.started", 1, payload={"prompt": "Hi"}, custom={"": None}),
    complete("tool.started", 2, payload={"toolName": "grep", "args": {"é": [1, None]}}),
    complete("model.delta", 3, payload={"delta": "a\nc"}),
]

STREAMS = Path(__file__).resolve().parents[2] / "examples" / "streams"


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def as_shape(shape: Shape) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(write_fact(read_fact(value), shape))) for value in FACTS]


@pytest.mark.requirement("cli.convert.shapes")
@pytest.mark.parametrize("target", ["facts", "runtime-event"])
@pytest.mark.parametrize("source", SHAPES)
def test_facts_are_converted_between_shapes(factwire: Factwire, source: Shape, target: Shape):
    path = factwire.file(lines(*as_shape(source)))
    done = factwire("convert", path, "--from", source, "--to", target)
    assert (done.code, done.err) == (0, "")
    assert objects(done.out) == as_shape(target)
    assert factwire("convert", path, "--to", target).out == done.out


@pytest.mark.requirement("cli.convert.ui-events")
def test_converting_to_the_ui_writes_the_ui_events_of_each_fact(factwire: Factwire):
    done = factwire("convert", factwire.file(lines(*FACTS)), "--to", "ui")
    expected = [
        json.loads(json.dumps(write_fact(event, "ui")))
        for value in FACTS
        for event in to_ui_events(read_fact(value))
    ]
    assert objects(done.out) == expected
    assert [event["type"] for event in expected] == [
        "run.started",
        "tool.started",
        "artifact.changed",
        "text.delta",
    ]
    again = factwire("convert", "-", "--from", "ui", "--to", "ui", stdin=done.out.encode())
    assert (again.code, again.out) == (0, done.out)


@pytest.mark.requirement("cli.convert.shapes")
@pytest.mark.parametrize(
    "content",
    [
        lines(*FACTS),
        json.dumps(FACTS),
        json.dumps(FACTS, indent=2),
        json.dumps({"events": FACTS}),
        "\ufeff" + lines(*FACTS).replace("\n", "\r\n\r\n"),
    ],
)
def test_every_form_of_input_is_converted(factwire: Factwire, content: str):
    done = factwire("convert", factwire.file(content))
    assert (done.code, objects(done.out)) == (0, FACTS)


@pytest.mark.requirement("cli.convert.shapes")
def test_one_fact_and_none_are_converted_too(factwire: Factwire):
    one = factwire("convert", factwire.file(json.dumps(FACTS[0], indent=1)))
    assert objects(one.out) == FACTS[:1]
    assert factwire("convert", factwire.file("")) == (0, "", "")


@pytest.mark.requirement("cli.convert.problems")
def test_what_is_no_fact_is_named_and_the_rest_is_converted(factwire: Factwire):
    content = lines(FACTS[0], without(wire(sequence=2), "title", "kind"), FACTS[2])
    done = factwire("convert", factwire.file("\n" + content))
    assert done.code == 1
    assert objects(done.out) == [FACTS[0], FACTS[2]]
    assert done.err.splitlines() == [
        "error: line 3: schema_mismatch at $.kind: facts needs kind",
        "error: line 3: schema_mismatch at $.title: facts needs title",
    ]


@pytest.mark.requirement("cli.convert.problems")
def test_in_an_array_facts_are_counted_from_one(factwire: Factwire):
    done = factwire("convert", factwire.file(json.dumps([FACTS[0], "text"])))
    assert done.code == 1
    assert done.err == "error: fact 2: schema_mismatch at $: expected an object, got string\n"


@pytest.mark.requirement("cli.convert.problems")
def test_what_the_other_shape_cannot_do_without_is_named(factwire: Factwire):
    done = factwire("convert", factwire.file('{"type": "text.delta"}'), "--to", "runtime-event")
    assert done.code == 0
    assert done.err.endswith("left unknown: sequence (1), sessionId (1)\n")
    rows = ({"type": "text.delta", "id": f"u{each}", "sequence": each} for each in (5, None, 6))
    done = factwire("convert", factwire.file(lines(*rows)), "--to", "facts")
    assert done.code == 1
    assert done.err.splitlines()[0].endswith("facts needs sequence")


@pytest.mark.requirement("cli.convert.problems")
def test_a_fact_that_breaks_a_rule_is_converted_all_the_same(factwire: Factwire):
    done = factwire("convert", factwire.file(lines(wire("tool.started"))), "--to", "facts")
    assert (done.code, objects(done.out)) == (0, [wire("tool.started")])


@pytest.mark.requirement("cli.convert.problems")
@pytest.mark.requirement("cli.exit-codes")
def test_unreadable_input_ends_it_with_line_and_reason(factwire: Factwire):
    done = factwire("convert", factwire.file(lines(FACTS[0]) + "\n{\n" + lines(FACTS[1])))
    assert done.code == 2
    assert objects(done.out) == FACTS[:1]
    assert done.err.startswith("error: line 3: not JSON")
    assert done.err.count("\n") == 1


@pytest.mark.requirement("cli.convert.shapes")
def test_facts_are_converted_in_order_and_two_events_without_ids_are_two(factwire: Factwire):
    done = factwire("convert", factwire.file(lines(*reversed(FACTS))))
    assert (done.code, objects(done.out)) == (0, FACTS)
    laugh = {"type": "text.delta", "threadId": "t", "turnId": "u", "payload": {"delta": "ha"}}
    other = {**laugh, "threadId": "other"}
    done = factwire("convert", factwire.file(lines(laugh, other, laugh)), "--to", "ui")
    *first, again = objects(done.out)
    assert (done.code, first) == (0, [laugh, other])
    assert {**again, "id": None} == {**laugh, "id": None}


@pytest.mark.requirement("cli.convert.shapes")
def test_a_source_that_is_not_known_is_wrong_usage(factwire: Factwire):
    done = factwire("convert", "-", "--from", "nonsense")
    assert done.code == 2
    assert "runtime-event" in done.err


@pytest.mark.requirement("cli.convert.shapes")
def test_the_given_shape_is_the_one_that_is_read(factwire: Factwire):
    event = runtime_event("run.status")
    done = factwire("convert", factwire.file(json.dumps(event)), "--from", "facts")
    assert (done.code, done.out) == (1, "")


@pytest.mark.requirement("ui.round-trip")
@pytest.mark.parametrize("name", ["whole_day", "coding_fixed", "approval_expired"])
def test_the_commands_read_ui_events_as_the_facts_they_were_made_from(
    factwire: Factwire, name: str
):
    path = STREAMS / f"{name}.ndjson"
    events = factwire("convert", str(path), "--to", "ui").out
    ui = factwire.file(events)
    assert len(events.splitlines()) >= len(path.read_bytes().splitlines())
    facts = factwire("convert", str(path), "--to", "facts")
    assert factwire("convert", ui, "--to", "facts") == facts
    assert factwire("convert", ui, "--to", "ui").out == events
    assert factwire("project", ui).out == factwire("project", str(path)).out


def start_convert(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "convert", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


SHUFFLED = [FACTS[2], FACTS[0], FACTS[1]]


@pytest.mark.requirement("cli.convert.live")
@pytest.mark.parametrize("place", range(3))
def test_a_pipe_is_converted_as_it_comes_and_a_file_in_order(factwire: Factwire, place: int):
    with start_convert("-", "--to", "runtime-event") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for value in SHUFFLED[: place + 1]:
            process.stdin.write(lines(value).encode())
            process.stdin.flush()
            written = json.loads(process.stdout.readline())
            assert written == json.loads(json.dumps(write_fact(read_fact(value), "runtime-event")))
        process.stdin.close()
        assert (process.stdout.read(), process.wait()) == (b"", 0)
    done = factwire("convert", factwire.file(lines(*SHUFFLED)))
    assert [fact["sequence"] for fact in objects(done.out)] == [1, 2, 3]


@pytest.mark.requirement("cli.convert.live")
def test_a_stream_of_an_agent_is_converted_as_it_comes():
    line = b'{"type": "thread.started", "thread_id": "t"}\n'
    with start_convert("-", "--from", "codex-exec") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + b'{"type": "turn.started"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["sequence"] == 1
        process.stdin.close()
        process.stdout.read()
        assert process.wait() == 0


@pytest.mark.requirement("cli.convert.live")
def test_a_file_is_followed_as_it_grows_until_it_is_interrupted(tmp_path: Path):
    path = tmp_path / "facts.ndjson"
    path.write_text(lines(FACTS[0]))
    with start_convert(path, "--follow") as process, path.open("a") as growing:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["sequence"] == 1
        text = lines(FACTS[1])
        for part in (text[:30], text[30:] + lines(FACTS[2])):
            growing.write(part)
            growing.flush()
        assert [json.loads(process.stdout.readline())["sequence"] for _ in range(2)] == [2, 3]
        process.send_signal(signal.SIGINT)
        assert (process.wait(), process.stderr.read()) == (0, b"")


@pytest.mark.requirement("cli.convert.live")
def test_half_a_secret_at_the_end_of_a_followed_file_stays_back(tmp_path: Path):
    path, secret = tmp_path / "facts.ndjson", "ghp_" + "a1B2c3D4" * 5
    pieces = ["use ", secret[:20]]
    facts = [
        complete("model.delta", n, payload={"delta": piece}) for n, piece in enumerate(pieces, 1)
    ]
    path.write_text(lines(*facts))
    with start_convert(path, "--follow") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["payload"]["delta"] == "use "
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 0
    assert secret[:8].encode() not in rest
