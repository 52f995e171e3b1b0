"""The table of frames, held in both directions: each row is sent or taken in a test that names it,
and nothing can be sent that is not in it.

Whoever emits a frame moves its row from `NOT_EMITTED` to `EMITTED_IN`, with the test that waits for
it. `HubClient` checks each frame that any test receives against the table.
"""

import ast
from pathlib import Path

import pytest

from factwire.hub.frames.frame_types import (
    FRAMES,
    REQUESTS,
    AuthFail,
    DeviceKicked,
    Direction,
    FramePayload,
)
from factwire.hub.frames.hub_asyncapi import build_asyncapi, list_frames
from factwire.hub.frames.socket_frames import FrameBatch, encode_single
from factwire.serving.streams.frame_encoder import FrameReader

pytestmark = pytest.mark.requirement("hub.socket.frames")

TESTS = Path(__file__).parent
DIRECTIONS: tuple[Direction, ...] = ("hub_to_client", "client_to_hub", "hub_to_edge", "edge_to_hub")

_SOCKET = "test_hub_socket.py::test_"
_DEVICE = f"{_SOCKET}a_device_speaks_with_its_handlers_and_gets_no_events_of_people"
_TYPING = f"{_SOCKET}typing_reaches_the_other_members_and_is_kept_nowhere"
_SCREENS = f"{_SOCKET}screens_come_and_go_once_however_many_sockets_they_have"
_TOLD = "test_told_clients.py::test_"
_BOUND = f"{_SOCKET}frames_that_come_too_fast_are_refused_and_a_flood_ends_the_socket"
_CHATS = "test_chat_law.py::test_an_old_screen_and_later_events_are_a_new_screen"

EMITTED_IN: dict[str, str] = {
    "auth": _BOUND,
    "auth.ok": f"{_SOCKET}no_forgery_opens_a_socket",
    "auth.fail": _BOUND,
    "error": "test_hub_socket.py::answer_at_once",
    "typing": _TYPING,
    "device.online": _SCREENS,
    "device.offline": _SCREENS,
    "device.kicked": f"{_SOCKET}a_second_socket_of_a_device_ends_the_first",
    "edge.online": _DEVICE,
    "edge.offline": _DEVICE,
    **dict.fromkeys(
        (
            *("friend.request", "friend.request_ended", "friend.accepted", "friend.removed"),
            *("session.created", "session.dissolved", "session.info_updated"),
            *("session.member_joined", "session.member_left"),
            *("message.new", "message.edited", "message.recall", "message.pin", "message.unpin"),
            *("message.reaction", "message.read"),
        ),
        f"{_TOLD}a_friend_is_told_what_happens_in_chats",
    ),
    **dict.fromkeys(
        ("device.registered", "edge.registered", "grant.created", "grant.revoked"),
        f"{_TOLD}people_are_told_of_devices_and_of_what_is_shared",
    ),
    **dict.fromkeys(
        ("agent.done", "agent.failed", "end.ack"),
        f"{_TOLD}a_device_gets_tasks_and_tells_how_they_ended",
    ),
    **dict.fromkeys(
        ("agent.cancel", "agent.timeout", "agent.control"),
        f"{_TOLD}a_device_is_told_to_stop_and_what_was_decided",
    ),
    **dict.fromkeys(
        ("edge.heartbeat", "relay.command.created", "relay.command.acknowledged"),
        f"{_TOLD}a_device_answers_what_is_relayed_and_says_that_it_is_well",
    ),
    **dict.fromkeys(("agent.dispatch", "delivery.ack"), "test_told_clients.py::dispatch"),
    **dict.fromkeys(("sync.event.uploaded", "sync.ack"), "test_told_clients.py::synchronize"),
    **dict.fromkeys(
        ("notification.new", "notification.updated", "approval.updated"),
        "test_approvals.py::replay",
    ),
    "agent.stream": "test_link_live.py::test_a_task_runs_on_its_device_and_is_told_as_the_edge_"
    "tells_it",
    **dict.fromkeys(
        ("cloud.runner.allocated", "cloud.runner.stopping", "cloud.runner.released"),
        "test_runners.py::test_a_task_is_done_on_a_runner_that_is_started_for_it_and_released",
    ),
    **dict.fromkeys(("team.updated", "team.run.updated"), "test_team_live.py::start"),
    **dict.fromkeys(
        (
            *("team.removed", "team.route.decided", "team.route.rejected"),
            *("team.task.created", "team.task.updated", "team.approval.decided"),
            *("assignment.created", "assignment.dispatched", "assignment.completed"),
            *("assignment.failed", "assignment.cancelled"),
        ),
        "test_team_live.py::test_a_team_on_a_real_device_delegates_reviews_approves_and_finishes",
    ),
    "assignment.merge_updated": "test_team_files.py::"
    "test_approved_work_is_merged_once_and_its_worktree_is_removed",
}
"""Type → the file and the test, or a function of its, in which the Hub emits or takes it."""

