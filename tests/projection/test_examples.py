"""The recorded streams of `examples/streams`: current, valid, projected as told, and complete."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from examples.streams.stories import STORIES
from examples.streams.stories.catalogue import catalogue, surfaces
from examples.streams.stories.recorder import Story
from examples.streams.stories.screen import screen
from factwire.facts import Fact, decode_fact, inspect_stream
from factwire.facts.classes.class_tables import RUNTIME_CLASSES
from factwire.facts.json_patch import JsonDocument
from factwire.facts.vocabulary import SURFACES, TASK_STATES, TOOL_STATES, UNKNOWN
from factwire.projection import Projection, ProjectionState, advance, project, thread_read_model
from factwire.projection.hydration import HydrationStatus
from factwire.projection.messages import Part

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams"

every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


def facts_of(story: Story) -> list[Fact]:
    """The facts as they stand in the folder."""
    lines = (FOLDER / f"{story.name}.ndjson").read_bytes().splitlines()
    return [decode_fact(line) for line in lines]


def test_the_folder_holds_what_the_stories_tell_and_nothing_else():
    streams = {f"{story.name}.ndjson": story.lines() for story in STORIES}
    kept = {path.name: path.read_bytes() for path in FOLDER.glob("*.ndjson")}
    assert kept.keys() == streams.keys()
    assert [name for name, lines in streams.items() if kept[name] != lines] == []
    assert (FOLDER / "README.md").read_text("utf-8") == catalogue(STORIES)


def test_the_program_writes_the_folder(tmp_path: Path):
    command = [sys.executable, FOLDER / "record.py", tmp_path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = [*FOLDER.glob("*.ndjson"), FOLDER / "README.md"]
    assert written == {path.name: path.read_bytes() for path in kept}


def test_no_fact_of_one_stream_has_the_id_of_a_fact_of_another():
    ids = [{fact.id for fact in facts_of(story)} for story in STORIES]
    assert len(set[str]().union(*ids)) == sum(map(len, ids))


@every_story
def test_a_stream_has_exactly_the_defects_that_it_is_about(story: Story):
    found = [
        issue.message.partition(":")[0] if issue.code == "sequence_violation" else issue.code
        for issue in inspect_stream(facts_of(story))
    ]
    assert tuple(found) == story.issues


@every_story
def test_a_screen_shows_at_the_end_what_the_story_says(story: Story):
    projection = Projection()
    projection.apply_all(facts_of(story))
    assert screen(projection.state) == story.expected
    if not projection.state.hydration.gaps:
        assert screen(project(facts_of(story))) == story.expected


@every_story
def test_a_copy_that_follows_the_changes_shows_the_same(story: Story):
    projection = Projection()
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    for fact in facts_of(story):
        advance(copy, projection.apply(fact))
    assert copy.root == msgspec.json.decode(projection.snapshot())


@every_story
def test_a_projection_that_is_restored_half_way_comes_to_the_same(story: Story):
    facts = facts_of(story)
    first = Projection()
    first.apply_all(facts[: len(facts) // 2])
    second = Projection.restore(first.checkpoint())
    second.apply_all(facts[len(facts) // 2 :])
    whole = Projection()
    whole.apply_all(facts)
    assert second.snapshot() == whole.snapshot()


Seen = dict[str, set[str]]


@cache
def collect_values() -> Seen:
    """Every value that some screen showed while some stream came in."""
    found: Seen = {}
    for story in STORIES:
        projection = Projection()
        _look(projection.state, found)
        for fact in facts_of(story):
            projection.apply(fact)
            _look(projection.state, found)
            found.setdefault("class", set()).add(fact.event_class or "")
        found.setdefault("surface", set()).update(surfaces(facts_of(story)))
        parts = (part for message in projection.state.messages for part in message.parts)
        found.setdefault("part", set()).update(type(part).__name__ for part in parts)
    return found


def _look(state: ProjectionState, found: Seen) -> None:
    found.setdefault("status", set()).add(state.runtime.status)
    found.setdefault("hydration", set()).add(state.hydration.status)
    found.setdefault("tool", set()).update(tool.state for tool in state.tools.values())
    found.setdefault("task", set()).update(task.status for task in state.tasks.values())


def test_together_the_streams_have_every_runtime_class():
    assert sorted(set(RUNTIME_CLASSES) - collect_values()["class"]) == []


def test_together_the_streams_show_every_part_of_a_message():
    assert collect_values()["part"] == {kind.__name__ for kind in get_args(Part)}


def test_together_the_streams_show_every_state_of_a_tool():
    assert collect_values()["tool"] == {*TOOL_STATES, UNKNOWN}


def test_together_the_streams_show_every_state_of_a_task():
    assert collect_values()["task"] == set(TASK_STATES)


def test_together_the_streams_show_every_status_of_a_run():
    ended = {"completed", "failed", "canceled"}
    assert collect_values()["status"] == {"idle", "running", "waiting", "blocked", *ended}


def test_together_the_streams_and_a_read_model_of_one_show_every_status_of_a_state():
    model = thread_read_model(project(facts_of(STORIES[0])))
    restored = Projection.from_read_model(model).state.hydration.status
    assert collect_values()["hydration"] == {*get_args(HydrationStatus)} - {"hydrating"}
    assert restored == "hydrating"


def test_together_the_streams_fill_every_surface():
    assert collect_values()["surface"] == {*SURFACES} - {UNKNOWN}
