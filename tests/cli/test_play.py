"""`factwire play`: a recorded run, watched on a terminal or printed as text."""

import io
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from factwire.cli import playback
from factwire.cli.play_command import build_frame, build_page, build_screen
from factwire.cli.playback import HELP, Pace, PlaybackControls, Player, parse_speed, recorded_pause
from factwire.cli.recordings import PlacedRow
from factwire.cli.terminal import KeyReader
from factwire.facts import RUNTIME_CLASSES, Fact
from factwire.projection import Projection
from tests.cli.cli_commands import Factwire, lines
from tests.cli.cli_recordings import HOSTILE, Recorder, Wire, facts, teamwork, turn
from tests.cli.journal_files import make


def place_rows(values: list[Wire]) -> list[PlacedRow]:
    return [PlacedRow(fact.sequence, fact) for fact in facts(values)]


def player_of(values: list[Wire]) -> Player:
    return Player(place_rows(values), values[0].get("threadId") if values else None)


def controls_of(values: list[Wire], speed: float = 1.0) -> PlaybackControls:
    player = player_of(values)
    return PlaybackControls(player, Pace(player, speed))


def long_run(turns: int) -> list[Wire]:
    record = Recorder("t1")
    for number in range(turns):
        ids: dict[str, Any] = {"turnId": f"turn_{number}", "messageId": f"m{number}"}
        record("turn.submitted", payload={"prompt": f"Question {number}"}, turnId=ids["turnId"])
        for _ in range(8):
            record("model.delta", payload={"delta": "word "}, **ids)
        record("turn.completed", "completed", turnId=ids["turnId"])
    return record.facts


def draw_screen(controls: PlaybackControls, width: int, height: int) -> list[str]:
    """The screen as lines of text."""
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None
    )
    shown = build_screen(build_frame(controls, "sequence"), width, height)
    rows = console.render_lines(shown, console.options.update_dimensions(width, height))
    return ["".join(segment.text for segment in row) for row in rows]


def print_page(controls: PlaybackControls) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(build_page(build_frame(controls, "sequence")))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.requirement("cli.play.plain")
def test_without_a_terminal_the_last_view_is_printed(factwire: Factwire):
    path = factwire.file(lines(*turn()))
    done = factwire("play", path)
    assert (done.code, done.err) == (0, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "Conversation",
        "  user  Fix the report, please.",
        "",
        "  assistant  Done.",
        "  [artifact: report.py]",
        "",
        "Process",
        "  ✓ thread.started",
        "  ✓ turn.completed",
        "  ✓ tool.result  bash  12 passed",
        "  ✓ action.resolved",
        "  ✓ report.py  artifact.created",
        "",
        "11/11  2026-06-10 09:00:11  live  sequence 11  ✓ completed · turn turn_1 completed",
    ]
    assert factwire("play", "-", "--speed", "max", stdin=lines(*turn()).encode()) == done


@pytest.mark.requirement("cli.play.plain")
def test_without_a_terminal_a_place_is_printed(factwire: Factwire):
    done = factwire("play", factwire.file(lines(*turn())), "--at", "7")
    assert (done.code, done.err) == (0, "")
    assert "Open actions\n  ? Run the tests?  high\n" in done.out
    assert "    act  tool_approval  requested by planner\n    $ pytest -q  in work\n" in done.out
    assert "\n7/11  2026-06-10 09:00:07  live  sequence 7  ■ waiting" in done.out


@pytest.mark.requirement("cli.play.plain")
def test_a_place_in_a_journal_is_its_seq(factwire: Factwire):
    path = make(factwire.folder / "runs.db", facts(teamwork()))
    done = factwire("play", path, "--thread", "main", "--at", "9")
    assert (done.code, done.err) == (0, "")
    assert "\n7/11  2026-06-10 09:00:01  live  seq 9  " in done.out
    assert "✓ Reviewer" not in done.out
    assert "▸ Reviewer  reviewer  on k2" in done.out
    assert factwire("play", path).code == 2


@pytest.mark.requirement("cli.play.plain")
def test_nothing_to_play_is_a_note(factwire: Factwire):
    done = factwire("play", "-")
    assert (done.code, done.err) == (0, "note: standard input contains no facts\n")
    assert done.out == "0/0  idle  · idle\n"


