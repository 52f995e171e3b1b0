"""Mapping files: what they can say, and what streams come to by them."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, encode_fact, inspect_stream, is_valid, verify
from factwire.facts.limits import NESTING_DEPTH
from factwire.sources import Source, convert_recording
from factwire.sources.mapped import read_mapped_source
from factwire.sources.mapped.mapping_rules import CLASSES, fields_of, ids_of, never_met
from factwire.sources.mapped.mapping_verbs import VERBS
from tests.cli.cli_commands import run
from tests.sources.recordings import FOLDER, RECORDINGS, facts_of, screen_of
from tests.sources.streams import classes

MAPPINGS = FOLDER.parent / "mappings"
CODEX = [path for path in RECORDINGS if path.parent.name == "codex-exec"]
TERMINALS = ("turn.completed", "turn.failed", "turn.canceled")
HEAD = 'mapping = 1\nname = "test"\ntype = "t"\n'
ODD: list[Any] = [None, True, 0, -1, 7.5, 1e300, "", "x", "\u202e", [], {}, [None], [["x"]]]


def lines_of(name: str) -> list[bytes]:
    return (MAPPINGS / name).read_bytes().splitlines(keepends=True)


def source_in(name: str) -> Source:
    return read_mapped_source((MAPPINGS / name).read_bytes(), name)


def check_facts(facts: list[Fact], about: Any = None) -> list[Fact]:
    """These facts, which are valid and whole."""
    issues = inspect_stream([encode_fact(fact) for fact in facts])
    assert is_valid(issues), (about, issues[:3])
    assert verify(facts) == [], about
    opened = [fact.turn_id for fact in facts if fact.event_class == "turn.started"]
    ended = [fact.turn_id for fact in facts if fact.event_class in TERMINALS]
    assert opened == ended, about
    return facts


def facts_from(rules: str, *items: dict[str, Any]) -> list[Fact]:
    """The facts of these items by these rules."""
    source = read_mapped_source((HEAD + rules).encode())
    lines = [msgspec.json.encode(item) + b"\n" for item in items]
    return check_facts(list(convert_recording(source, lines, thread_id="t")))


def value_of(value: str, item: dict[str, Any]) -> Any:
    """What a value takes from an item."""
    rule = f'[[on]]\ntype = "a"\nbecomes = "tool.result"\nfields = {{ output = {value} }}\n'
    facts = facts_from(rule, {"t": "a", **item})
    return next(fact for fact in facts if fact.event_class == "tool.result").payload.get("output")


@pytest.mark.requirement("sources.mapped.screen")
def test_the_stream_of_a_made_up_agent_shows_what_was_reviewed():
    facts = check_facts(
        list(convert_recording(source_in("tidy.toml"), lines_of("tidy.jsonl"), thread_id="tidy"))
    )
    reviewed = json.loads((MAPPINGS / "tidy.screen.json").read_text())
    assert json.loads(json.dumps(screen_of(facts))) == reviewed
    end = next(fact for fact in facts if fact.event_class == "turn.completed")
    assert end.payload == {"inputTokens": 320, "outputTokens": 45}
    assert (end.created_at, end.session_id) == ("2026-05-28T20:26:50.000Z", "s-41")


@pytest.mark.requirement("sources.mapped.codex")
@pytest.mark.parametrize("path", CODEX, ids=lambda path: path.stem)
def test_a_mapping_of_codex_tells_what_the_adapter_tells(path: Path):
    mapped = list(
        convert_recording(
            source_in("codex-exec.toml"), path.read_bytes().splitlines(), thread_id=path.stem
        )
    )
    adapted = facts_of(path)
    assert screen_of(check_facts(mapped)) == screen_of(adapted)
    # The mapping counts nothing: it is only the number of changed files that it cannot tell.
    assert [_without_summary(fact) for fact in mapped] == [_without_summary(f) for f in adapted]


def _without_summary(fact: Fact) -> Fact:
    payload = {name: value for name, value in fact.payload.items() if name != "summary"}
    is_result = fact.event_class == "tool.result"
    return msgspec.structs.replace(fact, payload=payload) if is_result else fact


@pytest.mark.requirement("sources.mapped.cut")
def test_a_mapped_stream_that_is_cut_anywhere_is_valid_and_closed():
    source, lines = source_in("tidy.toml"), lines_of("tidy.jsonl")
    for end in range(len(lines) + 1):
        facts = check_facts(list(convert_recording(source, lines[:end], thread_id="t")), end)
        if 2 <= end < len(lines):
            failed = next(fact for fact in facts if fact.event_class == "turn.failed")
            assert failed.payload["failureCategory"] == "stream_interrupted"


@pytest.mark.requirement("sources.mapped.same-ids")
def test_a_mapped_stream_told_twice_gives_the_same_facts():
    source, lines = source_in("tidy.toml"), lines_of("tidy.jsonl")
    first, second = (list(convert_recording(source, lines, thread_id="t")) for _ in range(2))
    assert first == second
    assert len({fact.id for fact in first}) == len(first)


@pytest.mark.fuzz
@pytest.mark.requirement("sources.mapped.hostile")
@pytest.mark.parametrize("name", ["tidy", "codex-exec"])
def test_odd_items_by_a_mapping_give_valid_facts_and_never_raise(name: str):
    source = source_in(f"{name}.toml")
    files = [MAPPINGS / "tidy.jsonl"] if name == "tidy" else CODEX
    items = [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
    for seed in range(120):
        chance = random.Random(seed)
        odd = [_mutate_item(chance, item) if chance.random() < 0.3 else item for item in items]
        if chance.random() < 0.3:
            chance.shuffle(odd)
        lines = [json.dumps(item).encode() + b"\n" for item in odd]
        check_facts(list(convert_recording(source, lines, thread_id="t")), seed)


def _mutate_item(chance: random.Random, item: dict[str, Any]) -> dict[str, Any]:
    """An item with some of its values, or of those within, replaced or dropped."""
    changed: dict[str, Any] = json.loads(json.dumps(item))
    for _ in range(chance.randint(1, 3)):
        holder = changed
        inner: list[dict[str, Any]] = [each for each in changed.values() if type(each) is dict]
        if inner and chance.random() < 0.6:
            holder = chance.choice(inner)
        if holder:
            name = chance.choice(list(holder))
            holder[name] = chance.choice(ODD)
            if chance.random() < 0.3:
                del holder[name]
    return changed


@pytest.mark.fuzz
@pytest.mark.requirement("sources.mapped.hostile")
def test_every_class_by_every_field_gives_valid_facts_whatever_an_item_holds():
    """All ids and fields of all classes are mapped at once, to values of any type, in any order."""
    names = [*sorted(CLASSES), "ids", "ignore", "usage"]
    rules = "".join(map(_whole_rule, names))
    source = read_mapped_source((HEAD + rules).encode())
    for seed in range(12):
        chance = random.Random(seed)
        chosen = chance.choices(names, k=len(names))
        items = [
            {"t": name, **{f"v{at}": chance.choice(ODD) for at in range(7)}} for name in chosen
        ]
        lines = [json.dumps(item).encode() + b"\n" for item in items]
        check_facts(list(convert_recording(source, lines, thread_id="t")), seed)


def _whole_rule(name: str) -> str:
    """A rule that maps whatever a class can take; fields that are named alike share a value."""
    ids = {key: f"v{at % 7}" for at, key in enumerate(ids_of(name))}
    fields = {key: f"v{at % 7}" for at, key in enumerate(fields_of(name))}
    verb = VERBS.get(name)
    extra = {"note": "v3"} if verb is None or verb.takes_extra else {}
    assert verb is not None or never_met(name, set(ids), {*fields, *extra}) is None, name
    tables = {"ids": ids, "fields": fields, "extra": extra}
    rows = "".join(f"{key} = {_inline(table)}\n" for key, table in tables.items() if table)
    return f'[[on]]\ntype = "{name}"\nbecomes = "{name}"\n{rows}\n'


def _inline(table: dict[str, str]) -> str:
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in table.items()) + " }"


@pytest.mark.requirement("sources.mapped.values")
@pytest.mark.parametrize(
    ("value", "item", "taken"),
    [
        ('"a.b"', {"a": {"b": 1}}, 1),
        ('"a.1.b"', {"a": [0, {"b": 2}]}, 2),
        ('"a.9"', {"a": [0]}, None),
        ('"a.b"', {"a": "text"}, None),
        ('"/a.b/c~1d"', {"a.b": {"c/d": 3}}, 3),
        ('"."', {"a": 1}, {"t": "a", "a": 1}),
        ('["a", "b"]', {"a": "", "b": "second"}, "second"),
        ('["a", { const = [1, "x"] }]', {"a": None}, [1, "x"]),
        ('{ path = "a", else = "none" }', {}, "none"),
        ('{ path = "a", map = { true = "yes", 2 = "two" }, else = "?" }', {"a": True}, "yes"),
        ('{ path = "a", map = { true = "yes", 2 = "two" }, else = "?" }', {"a": 2}, "two"),
        ('{ path = "a", map = { true = "yes", 2 = "two" }, else = "?" }', {"a": []}, "?"),
        ('{ join = ["a", "b"], with = "/" }', {"a": "x", "b": 2}, "x/2"),
        ('{ join = ["a", "b"] }', {"a": "x"}, None),
        ('{ fields = { one = "a", two = { const = 2 } } }', {"a": 1}, {"one": 1, "two": 2}),
        ('{ json = "a" }', {"a": '{"b": 1}'}, {"b": 1}),
        ('{ json = "a" }', {"a": "no {json"}, "no {json"),
        ('{ text = "a" }', {"a": 12}, "12"),
        ('{ lines = "a", take = "@.n" }', {"a": [{"n": "x"}, {}, {"n": 2}]}, "x\n2"),
        ('{ lines = "a", with = ", " }', {"a": ["x", "y"]}, "x, y"),
    ],
)
def test_a_value_is_taken_as_the_mapping_says(value: str, item: dict[str, Any], taken: Any):
    assert value_of(value, item) == taken


@pytest.mark.requirement("sources.mapped.conditions")
@pytest.mark.parametrize(
    ("condition", "item", "holds"),
    [
        ("a = 1", {"a": 1}, True),
        ("a = 1", {"a": True}, False),
        ("a = 1", {}, False),
        ('a = ["x", "y"]', {"a": "y"}, True),
        ('"a.b" = "x", c = true', {"a": {"b": "x"}, "c": True}, True),
        ('"a.b" = "x", c = true', {"a": {"b": "x"}}, False),
        ("a = { exists = true }", {"a": None}, False),
        ("a = { exists = false }", {"b": 1}, True),
        ('a = { not = ["x", "y"] }', {"a": "z"}, True),
        ('a = { not = "x" }', {}, True),
        ('a = { not = "x" }', {"a": "x"}, False),
    ],
)
def test_a_rule_is_about_the_items_its_conditions_hold_for(
    condition: str, item: dict[str, Any], holds: bool
):
    rule = f'[[on]]\nwhen = {{ {condition} }}\nbecomes = "run.status"\n'
    assert bool(classes(facts_from(rule, item), "run.status")) is holds


@pytest.mark.requirement("sources.mapped.conditions")
def test_each_element_is_told_for_which_the_conditions_hold():
    rule = """
    [[on]]
    type = "a"
    when = { "@.value.ok" = true }
    each = "states"
    becomes = "runtime.warning"
    fields = { code = "@.key", message = "@.value.say" }
    """
    states = {"one": {"ok": True, "say": "1"}, "two": {"ok": False}, "three": {"ok": True}}
    facts = facts_from(rule, {"t": "a", "states": states}, {"t": "a", "states": []})
    assert [fact.payload for fact in facts] == [{"code": "one", "message": "1"}, {"code": "three"}]


@pytest.mark.requirement("sources.mapped.ends")
def test_a_text_whose_end_nobody_tells_is_whole_when_its_turn_completes():
    rules = """
