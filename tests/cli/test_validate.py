"""`factwire validate`: every form of input, both reports, every exit code."""

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_commands import Factwire, lines
from tests.facts.samples import complete, runtime_event, wire, without

GOOD = [complete("turn.started", 1), complete("tool.started", 2), complete("tool.result", 3)]
BAD = [complete("turn.started", 1), wire("tool.started", 2)]
BAD_ISSUE = {
    "code": "missing_scope_id",
    "path": "$[1].toolCallId",
    "message": "tool.started needs toolCallId",
}
FIXTURE: dict[str, Any] = {
    "id": "tool-success",
    "schemaVersion": "agent-ui-fixture/v0.1",
    "title": "A tool turn",
    "events": GOOD,
    "expected": {"status": "running"},
}

FORMS = {
    "lines": lines(*GOOD),
    "lines without a last newline": lines(*GOOD).rstrip("\n"),
    "lines with CRLF": lines(*GOOD).replace("\n", "\r\n"),
    "lines with blank lines": "\n\n" + lines(*GOOD).replace("\n", "\n \t\n\n"),
    "lines after a byte order mark": "\ufeff" + lines(*GOOD),
    "an array": json.dumps(GOOD),
    "an array over many lines": json.dumps(GOOD, indent=2),
    "an array after a byte order mark": "\ufeff" + json.dumps(GOOD, indent=2),
    "a fixture": json.dumps(FIXTURE),
    "a fixture over many lines": json.dumps(FIXTURE, indent=2) + "\n",
    "a fixture after blank lines": "\n\n" + json.dumps(FIXTURE, indent=2),
}


@pytest.mark.requirement("cli.validate.forms")
@pytest.mark.requirement("cli.validate.json")
@pytest.mark.parametrize("form", FORMS)
def test_valid_facts_are_valid_in_every_form(factwire: Factwire, form: str):
    assert factwire.report(FORMS[form]) == {"valid": True, "issues": [], "facts": 3}


@pytest.mark.requirement("cli.validate.forms")
@pytest.mark.parametrize("indent", [None, 2])
def test_one_fact_is_read(factwire: Factwire, indent: int | None):
    fact = json.dumps(GOOD[0], indent=indent)
    assert factwire.report(fact) == {"valid": True, "issues": [], "facts": 1}
    broken = json.dumps(without(GOOD[0], "title"), indent=indent)
    assert factwire.report(broken) == {
        "valid": False,
        "issues": [{"code": "schema_mismatch", "path": "$.title", "message": "facts needs title"}],
        "facts": 1,
    }


@pytest.mark.requirement("cli.validate.forms")
@pytest.mark.parametrize("content", ["", "\n", " \n\t\n", "\ufeff", "[]"])
def test_no_facts_are_valid(factwire: Factwire, content: str):
    assert factwire.report(content) == {"valid": True, "issues": [], "facts": 0}


@pytest.mark.requirement("cli.validate.json")
@pytest.mark.parametrize("content", [lines(*BAD), json.dumps(BAD)])
def test_issues_are_listed_with_code_path_and_message(factwire: Factwire, content: str):
    assert factwire.report(content) == {"valid": False, "issues": [BAD_ISSUE], "facts": 2}


@pytest.mark.requirement("cli.validate.json")
def test_the_keys_of_a_report_stand_in_this_order(factwire: Factwire):
    done = factwire("validate", factwire.file(lines(*BAD)), "--json")
    assert list(json.loads(done.out)) == ["valid", "issues", "facts"]
    assert done.out.count("\n") == 1


@pytest.mark.requirement("cli.validate.forms")
def test_issues_of_a_fixture_have_paths_into_it(factwire: Factwire):
    found = factwire.report(json.dumps({**FIXTURE, "events": BAD}))
    assert found["issues"] == [{**BAD_ISSUE, "path": "$.events[1].toolCallId"}]
    assert factwire.report(json.dumps(without(FIXTURE, "title")))["issues"][0]["path"] == "$.title"


@pytest.mark.requirement("cli.validate.forms")
@pytest.mark.parametrize("value", ["{}", "not JSON", None, 7, []])
def test_what_is_no_object_in_an_array_is_an_issue_and_not_unreadable(
    factwire: Factwire, value: object
):
    found = factwire.report(json.dumps([GOOD[0], value]))
    assert [issue["path"] for issue in found["issues"]] == ["$[1]"]
    assert found["facts"] == 2