@pytest.mark.requirement("cli.play.pace")
@pytest.mark.parametrize("speed", ["fast", "-1", "nan", ""])
def test_a_speed_that_is_none_is_wrong_usage(factwire: Factwire, speed: str):
    done = factwire("play", factwire.file(lines(*turn())), f"--speed={speed}")
    assert (done.code, done.out) == (2, "")
    assert "expected a number of at least 0, or max" in done.err


@pytest.mark.requirement("cli.play.seek")
@given(jumps=st.lists(st.integers(-5, 400), max_size=12), data=st.data())
def test_a_place_looks_the_same_whichever_way_one_got_there(jumps: list[int], data: st.DataObject):
    run = long_run(35)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playback, "CHECKPOINT_FACTS", data.draw(st.sampled_from([1, 7, 64])))
        patch.setattr(playback, "CHECKPOINT_BYTES", data.draw(st.sampled_from([1, 10**9])))
        player = player_of(run)
        for jump in jumps:
            player.seek(jump)
    assert player.position == (min(max(jumps[-1], 0), len(run)) if jumps else 0)
    assert player.state == _state(run[: player.position])


@pytest.mark.requirement("cli.play.bounded-seek")
def test_going_back_replays_a_bounded_stretch():
    run = long_run(1_000)
    player = player_of(run)
    player.seek(len(run))
    assert player.applied == len(run)
    for position in (9_999, 5_000, 17, 9_000, 300, 0):
        before = player.applied
        player.seek(position)
        assert player.applied - before < playback.CHECKPOINT_FACTS


@pytest.mark.requirement("cli.play.bounded-seek")
def test_without_checkpoints_going_back_would_replay_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(playback, "CHECKPOINT_BYTES", 0)
    run = long_run(100)
    player = player_of(run)
    player.seek(len(run))
    player.seek(len(run) - 1)
    assert player.applied == 2 * len(run) - 1


@pytest.mark.requirement("cli.play.seek")
def test_facts_play_in_the_order_of_their_places():
    run = turn()
    player = player_of([*run[:3], run[4], run[3], *run[5:]])
    player.seek_place(4)
    assert (player.position, player.state.hydration.status) == (4, "live")
    player.seek_place(0)
    assert (player.position, player.latest) == (0, None)
    player.seek_place(99)
    assert player.at_end
    assert player.next is None


@pytest.mark.requirement("cli.play.seek")
def test_turns_are_gone_to_one_by_one():
    player = player_of(long_run(3))
    visited: list[int] = []
    for step in (1, 1, 1, 1, -1, -1, -1, -1):
        player.seek_turn(step)
        visited.append(player.position)
    assert visited == [1, 11, 21, 30, 21, 11, 1, 0]


def fact_at(created_at: str) -> Fact:
    return facts([{**turn()[0], "createdAt": created_at}])[0]


@pytest.mark.requirement("cli.play.pace")
@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ("2026-06-10T09:00:00Z", "2026-06-10T09:00:00.250Z", 0.25),
        ("2026-06-10T09:00:00Z", "2026-06-10T11:00:01+02:00", 1.0),
        ("2026-06-10T09:00:00", "2026-06-10T09:00:01Z", 1.0),
        ("2026-06-10T09:00:00Z", "2026-06-11T09:00:00Z", 2.0),
        ("2026-06-10T09:00:05Z", "2026-06-10T09:00:00Z", 0.0),
        ("2026-06-10T09:00:00Z", "unknown", 0.1),
        ("unknown", "2026-06-10T09:00:00Z", 0.1),
        ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", 0.1),
    ],
)
def test_a_pause_is_the_recorded_one_within_bounds(before: str, after: str, seconds: float):
    assert recorded_pause(fact_at(before), fact_at(after)) == seconds


@pytest.mark.requirement("cli.play.pace")
def test_facts_come_when_they_are_due():
    player = player_of(turn())
    pace = Pace(player, 2.0)
    assert (pace.is_playing, pace.wait(0), pace.advance(5)) == (False, None, False)
    pace.play(100.0)
    seen: list[tuple[float, int]] = []
    for now in (100.0, 100.4, 100.5, 101.0, 101.2):
        pace.advance(now)
        seen.append((now, player.position))
    assert seen == [(100.0, 1), (100.4, 1), (100.5, 2), (101.0, 3), (101.2, 3)]
    assert pace.wait(101.2) == pytest.approx(0.3)
    pace.change_speed(1, 101.2)
    assert (pace.speed, pace.wait(101.2)) == (4.0, pytest.approx(0.25))
    pace.pause()
    assert pace.wait(200) is None


