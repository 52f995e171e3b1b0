"""JSON Patch as RFC 6902 states it, pointers as RFC 6901 does, and `append`, which is ours."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts.json_patch import InvalidPatch, JsonDocument, escape_key
from tests.facts.strategies import json_values
from tests.projection.fact_maker import as_text

Patch = list[dict[str, Any]]

APPENDIX: dict[str, tuple[Any, Patch, Any]] = {
    "A.1 adding an object member": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"baz": "qux", "foo": "bar"},
    ),
    "A.2 adding an array element": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "A.3 removing an object member": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "remove", "path": "/baz"}],
        {"foo": "bar"},
    ),
    "A.4 removing an array element": (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    "A.5 replacing a value": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    "A.6 moving a value": (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    "A.7 moving an array element": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "A.8 testing a value: success": (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    "A.10 adding a nested member object": (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    "A.11 ignoring unrecognized elements": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    "A.14 escape ordering": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    "A.16 adding an array value": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
    "4.1 the root may be replaced": (
        {"foo": "bar"},
        [{"op": "add", "path": "", "value": [1]}],
        [1],
    ),
    "4.1 an existing member is replaced": (
        {"foo": "bar"},
        [{"op": "add", "path": "/foo", "value": None}],
        {"foo": None},
    ),
    "4.1 adding at the end by index": (
        {"foo": [1]},
        [{"op": "add", "path": "/foo/1", "value": 2}],
        {"foo": [1, 2]},
    ),
    "4.4 a value may be moved onto itself": (
        {"foo": 1},
        [{"op": "move", "from": "/foo", "path": "/foo"}],
        {"foo": 1},
    ),
    "4.6 numbers are equal by value": (
        {"foo": 1},
        [{"op": "test", "path": "/foo", "value": 1.0}],
        {"foo": 1},
    ),
    "4.6 the order of members does not matter": (
        {"foo": {"a": 1, "b": [None]}},
        [{"op": "test", "path": "/foo", "value": {"b": [None], "a": 1}}],
        {"foo": {"a": 1, "b": [None]}},
    ),
    "an empty key": (
        {"": {"": 1}},
        [{"op": "replace", "path": "//", "value": 2}],
        {"": {"": 2}},
    ),
    "null is a value": (
        {},
        [{"op": "add", "path": "/a", "value": None}],
        {"a": None},
    ),
}

REFUSED: dict[str, tuple[Any, Patch]] = {
    "A.9 testing a value: error": ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "b"}]),
    "A.12 adding to a nonexistent target": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz/bat", "value": "qux"}],
    ),
    "A.15 comparing strings and numbers": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": "10"}],
    ),
    "true is not one": ({"a": 1}, [{"op": "test", "path": "/a", "value": True}]),
    "true is not one, deeper": (
        {"a": [{"b": 1}]},
        [{"op": "test", "path": "/a", "value": [{"b": True}]}],
    ),
    "null is not absence": ({}, [{"op": "test", "path": "/a", "value": None}]),
    "no such operation": ({}, [{"op": "spam", "path": "/a", "value": 1}]),
    "no operation": ({}, [{"path": "/a", "value": 1}]),
    "an operation that is no text": ({}, [{"op": [], "path": "/a", "value": 1}]),
    "no path": ({}, [{"op": "add", "value": 1}]),
    "a path that is no text": ({}, [{"op": "add", "path": 5, "value": 1}]),
    "no value": ({}, [{"op": "add", "path": "/a"}]),
    "nothing to take from": ({"a": 1}, [{"op": "copy", "path": "/b"}]),
    "a relative path": ({"a": 1}, [{"op": "remove", "path": "a"}]),
    "a tilde alone": ({"a~": 1}, [{"op": "remove", "path": "/a~"}]),
    "an unknown escape": ({"~2": 1}, [{"op": "remove", "path": "/~2"}]),
    "a leading zero": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/01"}]),
    "a negative index": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}]),
    "digits of another script": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/\u0661"}]),
    "a name in a list": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/x"}]),
    "past the end": ({"a": [1]}, [{"op": "replace", "path": "/a/1", "value": 2}]),
    "far past the end": ({"a": [1]}, [{"op": "add", "path": "/a/" + "9" * 5_000, "value": 2}]),
    "the place after the last": ({"a": [1]}, [{"op": "replace", "path": "/a/-", "value": 2}]),
    "into a text": ({"a": "text"}, [{"op": "add", "path": "/a/0", "value": 2}]),
    "into a number": ({"a": 5}, [{"op": "test", "path": "/a/b/c", "value": 2}]),
    "removing the root": ({"a": 5}, [{"op": "remove", "path": ""}]),
    "moving into itself": ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b"}]),
    "replacing nothing": ({}, [{"op": "replace", "path": "/a", "value": 1}]),
    "appending to a number": ({"a": 1}, [{"op": "append", "path": "/a", "value": "1"}]),
    "appending a number": ({"a": "1"}, [{"op": "append", "path": "/a", "value": 1}]),
    "appending to nothing": ({}, [{"op": "append", "path": "/a", "value": "1"}]),
}

UNDONE: Patch = [
    {"op": "add", "path": "/new", "value": 1},
    {"op": "replace", "path": "/first", "value": 1},
    {"op": "remove", "path": "/first"},
    {"op": "remove", "path": "/list/0"},
    {"op": "add", "path": "/list/1", "value": 9},
    {"op": "replace", "path": "/list/0", "value": 8},
    {"op": "move", "from": "/list/1", "path": "/first"},
    {"op": "copy", "from": "/list", "path": "/list/-"},
    {"op": "append", "path": "/text", "value": "more"},
    {"op": "add", "path": "", "value": {"all": "new"}},
]


@pytest.mark.requirement("projection.json-patch.standard")
@pytest.mark.parametrize("name", APPENDIX)
def test_the_standards_examples_come_out_as_it_says(name: str):
    before, patch, after = APPENDIX[name]
    document = JsonDocument(deepcopy(before))
    document.patch(patch)
    assert as_text(document.root) == as_text(after)


@pytest.mark.requirement("projection.json-patch.standard")
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_standard_does_not_allow_fails(name: str):
    before, patch = REFUSED[name]
    document = JsonDocument(deepcopy(before))
    with pytest.raises(InvalidPatch):
        document.patch(patch)
    assert as_text(document.root) == as_text(before)


@pytest.mark.requirement("projection.json-patch.whole")
@pytest.mark.parametrize("count", range(1, len(UNDONE) + 1))
def test_a_patch_that_fails_half_way_is_taken_back_whole(count: int):
    before = {"first": 0, "list": [1, 2, 3], "text": "t", "last": None}
    document = JsonDocument(deepcopy(before))
    with pytest.raises(InvalidPatch):
        document.patch([*UNDONE[:count], {"op": "test", "path": "/none", "value": 1}])
    assert document.root == before
    assert list(document.root) == list(before)


@pytest.mark.requirement("projection.json-patch.append")
def test_append_adds_to_the_end_of_a_text():
    document = JsonDocument({"a": ["x", "y"]})
    document.patch([{"op": "append", "path": "/a/1", "value": " and z"}])
    assert document.root == {"a": ["x", "y and z"]}


@pytest.mark.requirement("projection.json-patch.whole")
def test_a_value_that_was_added_is_the_documents_own():
    value, document = {"list": [1]}, JsonDocument({})
    add = {"op": "add", "path": "/a", "value": value}
    copy = {"op": "copy", "from": "/a", "path": "/b"}
    document.patch([add, copy, {"op": "add", "path": "/b/list/-", "value": 2}])
    assert value == {"list": [1]}
    assert document.root == {"a": {"list": [1]}, "b": {"list": [1, 2]}}


@pytest.mark.requirement("projection.json-patch.pointers")
@given(st.dictionaries(st.text(max_size=4), json_values, min_size=1, max_size=4), json_values)
def test_every_key_can_be_pointed_at(table: dict[str, Any], value: Any):
    for key in table:
        document = JsonDocument({"in": deepcopy(table)})
        document.patch([{"op": "replace", "path": f"/in/{escape_key(key)}", "value": value}])
        assert as_text(document.root) == as_text({"in": {**table, key: value}})
        assert as_text(document.at(f"/in/{escape_key(key)}")) == as_text(value)