@pytest.mark.requirement("cli.validate.forms")
def test_information_leaves_facts_valid(factwire: Factwire):
    found = factwire.report(lines(GOOD[0], wire("never.heard", 2)))
    assert found["valid"] is True
    assert [issue["code"] for issue in found["issues"]] == ["unknown_event_type"]


@pytest.mark.requirement("cli.validate.unreadable")
@pytest.mark.parametrize(
    ("content", "line", "facts", "reason"),
    [
        (lines(*GOOD[:2]) + '{"id": \n' + lines(GOOD[2]), 3, 2, "not JSON"),
        (lines(*GOOD[:2]) + "\n\nnonsense\n", 5, 2, "not JSON"),
        (lines(*GOOD)[:-40], 3, 2, "not JSON"),
        ('{"id": }\n' + lines(*GOOD), 1, 0, "not JSON"),
        ('{"id": \n' + lines(*GOOD), 3, 0, "not JSON"),
        ("nonsense", 1, 0, "not JSON"),
        ('{"id": "a"', 1, 0, "not JSON"),
        ('"just text"', 1, 0, "expected a fact, an array of facts or a fixture"),
        ("7", 1, 0, "expected a fact, an array of facts or a fixture"),
        (json.dumps(GOOD, indent=2)[:-4], None, 0, "not JSON"),
        ("[\n1,\n2\n3]", 4, 0, "not JSON"),
        (b"\x00\x01\x02\xff\xfe", 1, 0, "not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", 1, 0, "not JSON"),
        (b'{"id": "caf\xe9"}\n', 1, 0, "not UTF-8 at byte 11"),
        (lines(*GOOD).encode() + b'{"id": "\xff"}\n', 4, 3, "not UTF-8 at byte 8"),
        (b'[\n{"id": "a"},\n{"id": "\xff"},\n{"id": "b"}\n]', 3, 0, "not UTF-8 at byte 23"),
        ("\ufeff\ufeff{}", 1, 0, "not JSON"),
        ("[" * 300 + "]" * 300, 1, 0, "nested deeper than 200 levels"),
        (lines(GOOD[0]) + "[" * 300 + "]" * 300, 2, 1, "nested deeper than 200 levels"),
    ],
)
def test_what_cannot_be_read_is_named_with_line_and_reason(
    factwire: Factwire, content: bytes | str, line: int | None, facts: int, reason: str
):
    found = factwire.report(content)
    error = found.pop("error")
    assert error["code"] == "unreadable_input"
    assert error["message"].startswith(reason)
    if line is None:
        line = len(json.dumps(GOOD, indent=2)[:-4].rstrip().splitlines())
    assert error["line"] == line
    assert found == {"valid": False, "issues": [], "facts": facts}
    done = factwire("validate", factwire.folder / "facts.ndjson")
    assert done.code == 2
    assert f"line {line}: {reason}" in done.err
    assert "Traceback" not in done.err


@pytest.mark.requirement("cli.validate.unreadable")
def test_issues_before_an_unreadable_place_are_kept(factwire: Factwire):
    found = factwire.report(lines(*BAD) + "{")
    assert found["issues"] == [BAD_ISSUE]
    assert (found["facts"], found["error"]["line"]) == (2, 3)


