"""Words and classes: every list equals the specification's, every row is made of its words."""

import pytest

from factwire.facts import (
    CORRELATION_IDS,
    EDGE_CLASSES,
    KNOWN_CLASSES,
    RUNTIME_CLASSES,
    UI_CLASSES,
    kind_of,
    status_of,
    vocabulary,
)
from factwire.facts.classes.class_tables import CLASS_ALIASES
from factwire.facts.classes.specification import EventClass
from factwire.facts.classes.specification import row as define_row
from tests.facts import spec

LISTS = [
    ("KINDS", spec.KINDS),
    ("STATUSES", spec.STATUSES),
    ("OWNERS", spec.OWNERS),
    ("SCOPES", spec.SCOPES),
    ("PHASES", spec.PHASES),
    ("SURFACES", spec.SURFACES),
    ("PERSISTENCE", spec.PERSISTENCE),
    ("CONTROLS", spec.CONTROLS),
    ("TOPOLOGIES", spec.TOPOLOGIES),
    ("RUNTIME_ENTITIES", spec.RUNTIME_ENTITIES),
    ("ACTION_TYPES", spec.ACTION_TYPES),
    ("TOOL_STATES", spec.TOOL_STATES),
    ("TASK_STATES", spec.TASK_STATES),
    ("LEGACY_TERMINALS", spec.LEGACY_TERMINALS),
]


@pytest.mark.requirement("vocabulary.words")
@pytest.mark.parametrize(("name", "expected"), LISTS, ids=[name for name, _ in LISTS])
def test_a_list_of_words_is_the_one_of_the_specification(name: str, expected: list[str]):
    assert list(getattr(vocabulary, name)) == expected
    assert len(set(expected)) == len(expected)


@pytest.mark.requirement("vocabulary.words")
def test_there_are_thirteen_kinds():
    assert len(vocabulary.KINDS) == 13


@pytest.mark.requirement("facts.ids.list")
def test_every_correlation_id_of_the_specification_is_known():
    assert list(CORRELATION_IDS)[: len(spec.CORRELATION_IDS)] == spec.CORRELATION_IDS


@pytest.mark.requirement("vocabulary.runtime-classes")
def test_the_runtime_classes_are_those_of_the_specification():
    assert sorted(RUNTIME_CLASSES) == sorted(spec.RUNTIME_CLASSES)


@pytest.mark.requirement("vocabulary.ui-classes")
def test_the_ui_classes_are_those_of_the_specification():
    assert sorted(UI_CLASSES) == sorted(spec.UI_CLASSES)


@pytest.mark.requirement("vocabulary.runtime-classes")
def test_no_class_stands_twice_in_the_copy_of_the_specification():
    assert len(set(spec.RUNTIME_CLASSES)) == len(spec.RUNTIME_CLASSES)
    assert len(set(spec.UI_CLASSES)) == len(spec.UI_CLASSES)


@pytest.mark.requirement("classification.rows")
@pytest.mark.parametrize(
    "row",
    [
        *(pytest.param(row, id=f"runtime {name}") for name, row in RUNTIME_CLASSES.items()),
        *(pytest.param(row, id=f"edge {name}") for name, row in EDGE_CLASSES.items()),
        *(pytest.param(row, id=f"ui {name}") for name, row in UI_CLASSES.items()),
    ],
)
def test_a_row_is_made_of_words_of_the_vocabulary(row: EventClass):
    assert row.owner in spec.OWNERS
    assert row.scope in spec.SCOPES
    assert row.phase in spec.PHASES
    assert row.surface in spec.SURFACES
    assert row.persistence in spec.PERSISTENCE
    assert row.family == row.name.split(".")[0]


@pytest.mark.requirement("classification.rows")
def test_a_word_outside_the_vocabulary_is_a_mistake_in_a_table():
    with pytest.raises(ValueError, match="'nowhere' is not in the vocabulary"):
        define_row("a.b", "runtime run unknown nowhere snapshot")


@pytest.mark.requirement("classification.rows")
def test_a_row_with_a_missing_cell_is_a_mistake_in_a_table():
    with pytest.raises(ValueError, match="longer"):
        define_row("a.b", "runtime run unknown")


@pytest.mark.requirement("vocabulary.ui-classes")
def test_a_class_of_both_tables_is_the_runtimes():
    shared = set(RUNTIME_CLASSES) & set(UI_CLASSES)
    assert shared
    assert all(KNOWN_CLASSES[name] is RUNTIME_CLASSES[name] for name in shared)
    assert set(KNOWN_CLASSES) == set(RUNTIME_CLASSES) | set(EDGE_CLASSES) | set(UI_CLASSES)


def expected_status(event_class: str) -> str:
    terminals = {
        "turn.completed": "completed",
        "turn.failed": "failed",
        "turn.canceled": "canceled",
    }
    suffix = event_class.rpartition(".")[2]
    return terminals.get(event_class) or spec.STATUS_OF_SUFFIX.get(suffix, "pending")


@pytest.mark.requirement("facts.kind-default")
@pytest.mark.parametrize("name", [*spec.CLASSES, "message.x", "other"])
def test_the_kind_follows_from_the_first_word(name: str):
    assert kind_of(name) == spec.KIND_OF_PREFIX.get(name.partition(".")[0], "state")


@pytest.mark.requirement("facts.status-default")
@pytest.mark.parametrize("name", [*spec.CLASSES, "x.result", "other"])
def test_the_status_follows_from_the_last_word(name: str):
    assert status_of(name) == expected_status(name)


@pytest.mark.requirement("facts.status-default")
def test_a_canceled_turn_is_canceled_and_a_cancelled_task_pending():
    assert status_of("turn.canceled") == "canceled"
    assert status_of("task.cancelled") == "pending"


@pytest.mark.requirement("facts.aliases")
def test_the_aliases_are_those_of_the_specification():
    assert dict(CLASS_ALIASES) == spec.ALIASES