NOT_EMITTED: dict[str, str] = {}
"""Type → the part of the Hub whose test is to emit or take it; empty once all are there."""


def test_each_row_of_the_table_is_emitted_or_listed_as_missing():
    assert EMITTED_IN.keys() | NOT_EMITTED.keys() == FRAMES.keys() | REQUESTS.keys()
    assert EMITTED_IN.keys() & NOT_EMITTED.keys() == set()


def test_each_emitter_is_a_test_that_names_the_frame():
    for type_, place in EMITTED_IN.items():
        name, _, test = place.partition("::")
        text = (TESTS / name).read_text("utf-8")
        found = [
            ast.get_source_segment(text, node)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == test
        ]
        assert found, place
        assert f'"{type_}"' in str(found[0]), f"{place} does not name {type_}"


def test_nothing_is_sent_that_is_not_in_the_table():
    class Unheard(FramePayload, frozen=True, kw_only=True):
        pass

    with pytest.raises(KeyError):
        encode_single("unheard.of", Unheard(), "hub_to_client")
    with pytest.raises(TypeError):
        encode_single("auth.fail", Unheard(), "hub_to_client")
    with pytest.raises(TypeError):
        encode_single("agent.cancel", AuthFail(reason=""), "hub_to_edge")
    kicked = DeviceKicked(device_id="dev_1", reason="")
    with pytest.raises(TypeError):
        encode_single("device.kicked", kicked, "edge_to_hub")


@pytest.mark.parametrize("text", ["", "100 % of %b and %d", "%" * 37, "ü" * 200, "x" * 70_000])
@pytest.mark.parametrize("first", [1, 250, 99_999_999_999])
def test_frames_are_numbered_whatever_is_in_them(text: str, first: int):
    single = encode_single("auth.fail", AuthFail(reason=text), "hub_to_client")
    batch = FrameBatch([0] * 10, [*single.frames] * 10)
    found = list(FrameReader().feed(batch.number(first)))
    shown = '{"type":"auth.fail","seq_id":%12d,"payload":{"reason":"%s"}}'
    assert [each.decode() for each in found] == [shown % (first + n, text) for n in range(10)]


def test_a_batch_without_what_was_read_keeps_the_rest():
    [frame] = encode_single("auth.fail", AuthFail(reason="r"), "hub_to_client").frames
    batch = FrameBatch([3, 5, 8], [frame] * 3)
    assert batch.after(2) is batch
    assert [getattr(batch.after(seq), "seqs", None) for seq in (3, 7, 8)] == [[5, 8], [8], None]


def test_the_asyncapi_document_has_exactly_the_frames_of_the_table():
    document = build_asyncapi()
    messages, schemas = document["components"]["messages"], document["components"]["schemas"]
    for direction in DIRECTIONS:
        operation = document["operations"][direction]
        listed = [each["$ref"].rpartition("/")[2] for each in operation["messages"]]
        assert {messages[name]["name"] for name in listed} == list_frames(direction).keys()
        for name in listed:
            schema = messages[name]["payload"]["properties"]
            payload = list_frames(direction)[messages[name]["name"]]
            assert schema["payload"]["$ref"] == f"#/components/schemas/{payload.__name__}"
            assert payload.__name__ in schemas
    assert set(document["channels"]["client"]["messages"]) == set(messages)