[[on]]
type = "say"
becomes = "model.delta"
fields = { delta = "text" }
[[on]]
type = "done"
becomes = "turn.completed"
[[on]]
type = "stop"
becomes = "turn.canceled"
"""
    reasons = {
        end: next(
            fact.payload.get("finishReason")
            for fact in facts_from(rules, {"t": "say", "text": "Hi"}, {"t": end})
            if fact.event_class == "model.completed"
        )
        for end in ("done", "stop")
    }
    assert reasons == {"done": None, "stop": "cancelled"}


SPOKEN = """
[[on]]
type = "think"
becomes = "reasoning.delta"
fields = { delta = "text" }
[[on]]
type = "say"
becomes = "model.delta"
ids = { messageId = "id" }
fields = { delta = "text" }
[[on]]
type = "said"
becomes = "model.completed"
[[on]]
type = "call"
becomes = "tool.started"
ids = { toolCallId = ["id", "other.id"] }
fields = { toolName = "name" }
[[on]]
type = "done"
becomes = "tool.result"
ids = { toolCallId = "id" }
fields = { output = "out" }
"""


@pytest.mark.requirement("sources.mapped.ids")
def test_what_has_no_id_is_numbered_and_what_follows_belongs_to_it():
    facts = facts_from(
        SPOKEN,
        {"t": "think", "text": "hm"},
        {"t": "say", "text": "a"},
        {"t": "say", "text": "b"},
        {"t": "said"},
        {"t": "say", "text": "c"},
        {"t": "call", "name": "one"},
        {"t": "call", "name": "two"},
        {"t": "done", "out": 2},
        {"t": "done", "out": 1},
    )
    spoken = [(f.message_id, f.payload) for f in facts if f.event_class == "model.completed"]
    assert spoken[0] == ("t:message-1", {"text": "ab"})
    assert spoken[1][0] == "t:message-2"
    assert [f.message_id for f in facts if f.event_class == "reasoning.delta"] == ["t:message-1"]
    results = [(f.tool_call_id, f.payload) for f in facts if f.event_class == "tool.result"]
    assert results == [
        ("t:tool-2", {"toolName": "two", "output": 2}),
        ("t:tool-1", {"toolName": "one", "output": 1}),
    ]


@pytest.mark.requirement("sources.mapped.ids")
def test_an_id_is_text_or_a_whole_number_and_falls_back():
    calls: list[dict[str, Any]] = [
        {"id": "a"},
        {"id": 7},
        {"id": "", "other": {"id": "b"}},
        {"id": [1]},
    ]
    facts = facts_from(SPOKEN, *({"t": "call", **call} for call in calls))
    opened = [fact.tool_call_id for fact in facts if fact.event_class == "tool.started"]
    assert opened == ["a", "7", "b", "t:tool-1"]


@pytest.mark.requirement("sources.mapped.times")
@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("iso", "2026-05-01T10:00:00+02:00", "2026-05-01T08:00:00.000Z"),
        ("iso", "2026-05-01T10:00:00.5Z", "2026-05-01T10:00:00.500Z"),
        ("iso", "2026-05-01T10:00:00", None),
        ("iso", "yesterday", None),
        ("iso", "0001-01-01T00:00:00+10:00", None),
        ("iso", 5, None),
        ("seconds", 1780000000.25, "2026-05-28T20:26:40.250Z"),
        ("seconds", True, None),
        ("seconds", 10**400, None),
        ("milliseconds", 1780000000250, "2026-05-28T20:26:40.250Z"),
        ("milliseconds", 1e300, None),
    ],
)
def test_a_time_is_taken_in_its_unit_or_not_at_all(unit: str, value: Any, shown: str | None):
    time = f'time = {{ value = "at", unit = "{unit}" }}\n'
    rule = '[[on]]\ntype = "a"\nbecomes = "run.status"\n'
    source = read_mapped_source((HEAD + time + rule).encode())
    lines = [json.dumps({"t": "a", "at": value}).encode()]
    facts = check_facts(
        list(convert_recording(source, lines, thread_id="t", at="2026-01-01T00:00:00Z"))
    )
    assert facts[0].created_at == (shown or "2026-01-01T00:00:00Z")


@pytest.mark.requirement("sources.mapped.usage")
@pytest.mark.parametrize(
    ("counts", "used"), [("turn", [30, 5]), ("step", [40, 5]), ("thread", [30, 5])]
)
def test_usage_is_of_a_step_of_a_turn_or_of_the_thread(counts: str, used: list[int]):
    rules = f"""
    [[on]]
    type = "begin"
    becomes = "turn.started"
    [[on]]
    type = ["use", "end"]
    becomes = "usage"
    counts = "{counts}"
    fields = {{ inputTokens = "in" }}
    [[on]]
    type = "end"
    becomes = "turn.completed"
    """
    last = 35 if counts == "thread" else 5
    facts = facts_from(
        rules,
        {"t": "begin"},
        {"t": "use", "in": 10},
        {"t": "end", "in": 30},
        {"t": "begin"},
        {"t": "end", "in": last},
    )
    ends = [fact.payload["inputTokens"] for fact in facts if fact.event_class == "turn.completed"]
    assert ends == used


@pytest.mark.requirement("sources.mapped.incomplete")
def test_an_item_that_lacks_what_its_fact_needs_is_a_warning_with_a_ref():
    rules = """
    [[on]]
    type = "file"
    becomes = "file.changed"
    ids = { artifactId = "name" }
    fields = { path = "name" }
    """
    say = {"t": "say", "text": 5}
    facts = facts_from(rules + SPOKEN, {"t": "file", "name": None}, say)
    assert [fact.payload["code"] for fact in facts] == ["incomplete_source_item"] * 2
    assert "artifactId" in facts[0].payload["message"]
    assert "delta" in facts[1].payload["message"]
    assert all(fact.ref_ids for fact in facts)


@pytest.mark.requirement("sources.mapped.incomplete")
def test_a_value_that_is_too_deep_to_be_written_is_left_out_with_a_warning():
    rule = """
    [[on]]
    type = "a"
    becomes = "tool.result"
    fields = { output = { fields = { inner = "v" } }, summary = "s" }
    """
    deep: Any = "x"
    for _ in range(NESTING_DEPTH - 2):
        deep = [deep]
    facts = facts_from(rule, {"t": "a", "v": deep, "s": "short"})
    result = next(fact for fact in facts if fact.event_class == "tool.result")
    assert result.payload == {"summary": "short"}
    assert facts[0].payload["code"] == "value_too_deep"


@pytest.mark.requirement("sources.mapped.unknown")
@pytest.mark.parametrize("item", [{"t": "new" * 1_000}, {"t": 5}, {}, {"t": None}, {"t": {}}])
def test_an_item_that_no_rule_is_about_is_a_warning_with_a_ref(item: dict[str, Any]):
    (warning,) = facts_from(SPOKEN, item)
    assert (warning.event_class, warning.payload["code"]) == (
        "runtime.warning",
        "unknown_source_item",
    )
    assert len(warning.payload["message"]) < 200
    assert warning.ref_ids


@pytest.mark.requirement("sources.mapped.ends")
def test_a_failure_before_any_turn_is_a_turn_and_one_after_it_ends_nothing_twice():
    rules = """
    [[on]]
    type = "error"
    becomes = "turn.failed"
    fields = { message = "text" }
    """
    facts = facts_from(rules, {"t": "error", "text": "first"}, {"t": "error", "text": "again"})
    assert classes(facts, "turn.") == ["turn.submitted", "turn.started", "turn.failed"]
    assert facts[-1].event_class == "runtime.error"
    assert facts[-1].payload["message"] == "again"


@pytest.mark.requirement("sources.mapped.conditions")
def test_rules_are_told_in_the_order_of_the_file_whatever_they_ask_for():
    whens = ['k = "x"', "n = 1", 'k = ["x", "y"]', 'k = ""', "k = { exists = true }", 'k = "z"']
    rules = "".join(
        f'[[on]]\ntype = "a"\nwhen = {{ {when} }}\nbecomes = "runtime.warning"\n'
        f'fields = {{ code = {{ const = "{at}" }} }}\n'
        for at, when in enumerate(whens)
    )
    for k, expected in {"x": "0124", "y": "124", "": "134", "z": "145", "other": "14"}.items():
        facts = facts_from(rules, {"t": "a", "k": k, "n": 1})
        assert "".join(fact.payload["code"] for fact in facts) == expected, k


@pytest.mark.requirement("sources.mapped.command")
def test_convert_takes_a_mapping_file(tmp_path: Path):
    settings = MAPPINGS / "tidy.jsonl"
    for name in ("tidy.toml", "mapping"):
        mapping = tmp_path / name
        mapping.write_bytes((MAPPINGS / "tidy.toml").read_bytes())
        done = run("convert", str(settings), "--from", str(mapping))
        assert done.code == 0, done.err
        facts = list(
            convert_recording(source_in("tidy.toml"), lines_of("tidy.jsonl"), thread_id="tidy")
        )
        assert done.out.encode().splitlines() == [encode_fact(fact) for fact in facts]


@pytest.mark.requirement("sources.mapped.command")
def test_convert_names_everything_that_is_wrong_with_a_mapping(tmp_path: Path):
    mapping = tmp_path / "bad.toml"
    mapping.write_text('mapping = 1\nname = "x"\nkolour = 1\n')
    done = run("convert", str(MAPPINGS / "tidy.jsonl"), "--from", str(mapping))
    assert (done.code, done.out) == (2, "")
    assert "unknown_key" in done.err
    assert "missing_key" in done.err


@pytest.mark.requirement("sources.mapped.command")
@pytest.mark.parametrize(
    ("name", "message"), [("none.toml", "cannot read the mapping"), ("none", "unknown_source")]
)
def test_a_mapping_that_is_not_there_is_said_to_be_missing(name: str, message: str):
    done = run("convert", str(MAPPINGS / "tidy.jsonl"), "--from", name)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