@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.requirement("cli.exit-codes")
@pytest.mark.parametrize("name", ["no such file", "folder", "folder/no such file", "x" * 300])
def test_a_file_that_cannot_be_opened_is_said_in_one_line(factwire: Factwire, name: str):
    (factwire.folder / "folder").mkdir()
    done = factwire("validate", factwire.folder / name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


@pytest.mark.requirement("cli.errors.no-traceback")
def test_a_file_that_may_not_be_read_is_said_in_one_line(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = factwire.file("{}")
    monkeypatch.setattr(Path, "open", refuse)
    done = factwire("validate", path)
    assert (done.code, done.err) == (2, f"error: {path} cannot be read: permission denied\n")


@pytest.mark.requirement("cli.exit-codes")
@pytest.mark.parametrize(
    "arguments", [["validate"], ["validate", "x", "--shape", "round"], ["validate", "--nonsense"]]
)
def test_wrong_usage_is_2(factwire: Factwire, arguments: list[str]):
    done = factwire(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: factwire validate" in done.err


@pytest.mark.requirement("cli.validate.stdin")
@pytest.mark.parametrize("form", FORMS)
def test_a_dash_reads_standard_input(factwire: Factwire, form: str):
    done = factwire("validate", "-", "--json", stdin=FORMS[form].encode())
    assert (done.code, json.loads(done.out)) == (0, {"valid": True, "issues": [], "facts": 3})


@pytest.mark.requirement("cli.validate.stdin")
def test_standard_input_is_called_so(factwire: Factwire):
    done = factwire("validate", "-", stdin=b"{")
    assert done.err.startswith("error: standard input: line 1: not JSON")


@pytest.mark.requirement("cli.validate.shape")
def test_the_shape_is_found_for_each_fact_or_given(factwire: Factwire):
    events = [runtime_event("run.status", 1), complete("run.status", 2), {"type": "run.status"}]
    assert factwire.report(lines(*events))["valid"] is True
    for shape, fine in (("facts", 1), ("runtime-event", 0), ("ui", 2)):
        issues = factwire.report(lines(*events), "--shape", shape)["issues"]
        assert f"$[{fine}]" not in {issue["path"].partition(".")[0] for issue in issues}
        assert {issue["code"] for issue in issues} == {"schema_mismatch"}
    assert factwire.report(json.dumps(events[0]), "--shape", "ui")["valid"] is True


VIOLATING = [
    complete("turn.started", 1),
    complete("tool.result", 2),
    complete("tool.result", 4),
]


@pytest.mark.requirement("cli.validate.mode")
@pytest.mark.parametrize("as_array", [False, True])
def test_the_lifecycle_is_collected_unless_it_shall_fail_closed_or_be_off(
    factwire: Factwire, as_array: bool
):
    content = json.dumps(VIOLATING) if as_array else lines(*VIOLATING)
    codes = {
        mode: [issue["code"] for issue in factwire.report(content, *mode)["issues"]]
        for mode in ((), ("--mode", "collect"), ("--mode", "fail-closed"), ("--mode", "off"))
    }
    both = ["sequence_violation", "sequence_violation", "sequence_gap"]
    assert codes == {
        (): both,
        ("--mode", "collect"): both,
        ("--mode", "fail-closed"): ["sequence_violation"],
        ("--mode", "off"): ["sequence_gap"],
    }
    assert factwire.report(content, "--mode", "fail-closed")["facts"] == 2


@pytest.mark.requirement("cli.validate.mode")
def test_failing_closed_keeps_the_gaps_before_the_violation(factwire: Factwire):
    stream = [complete("turn.started", 1), complete("run.status", 5), complete("tool.result", 6)]
    found = factwire.report(lines(*stream), "--mode", "fail-closed")
    assert [issue["path"] for issue in found["issues"]] == ["$[2]", "$[1].sequence"]


@pytest.mark.requirement("cli.validate.table")
def test_valid_facts_are_one_sentence(factwire: Factwire):
    assert factwire("validate", factwire.file(lines(*GOOD))).out == "valid: 3 facts, no issues\n"
    one = factwire("validate", factwire.file(lines(GOOD[0])))
    assert (one.code, one.out, one.err) == (0, "valid: 1 fact, no issues\n", "")


@pytest.mark.requirement("cli.validate.table")
def test_issues_are_a_table_with_lines(factwire: Factwire):
    done = factwire("validate", factwire.file("\n" + lines(*BAD)))
    rows = [line.strip().split(maxsplit=3) for line in done.out.splitlines()]
    assert rows[:2] == [
        ["line", "code", "path", "message"],
        ["3", "missing_scope_id", "$[1].toolCallId", "tool.started needs toolCallId"],
    ]
    assert done.out.endswith("not valid: 2 facts, 1 issue (1 missing_scope_id)\n")
    assert (done.code, done.err) == (1, "")


@pytest.mark.requirement("cli.validate.table")
def test_where_there_are_no_lines_there_is_no_column_for_them(factwire: Factwire):
    done = factwire("validate", factwire.file(json.dumps(BAD)))
    assert done.out.splitlines()[0].split() == ["code", "path", "message"]


@pytest.mark.requirement("cli.validate.table")
def test_information_alone_is_shown_and_valid(factwire: Factwire):
    done = factwire("validate", factwire.file(json.dumps(wire("never.heard"))))
    assert done.out.endswith("valid: 1 fact, 1 issue (1 unknown_event_type)\n")
    assert "not valid" not in done.out
    assert done.code == 0


@pytest.mark.requirement("cli.validate.table")
def test_a_long_table_is_cut_and_says_so(factwire: Factwire):
    stream = [wire("tool.args", number) for number in range(250)]
    done = factwire("validate", factwire.file(lines(*stream)))
    assert "and 50 more; use --json to see all" in done.out
    assert done.out.count("missing_scope_id") == 200 + 1


@pytest.mark.requirement("cli.validate.bounded-issues")
def test_issues_past_the_bound_are_counted(factwire: Factwire, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.import_module("factwire.cli.validate_command"), "ISSUES_KEPT", 5)
    stream = [wire("tool.args", number) for number in range(12)]
    found = factwire.report(lines(*stream))
    assert (len(found["issues"]), found["issuesOmitted"], found["valid"]) == (5, 7, False)
    done = factwire("validate", factwire.folder / "facts.ndjson")
    assert "12 issues" in done.out


HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "title of the window": "\x1b]0;owned\x07",
    "markup": "[red]red[/red]",
    "escaped markup": "\\[red]red",
    "unbalanced markup": "[/]",
    "link": "[link=https://example.org]x[/link]",
    "bidi": "\u202egnp.exe",
    "zero width": "a\u200bb\u200d\ufeff",
    "carriage return": "fine\rvalid: 1 fact",
    "newline": "a\nvalid: 1 fact, no issues",
    "backspace": "abc\b\b\bx",
    "nul": "a\x00b",
    "c1": "a\x9b31mb",
}


@pytest.mark.requirement("cli.errors.harmless-text")
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("verb", ["validate", "convert"])
def test_text_from_the_input_cannot_steer_the_terminal(factwire: Factwire, name: str, verb: str):
    text = HOSTILE[name]
    value = wire(text, payload={text: {"password": "x"}}, refIds=[text])
    value["payload"]["preview"] = "x" * 600
    value["sequence"] = {text: text}
    for content in (json.dumps(value), json.dumps({**value, "sequence": 1}), lines(value, value)):
        done = factwire(verb, factwire.file(content))
        assert done.code in (0, 1)
        shown = done.err if verb == "convert" else done.out + done.err
        assert not any(ord(c) < 32 and c != "\n" for c in shown)
        assert not set(shown) & set("\x7f\x9b\u200b\u200d\u202e\ufeff")
        assert "\nvalid: 1 fact" not in shown
        assert "Traceback" not in done.err


@pytest.mark.requirement("cli.errors.harmless-text")
@pytest.mark.parametrize("text", ["[red]x", "\\[red]x", "\\\\[red]x", "[/]", "a[0]b"])
def test_brackets_are_shown_as_they_are(factwire: Factwire, text: str):
    value = wire("run.status", payload={text: {"password": "y"}})
    done = factwire("validate", factwire.file(json.dumps(value)))
    assert f"$.payload[{json.dumps(text)}].password" in done.out


@pytest.mark.requirement("cli.errors.harmless-text")
def test_a_file_name_cannot_steer_the_terminal(factwire: Factwire):
    for name in ("\x1b[31mred.json", "[red]red.json", "a\nb.json", os.fsdecode(b"\xff.json")):
        for done in (
            factwire("validate", factwire.folder / name),
            factwire("validate", factwire.file("{", name)),
        ):
            assert done.code == 2
            assert "\x1b" not in done.err
            assert done.err.count("\n") == 1


@pytest.mark.requirement("cli.validate.unreadable")
def test_a_line_that_is_too_long_is_refused_before_it_is_read(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.cli.fact_files.LINE_BYTES", 2_000)
    found = factwire.report(lines(GOOD[0]) + "x" * 2_001 + "\n")
    assert found["error"] == {
        "code": "unreadable_input",
        "line": 2,
        "message": "longer than 2000 bytes",
    }


@pytest.mark.requirement("cli.validate.unreadable")
def test_a_document_that_is_too_big_is_refused_with_advice(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.cli.fact_files.DOCUMENT_BYTES", 500)
    found = factwire.report(json.dumps(GOOD, indent=2))
    assert found["error"]["message"].endswith("write one fact per line")
