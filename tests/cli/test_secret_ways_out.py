"""No secret comes out of Factwire by any way, whole or in halves, and no other text is lost."""

import asyncio
import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.facts import (
    Fact,
    Intake,
    RecordingRedactor,
    inspect_stream,
    read_fact,
    redact_text,
    redact_value,
)
from factwire.journal import open_journal
from factwire.projection import project
from tests.cli.cli_commands import Factwire, lines
from tests.cli.journal_files import lines_of, make
from tests.facts.samples import wire
from tests.facts.secret_corpus import NEGATIVES, POSITIVES, Case
from tests.projection.fact_maker import as_json

SECRET = "ghp_" + "a1B2c3D4" * 5


class Text(NamedTuple):
    """A text in pieces: the class and key of a piece, what tells two texts apart, the class that
    closes it, and where a screen shows it.
    """

    event_class: str
    key: str
    ids: dict[str, Any]
    payload: dict[str, Any]
    closing: str = ""
    shown: str = ""


MESSAGE = {"messageId": "m"}
ANSWER = "messages.0.parts.0.text"
OUT, ERR = {"stream": "stdout"}, {"stream": "stderr"}
TEXTS: dict[str, Text] = {
    "answer": Text("model.delta", "delta", MESSAGE, {}, "model.completed", ANSWER),
    "failed answer": Text("model.delta", "delta", MESSAGE, {}, "model.failed", ANSWER),
    "UI answer": Text("text.delta", "delta", MESSAGE, {}, "text.final", ANSWER),
    "reasoning": Text("reasoning.delta", "delta", MESSAGE, {}),
    "summary": Text("reasoning.delta", "summary", MESSAGE, {}),
    "summary by kind": Text("reasoning.delta", "delta", MESSAGE, {"kind": "summary"}),
    "other summary": Text("reasoning.summary", "delta", MESSAGE, {}),
    "plan": Text("plan.delta", "delta", {}, {"planId": "k"}, "plan.final", "plans.k.text"),
    "arguments": Text("tool.args.delta", "delta", {"toolCallId": "c"}, {}),
    "tool output": Text("tool.output.delta", "delta", {"toolCallId": "c"}, OUT, "tool.result",
                        "tools.c.outputText"),
    "failed tool": Text("tool.output.delta", "delta", {"toolCallId": "c"}, ERR, "tool.failed",
                        "tools.c.outputText"),
    "process": Text("process.output", "text", {"processId": "p"}, OUT, "process.completed",
                    "processes.p.output"),
    "process delta": Text("process.output", "delta", {"processId": "p"}, ERR, "process.failed",
                          "processes.p.output"),
    "process of a call": Text("process.output", "delta", {"toolCallId": "c"}, {},
                              "process.terminated", "processes.c.output"),
    "command": Text("command.output", "text", {"toolCallId": "c"}, OUT, "command.exited",
                    "processes.c.output"),
    "command delta": Text("command.output", "delta", {}, {"commandId": "k"}, "command.exited",
                          "processes.k.output"),
    "typed input": Text("process.input", "text", {"processId": "p"}, {}),
    "progress": Text("subagent.progress", "delta", {"subagentId": "s", "taskId": "k"}, {}),
    "unknown class": Text("vendor.chunk", "delta", {"toolCallId": "c"}, {}),
}  # fmt: skip


def cut(text: str, cuts: list[int]) -> list[str]:
    return [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]