@pytest.mark.requirement("cli.play.pace")
def test_as_fast_as_possible_comes_to_the_end_and_starts_over():
    player = player_of(long_run(30))
    pace = Pace(player, parse_speed("max"))
    pace.play(1.0)
    while pace.advance(1.0):
        assert player.position % playback._BATCH == 0 or player.at_end
    assert (player.at_end, pace.is_playing) == (True, False)
    pace.play(2.0)
    assert (player.position, pace.is_playing) == (0, True)
    assert parse_speed("0") == parse_speed(0) == math.inf


@pytest.mark.requirement("cli.play.pace")
def test_what_was_missed_while_asleep_is_not_raced_through():
    player = player_of(long_run(30))
    pace = Pace(player, 1.0)
    pace.play(0.0)
    pace.advance(10_000.0)
    assert player.position == 1


@pytest.mark.requirement("cli.play.keys")
def test_bytes_become_keys_in_pieces_of_any_size():
    sent = (
        b"\x1b[C\x1bOD\x1b[A\x1b[B\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[1;5C +-g7\r?q\x7f\xc3\xa9\x1b[99~"
    )
    keys = [
        *("right", "left", "up", "down", "pageup", "pagedown", "home", "end", "right"),
        *("space", "+", "-", "g", "7", "enter", "?", "q", "backspace"),
    ]
    assert KeyReader().feed(sent) == keys
    reader = KeyReader()
    assert [key for byte in sent for key in reader.feed(bytes([byte]))] == keys
    assert (reader.feed(b"\x1b"), reader.has_partial_key, reader.flush()) == ([], True, ["escape"])
    assert reader.feed(b"\x1bq") == ["escape", "q"]


@pytest.mark.requirement("cli.play.keys")
@given(st.lists(st.binary(max_size=8), max_size=20))
def test_no_bytes_are_too_strange(pieces: list[bytes]):
    reader, controls = KeyReader(), controls_of(turn())
    for piece in pieces:
        for key in [*reader.feed(piece), *reader.flush()]:
            controls.press(key, 0.0)
    assert 0 <= controls.player.position <= 11


@pytest.mark.requirement("cli.play.keys")
@pytest.mark.parametrize(
    ("keys", "position"),
    [
        ("right right left", 1),
        ("down up right", 1),
        ("pagedown pagedown", 11),
        ("end pageup", 1),
        ("end home", 0),
        ("g 7 enter", 7),
        ("g 1 0 backspace enter", 1),
        ("g 9 escape right", 1),
        ("g - 4 enter", 0),
        ("g enter right", 1),
        ("g 5 x enter", 5),
        ("g 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 enter", 11),
    ],
)
def test_keys_go_to_places(keys: str, position: int):
    run = long_run(2)[:11]
    controls = controls_of(run)
    for key in keys.split():
        controls.press(key, 0.0)
    assert (controls.player.position, controls.pace.is_playing) == (position, False)
    assert controls.player.state == _state(run[:position])


def _state(values: list[Wire]) -> Any:
    projection = Projection("t1")
    projection.apply_all(facts(values))
    return projection.state


@pytest.mark.requirement("cli.play.keys")
def test_keys_pause_change_the_speed_help_and_quit():
    controls = controls_of(turn())
    controls.press("space", 0.0)
    assert controls.pace.is_playing
    controls.press("right", 0.0)
    assert not controls.pace.is_playing
    for key, speed in (("+", 2.0), ("=", 4.0), ("-", 2.0)):
        controls.press(key, 0.0)
        assert controls.pace.speed == speed
    for _ in range(20):
        controls.press("+", 0.0)
    assert controls.pace.speed == math.inf
    for _ in range(20):
        controls.press("-", 0.0)
    assert controls.pace.speed == 0.1
    controls.press("?", 0.0)
    assert "quit" in "\n".join(draw_screen(controls, 80, 24))
    assert all(keys in "\n".join(draw_screen(controls, 80, 24)) for keys, _ in HELP)
    controls.press("x", 0.0)
    assert (controls.helping, controls.ended) == (False, False)
    controls.press("q", 0.0)
    assert controls.ended


