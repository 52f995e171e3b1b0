"""Reading decoded JSON: a value of another type counts as absent, and nothing raises."""

import math
from typing import Any

import pytest

from factwire.facts.json_values import (
    finite_number_at,
    json_type,
    list_at,
    number_at,
    object_at,
    objects_of,
    text_at,
    texts_of,
    whole_number_at,
)

ODD: list[Any] = [None, True, 1, 1.5, "", "text", [], ["text"], {}, {"a": 1}]


def test_the_first_field_of_the_wanted_type_is_read():
    fields = {"a": 1, "b": "", "c": "text", "d": True, "e": 1.5, "f": 10**400, "g": math.inf}
    assert text_at(fields, "missing", "a", "b", "c") == "text"
    assert number_at(fields, "c", "d", "e", "a") == 1.5
    assert whole_number_at(fields, "c", "d", "e", "a") == 1
    assert finite_number_at(fields, "c", "d", "f", "g", "a") == 1.0
    assert text_at(fields, "a", "b") is number_at(fields, "c", "d") is None
    assert whole_number_at(fields, "d", "e") is finite_number_at(fields, "f", "g") is None


def test_lists_give_what_is_of_the_wanted_type_and_not_empty():
    assert texts_of(ODD) == ["text"]
    assert texts_of("text") == ["text"]
    assert objects_of(ODD) == [{"a": 1}]


@pytest.mark.parametrize("value", ODD)
def test_a_value_of_another_type_is_absent(value: Any):
    kind = json_type(value)
    assert list_at(value) is (value if kind == "array" else None)
    assert object_at(value) is (value if kind == "object" else None)
    if kind != "array":
        assert objects_of(value) == []
        assert texts_of(value) == (["text"] if value == "text" else [])