def make_facts(kind: Text, pieces: list[str], number: int = 0) -> list[dict[str, Any]]:
    """The facts of one text, among those of another text of the same kind."""

    def build(event_class: str, payload: dict[str, Any], suffix: str = "") -> dict[str, Any]:
        ids = {name: f"{value}{suffix}" for name, value in kind.ids.items()}
        own = {name: f"k{suffix}" for name in ("commandId", "planId") if name in kind.payload}
        required = {"exitCode": 0} if event_class == "command.exited" else {}
        fact = wire(event_class, 1, threadId="t", turnId=f"u{number}", **ids)
        fact["payload"] = {**required, **kind.payload, **own, **payload}
        return fact if event_class != "command.output" else {**fact, "refIds": ["o:1"]}

    found = [
        fact
        for piece in pieces
        for fact in (build(kind.event_class, {kind.key: piece}),
                     build(kind.event_class, {kind.key: "- "}, "-other"))
    ]  # fmt: skip
    if kind.closing:
        failure = {"failureCategory": "io"} if kind.closing.endswith("failed") else {}
        found.append(build(kind.closing, failure))
    return found


def number_facts(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**fact, "id": f"f{n}", "sequence": n} for n, fact in enumerate(facts, 1)]


def is_own(fact: Fact) -> bool:
    values = (fact.message_id, fact.tool_call_id, fact.process_id, fact.subagent_id)
    return not any(str(value).endswith("-other") for value in (*values, *fact.payload.values()))


def join(facts: list[Fact], kind: Text) -> str:
    keys = dict.fromkeys((kind.key, "delta"))
    own = [fact for fact in facts if is_own(fact)]
    return "".join(fact.payload[key] for fact in own for key in keys if key in fact.payload)


def look_up(state: Any, path: str) -> str:
    for step in path.split("."):
        state = state[int(step) if step.isdigit() else step]
    return state


CASES = st.sampled_from([*POSITIVES, *NEGATIVES])


@st.composite
def cut_cases(draw: st.DrawFn) -> tuple[Case, list[str]]:
    case = draw(CASES)
    cuts = draw(st.lists(st.integers(0, len(case.text)), min_size=1, max_size=4))
    return case, cut(case.text, sorted(cuts))


@pytest.mark.requirement("redaction.running-texts")
@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=60)
@given(cut_cases())
def test_a_text_of_any_class_is_redacted_as_if_it_were_whole(
    name: str, made: tuple[Case, list[str]]
):
    kind, (case, pieces) = TEXTS[name], made
    facts = [read_fact(fact) for fact in number_facts(make_facts(kind, pieces))]
    clean = list(RecordingRedactor().redact(facts))
    assert join(clean, kind) == redact_text(case.text)[0]
    assert [fact.id for fact in clean] == [fact.id for fact in facts]
    others = [fact.payload[kind.key] for fact in clean if not is_own(fact)]
    assert "".join(others) == "- " * len(pieces)


@pytest.mark.requirement("redaction.running-texts")
@pytest.mark.parametrize("name", [name for name, kind in TEXTS.items() if kind.shown])
@settings(max_examples=60)
@given(cut_cases())
def test_a_text_that_is_taken_in_live_is_shown_to_its_end(name: str, made: tuple[Case, list[str]]):
    kind, (case, pieces) = TEXTS[name], made
    intake = Intake("collect")
    taken = [intake.feed(fact).fact for fact in number_facts(make_facts(kind, pieces))]
    assert join(taken, kind) == redact_text(case.text)[0]
    assert look_up(as_json(project(taken, "t")), kind.shown) == redact_text(case.text)[0]


@pytest.mark.requirement("validation.split-secrets")
@pytest.mark.parametrize("name", TEXTS)
def test_validation_finds_a_secret_at_every_cut_of_every_class(name: str):
    text = f"use {SECRET} now"
    for place in range(4, 4 + len(SECRET)):
        issues = inspect_stream(number_facts(make_facts(TEXTS[name], cut(text, [place]))))
        assert "secret_leak_risk" in {issue.code for issue in issues}, place


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "patch": ("state.delta", {"patch": [{"op": "add", "path": "/env/API_KEY", "value": "{}"}]}),
    "escaped patch": ("state.delta",
                      {"patch": [{"op": "test", "path": "/env/DB~1PASSWORD", "value": "{}"}]}),
    "patch below a name": ("state.delta",
                           {"delta": [{"op": "replace", "path": "/secrets/db", "value": "{}"}]}),
    "path in steps": ("run.status", {"set": {"path": ["env", "API_KEY"], "value": "{}"}}),
    "argument of curl": ("tool.started", {"args": {"argv": ["curl", "-u", "me:{}", "x"]}}),
    "curl in a text": ("tool.started", {"args": {"command": "curl -u me:{} https://x"}}),
}  # fmt: skip
PLAIN = "plainoldwords"