@pytest.mark.requirement("cli.play.view")
def test_a_screen_shows_conversation_process_approvals_and_position():
    controls = controls_of(turn())
    controls.player.seek(7)
    shown = "\n".join(draw_screen(controls, 120, 40))
    for words in (
        "Conversation",
        "Process",
        "Approvals",
        "assistant  Done.",
        "requested by planner",
    ):
        assert words in shown
    assert "$ pytest -q" in shown
    assert "‖ 7/11  2026-06-10 09:00:07  1×  live  sequence 7  ■ waiting" in shown
    assert "Team" not in shown
    controls.press("right", 0.0)
    assert "Approvals" not in "\n".join(draw_screen(controls, 120, 40))
    controls.press("g", 0.0)
    controls.press("3", 0.0)
    assert "go to sequence 3" in draw_screen(controls, 120, 40)[-2]


@pytest.mark.requirement("cli.play.view")
def test_a_team_is_seen_when_there_is_one():
    controls = controls_of([fact for fact in teamwork() if fact["threadId"] == "main"])
    controls.press("end", 0.0)
    for width in (120, 60):
        shown = "\n".join(draw_screen(controls, width, 40))
        assert "Team" in shown
        assert "Writer  subagent  on k1" in shown
        assert "task Write it" in shown
        assert "handoff Writer → Reviewer" in shown


@pytest.mark.requirement("cli.play.sizes")
@pytest.mark.parametrize("height", [1, 2, 5, 24, 60])
@pytest.mark.parametrize("width", [1, 8, 60, 99, 100, 240])
def test_every_size_is_filled_and_none_overflows(width: int, height: int):
    controls = controls_of([fact for fact in teamwork() if fact["threadId"] == "main"])
    controls.press("end", 0.0)
    rows = draw_screen(controls, width, height)
    assert len(rows) == height
    assert all(len(row) <= width for row in rows)


@pytest.mark.requirement("cli.play.sizes")
def test_the_newest_of_a_long_conversation_is_seen():
    run = turn(say="\n".join(f"line {number}" for number in range(500)))
    controls = controls_of(run)
    controls.press("end", 0.0)
    shown = "\n".join(draw_screen(controls, 60, 24))
    assert "line 499" in shown
    assert "line 100" not in shown


@pytest.mark.requirement("cli.play.harmless")
def test_text_of_facts_cannot_steer_the_terminal():
    run = turn(say=HOSTILE, title=HOSTILE)
    for fact in run:
        fact |= {"title": HOSTILE, "createdAt": HOSTILE, "status": HOSTILE}
    run[6]["payload"] = {"prompt": HOSTILE, "command": {HOSTILE: 1}, "severity": HOSTILE}
    controls = controls_of(run)
    for position in range(12):
        controls.player.seek(position)
        shown = [
            *draw_screen(controls, 120, 40),
            *draw_screen(controls, 60, 24),
            *print_page(controls).split("\n"),
        ]
        assert all(row.isprintable() for row in shown)


SCRAPS = st.sampled_from([HOSTILE, "a", "t1", "", "[/red]", "2026-06-10T09:00:00Z", "x" * 300])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | SCRAPS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCRAPS, inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["command", "prompt", "progress", "total", "name", "status", "delta", "text", "blockedBy"]
IDS = ["turnId", "toolCallId", "actionId", "subagentId", "taskId", "handoffId", "artifactId"]


@pytest.mark.requirement("cli.play.harmless")
@given(st.data())
def test_nothing_in_a_fact_ends_the_command(data: st.DataObject):
    record = Recorder("t1")
    for _ in range(data.draw(st.integers(0, 8))):
        name = data.draw(st.sampled_from(sorted(RUNTIME_CLASSES)) | SCRAPS.filter(bool))
        fields = st.sampled_from(FIELDS) | SCRAPS
        payload = data.draw(st.dictionaries(fields, VALUES, max_size=5))
        ids = {field: data.draw(SCRAPS) for field in IDS}
        fact = record(name, data.draw(SCRAPS), title=data.draw(SCRAPS), payload=payload, **ids)
        fact["createdAt"] = data.draw(SCRAPS)
    controls = controls_of(record.facts, speed=math.inf)
    controls.press("space", 0.0)
    while controls.pace.advance(0.0):
        pass
    controls.press("left", 0.0)
    shown = [
        *draw_screen(controls, 120, 40),
        *draw_screen(controls, 20, 6),
        *print_page(controls).split("\n"),
    ]
    assert all(row.isprintable() for row in shown)
