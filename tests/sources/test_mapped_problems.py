"""Mapping files that cannot be used: every problem at once, each with its place."""

from inspect import signature

import pytest

from factwire.sources import FactBuilder
from factwire.sources.mapped import MappingError, read_mapping
from factwire.sources.mapped.mapping_values import FILE_BYTES, RULES
from factwire.sources.mapped.mapping_verbs import RESERVED

HEAD = 'mapping = 1\nname = "test"\ntype = "t"\n'


def problems_of(text: str) -> list[tuple[str, str | None]]:
    with pytest.raises(MappingError) as refused:
        read_mapping(text.encode(), "m.toml")
    return [(problem.code, problem.key) for problem in refused.value.problems]


@pytest.mark.requirement("sources.mapped.problems")
def test_a_mapping_is_refused_with_every_problem_at_once():
    text = """
    mapping = 2
    name = "No Name"
    colour = "red"
    framing = "frames"
    time = { value = 5, unit = "days" }

    [[on]]
    type = "a"
    becomes = "tool.startd"

    [[on]]
    type = 5
    becomes = "tool.started"
    ids = { toolCalId = "id", toolCallId = "a..b" }
    fields = { toolName = 5, args = { const = 2026-01-01 }, title = { const = 5 } }
    extra = { more = "x" }

    [[on]]
    becomes = "model.delta"
    wen = 1

    [[on]]
    type = "b"
    when = { a = { is = 1 }, b = [], "@.c" = 1 }
    becomes = "file.changed"
    fields = { path = { path = "p", json = "q" }, diffRef = "d" }
    extra = { path = "p", toolCallId = "id", self = "x", "a b" = "x", thingRef = "y" }

    [[on]]
    type = "c"
    becomes = "ignore"
    counts = "step"
    """
    assert problems_of(text) == [
        ("unknown_key", "colour"),
        ("wrong_value", "mapping"),
        ("wrong_value", "name"),
        ("wrong_value", "on[1].becomes"),
        ("wrong_type", "on[2].type"),
        ("wrong_type", "on[2].fields.toolName"),
        ("wrong_type", "on[2].fields.args.const"),
        ("wrong_type", "on[2].fields.title"),
        ("wrong_value", "on[2].extra"),
        ("unknown_key", "on[2].ids.toolCalId"),
        ("wrong_value", "on[2].ids.toolCallId"),
        ("unknown_key", "on[3].wen"),
        ("missing_key", "on[3].type"),
        ("missing_key", "on[3].fields.delta"),
        ("unknown_key", "on[4].when.a.is"),
        ("wrong_type", "on[4].when.b"),
        ("wrong_value", "on[4].when.@.c"),
        ("unknown_key", "on[4].fields.diffRef"),
        ("wrong_value", "on[4].fields.path"),
        ("wrong_value", "on[4].extra.path"),
        ("wrong_value", "on[4].extra.toolCallId"),
        ("wrong_value", "on[4].extra.self"),
        ("wrong_value", "on[4].extra.a b"),
        ("wrong_value", "on[4].extra.thingRef"),
        ("missing_key", "on[4]"),
        ("wrong_value", "on[5].counts"),
        ("wrong_value", "time.unit"),
        ("wrong_type", "time.value"),
        ("wrong_value", "framing"),
        ("missing_key", "type"),
    ]


@pytest.mark.requirement("sources.mapped.problems")
@pytest.mark.parametrize(
    ("rest", "code", "key"),
    [
        ("on = 5", "missing_key", "on"),
        ("on = [5]", "wrong_type", "on[1]"),
        ('on = [{ type = "a" }]', "missing_key", "on[1].becomes"),
        ('on = [{ type = "a", becomes = 5 }]', "wrong_type", "on[1].becomes"),
        ('on = [{ type = [], becomes = "ignore" }]', "wrong_type", "on[1].type"),
        ('on = [{ when = {}, becomes = "ignore" }]', "wrong_value", "on[1].when"),
        ('on = [{ when = 5, becomes = "ignore" }]', "wrong_type", "on[1].when"),
        ('on = [{ when = { a = {} }, becomes = "ignore" }]', "wrong_value", "on[1].when.a"),
        (
            'on = [{ when = { a = { exists = 1 } }, becomes = "ignore" }]',
            "wrong_type",
            "on[1].when.a.exists",
        ),
        ('on = [{ type = "a", becomes = "ignore", each = "@" }]', "wrong_value", "on[1].each"),
        ('on = [{ type = "a", becomes = "ignore", ids = 5 }]', "wrong_type", "on[1].ids"),
        (
            'on = [{ type = "a", becomes = "usage", counts = "day" }]',
            "wrong_value",
            "on[1].counts",
        ),
        ('on = [{ type = "a", becomes = "ignore" }]\ntitle = 5', "wrong_type", "title"),
        ('on = [{ type = "a", becomes = "ignore" }]\ntime = {}', "missing_key", "time.value"),
    ],
)
def test_a_rule_that_is_wrong_is_refused_with_its_place(rest: str, code: str, key: str):
    assert problems_of(HEAD + rest) == [(code, key)]