def fill(value: Any, text: str) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value).replace(b"{}", text.encode()))


@pytest.mark.requirement("redaction.named")
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_known_by_the_path_or_the_option_that_names_it(form: str):
    event_class, payload = FORMS[form]
    fact = wire(event_class, 1, toolCallId="c", payload=fill(payload, PLAIN))
    assert Intake("off").feed(fact).fact.payload == fill(payload, "[redacted]")
    issues = inspect_stream([fact], mode="off")
    assert [issue.code for issue in issues] == ["secret_leak_risk"]


@pytest.mark.requirement("redaction.named")
@pytest.mark.parametrize(
    "value",
    [
        {"op": "replace", "path": "/totalTokens", "value": 7},
        {"op": "add", "path": "/env/HOME", "value": PLAIN},
        ["docker", "run", "-u", "1000:1000"],
        ["docker", "run", "--user", "node:node"],
        "docker run -u www-data:www-data x and rsync -u host:some/folder .",
        "date -u +%H:%M; git push -u origin a:b; nc -u host:8080; curl -u $USER:$PASS x",
    ],
)
def test_paths_users_groups_and_ports_are_no_secrets(value: Any):
    assert redact_value(value) == (value, [])


@pytest.mark.requirement("validation.secret-places")
@pytest.mark.parametrize("field", ["id", "runId", "toolCallId", "runtimeId", "eventClass", "owner"])
def test_a_secret_in_a_name_is_an_issue_and_the_name_stays(field: str):
    issues = inspect_stream([wire("run.status", 1) | {field: SECRET}])
    found = [issue for issue in issues if issue.code == "secret_leak_risk"]
    assert [issue.path for issue in found] == [f"$[0].{field}"]
    assert SECRET not in str(issues)


def parts_of(secret: str) -> Iterator[str]:
    """The secret, and every stretch of it that is long enough to be no accident."""
    yield secret
    for place in range(len(secret) - 16):
        yield secret[place : place + 16]


def find_leak(output: bytes, cases: list[Case]) -> str | None:
    # What stands beside one secret may be part of another one, as in account ids.
    beside = "\n".join(case.text.replace(case.secret, "\n") for case in cases)
    for case in cases:
        for part in parts_of(case.secret):
            if part in beside:
                continue
            if part.encode() in output or msgspec.json.encode(part)[1:-1] in output:
                return part
    return None


def import_raw(factwire: Factwire, facts: list[Fact], name: str) -> tuple[Path, str]:
    """A journal that took in the export of another one, which nobody redacted."""
    raw, copy, export = (factwire.folder / f"{name}{end}" for end in (".raw", ".db", ".export"))
    for path in (raw, copy, export):
        path.unlink(missing_ok=True)
    make(raw, facts, snapshots=["t"])
    assert factwire("journal", "export", f"sqlite:{raw}", export).code == 0
    done = factwire("journal", "import", export, f"sqlite:{copy}")
    assert done.code == 0, done.err
    return copy, done.err


TARGETS = ("facts", "runtime-event", "ui", "ag-ui", "ai-sdk")