@pytest.mark.requirement("sources.mapped.problems")
@pytest.mark.parametrize(
    ("value", "code", "key"),
    [
        ("[]", "wrong_value", ""),
        ('"@x"', "wrong_value", ""),
        ('"@.x"', "wrong_value", ""),
        ("{ path = 5 }", "wrong_type", ".path"),
        ("{ path = 'a', map = 5 }", "wrong_type", ".map"),
        ("{ path = 'a', map = { a = inf } }", "wrong_type", ".map.a"),
        ("{ path = 'a', with = 'b' }", "unknown_key", ".with"),
        ("{ const = [{ a = 10:00:00 }] }", "wrong_type", ".const"),
        ("{ join = 5 }", "wrong_type", ".join"),
        ("{ join = ['a'], with = 5 }", "wrong_type", ".with"),
        ("{ fields = 5 }", "wrong_type", ".fields"),
        ("{ nothing = 5 }", "wrong_value", ""),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_with_its_place(value: str, code: str, key: str):
    rule = f'[[on]]\ntype = "a"\nbecomes = "tool.result"\nfields = {{ output = {value} }}\n'
    assert problems_of(HEAD + rule) == [(code, f"on[1].fields.output{key}")]


@pytest.mark.requirement("sources.mapped.problems")
@pytest.mark.parametrize("name", ["turn.submitted", "patch.started", "command.exited", "tool.args"])
def test_a_class_that_opens_or_closes_something_is_told_by_a_verb_or_not_at_all(name: str):
    text = f'{HEAD}[[on]]\ntype = "a"\nbecomes = "{name}"\n'
    assert problems_of(text) == [("wrong_value", "on[1].becomes")]


@pytest.mark.requirement("sources.mapped.problems")
@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_name_that_means_something_already_is_no_extra_field(name: str):
    text = f'{HEAD}[[on]]\ntype = "a"\nbecomes = "turn.failed"\nextra = {{ {name} = "x" }}\n'
    assert problems_of(text) == [("wrong_value", f"on[1].extra.{name}")]


@pytest.mark.requirement("sources.mapped.problems")
def test_no_extra_field_has_the_name_of_something_that_a_telling_takes():
    takes_more = [
        *(
            FactBuilder.begin_turn,
            FactBuilder.complete_turn,
            FactBuilder.fail_turn,
            FactBuilder.cancel_turn,
            FactBuilder.end_text,
        ),
        *(
            FactBuilder.report_tool_progress,
            FactBuilder.complete_tool,
            FactBuilder.fail_tool,
            FactBuilder.resolve_action,
        ),
        *(FactBuilder.start_subagent, FactBuilder.end_subagent),
    ]
    names = {name for method in takes_more for name in signature(method).parameters}
    assert {name for name in names if "_" not in name} <= RESERVED


@pytest.mark.requirement("sources.mapped.problems")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'mapping = 1\nname = "a\n', "line 2"),
        (b"\xff", "UTF-8"),
        (b"#" * (FILE_BYTES + 1), "bytes"),
        (b"a = " + b"[" * 100_000, "too deep"),
    ],
)
def test_a_file_that_is_no_mapping_says_why(data: bytes, message: str):
    with pytest.raises(MappingError, match=message) as refused:
        read_mapping(data, "m.toml")
    assert [problem.code for problem in refused.value.problems] == ["unreadable"]
    assert refused.value.code == "mapping_invalid"


@pytest.mark.requirement("sources.mapped.problems")
def test_a_mapping_has_bounds():
    rule = '[[on]]\ntype = "a"\nbecomes = "ignore"\n'
    assert problems_of(HEAD + rule * (RULES + 1)) == [("wrong_value", "on")]
    deep = '"a"'
    for _ in range(20):
        deep = f"[{deep}]"
    told_deep = f'[[on]]\ntype = "a"\nbecomes = "tool.result"\nfields = {{ output = {deep} }}\n'
    assert [code for code, _ in problems_of(HEAD + told_deep)] == ["wrong_value"]
    long = ".".join("a" * 40)
    path = f'[[on]]\ntype = "a"\nbecomes = "tool.result"\nfields = {{ output = "{long}" }}\n'
    assert problems_of(HEAD + path) == [("wrong_value", "on[1].fields.output")]