def outputs(factwire: Factwire, path: Path, facts: list[Fact]) -> Iterator[tuple[str, bytes]]:
    """Everything that any command makes of a file, and of a journal that was imported."""
    commands: list[tuple[str | Path, ...]] = [
        *(("project", path, *more) for more in ((), ("--json",))),
        ("play", path),
        *(("diff", path, path, *more) for more in ((), ("--json",))),
        *(("validate", path, *more) for more in ((), ("--json",))),
        *(("convert", path, "--to", target) for target in TARGETS),
    ]
    for command in commands:
        done = factwire(*command)
        assert "Traceback" not in done.err
        yield " ".join(map(str, command)), (done.out + done.err).encode()
    journal, err = import_raw(factwire, facts, "ways")
    yield "import", err.encode()
    yield "journal", b"\n".join(line for _, line in lines_of(journal))
    yield "project the journal", factwire("project", f"sqlite:{journal}", "--json").out.encode()
    whole = ("--all", "--journal", f"sqlite:{journal}")
    for source, where in {"file": ("--facts", path), "journal": whole}.items():
        pack = factwire.folder / "ways.pack"
        done = factwire("evidence", "export", *where, "--unsigned", "--force", "--output", pack)
        assert done.code == 0, done.err
        with zipfile.ZipFile(pack) as archive:
            for name in archive.namelist():
                yield f"pack of a {source}: {name}", archive.read(name)


@pytest.mark.requirement("redaction.ways-out")
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(TEXTS)), st.sampled_from(POSITIVES), st.floats(0, 1)),
        min_size=10,
        max_size=20,
    )
)
def test_no_way_out_shows_a_secret_or_two_halves_of_it(
    factwire: Factwire, planted: list[tuple[str, Case, float]]
):
    rows: list[dict[str, Any]] = []
    for number, (name, case, share) in enumerate(planted):
        pieces = cut(case.text, [round(share * len(case.text))])
        rows += make_facts(TEXTS[name], pieces, number)
    facts = number_facts(rows)
    path = factwire.file(lines(*facts))
    cases = [case for _, case, _ in planted]
    for command, output in outputs(factwire, path, [read_fact(fact) for fact in facts]):
        assert find_leak(output, cases) is None, command


@pytest.mark.requirement("redaction.import")
def test_an_import_keeps_the_bytes_of_an_export_without_secrets(factwire: Factwire):
    kind = TEXTS["process"]
    facts = [read_fact(f) for f in number_facts(make_facts(kind, ["tok", "en: ab", " is short"]))]
    journal, remark = import_raw(factwire, facts, "clean")
    assert [line for _, line in lines_of(journal)] == [
        line for _, line in lines_of(factwire.folder / "clean.raw")
    ]
    assert "secrets_redacted" not in remark
    assert "snapshot" not in remark


@pytest.mark.requirement("redaction.import")
def test_an_import_redacts_texts_ids_and_titles_and_leaves_snapshots_out(factwire: Factwire):
    rows = [
        wire("thread.started", 1, threadId="t", payload={"title": f"about {SECRET}"}),
        *make_facts(TEXTS["command"], ["use ", SECRET[:9], SECRET[9:], " now"]),
        wire("run.status", 1, threadId="t", runId=SECRET),
    ]
    facts = [read_fact(fact) for fact in number_facts(rows)]
    journal, remark = import_raw(factwire, facts, "dirty")
    stored = [msgspec.json.decode(line, type=dict[str, Any]) for _, line in lines_of(journal)]
    assert [fact["id"] for fact in stored] == [fact.id for fact in facts]
    assert stored[0]["payload"] == {"title": "about [redacted]"}
    assert stored[-1]["runId"] == "[redacted]"
    texts = [fact["payload"].get("text", "") for fact in stored if fact.get("toolCallId") == "c"]
    assert "".join(texts) == "use [redacted] now"
    assert "secrets_redacted" in remark
    assert "3 secrets were replaced by [redacted]" in remark
    assert "left out 1 snapshot" in remark
    assert SECRET.encode() not in journal.read_bytes()

    async def read_title() -> str | None:
        async with open_journal(f"sqlite:{journal}?mode=ro") as opened:
            row = await opened.thread("t")
            return row and row.title

    assert asyncio.run(read_title()) == "about [redacted]"
