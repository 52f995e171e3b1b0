"""The control channel: what it does for its user, and what hostile clients get from it."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import Runtime
from factwire.runtime.control import (
    REFUSALS,
    CancelReply,
    CancelRequest,
    ControlRefusal,
    ControlServer,
    ControlUnavailable,
    DecideReply,
    DecideRequest,
    Malformed,
    NoAnswer,
    NobodyRunning,
    StatusReply,
    StatusRequest,
    ThreadStatus,
    control_client,
    decode_answer,
    decode_request,
    encode,
)
from factwire.runtime.control import control_messages as control_limits
from factwire.runtime.control.control_client import list_running, send_request
from tests.runtime import agents
from tests.runtime.agents import (
    SHOWN_HASH,
    Script,
    ask_and_obey,
    echo,
    endless,
    open_action,
    wait_for_end,
)

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def run_controlled(
    script: Script, data: Path, **server: Any
) -> AsyncGenerator[tuple[Runtime, ControlServer]]:
    async with (
        agents.run_agent(script, data) as runtime,
        ControlServer(runtime, data, **server) as control,
    ):
        yield runtime, control


async def raw(control: ControlServer, *pieces: bytes, end: bool = False) -> bytes:
    """What a client that says exactly this hears."""
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connecting.settimeout(0)
    assert control.path
    with control_client.shorten_path(control.path) as address:
        await asyncio.get_running_loop().sock_connect(connecting, address)
    reader, writer = await asyncio.open_connection(sock=connecting)
    async with asyncio.timeout(agents.WAIT):
        for piece in pieces:
            writer.write(piece)
        if end:
            writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    pytest.fail("it never held")


def code(line: bytes) -> str:
    answer = decode_answer(line)
    assert isinstance(answer, ControlRefusal)
    return answer.code


@pytest.mark.requirement("runtime.control.requests")
async def test_an_open_action_is_decided_once_by_another_process_of_the_user(tmp_path: Path):
    async with run_controlled(ask_and_obey, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        action = await open_action(runtime)
        (now,) = await list_running(tmp_path)
        thread = ThreadStatus(thread_id="thread", turn_id="turn", open_actions=(action,))
        assert now == StatusReply(pid=os.getpid(), threads=(thread,))

        approve = DecideRequest(
            action_id=action, decision="approve", reason="go", args_hash=SHOWN_HASH
        )
        first = await send_request(tmp_path, approve)
        again = await send_request(tmp_path, approve)
        other = await send_request(
            tmp_path, DecideRequest(action_id=action, decision="deny", args_hash=SHOWN_HASH)
        )
        assert await wait_for_end(runtime, "turn") == "completed"
        decided = (await runtime.state("thread")).actions[action]

    assert isinstance(first, DecideReply)
    assert (first.thread_id, first.decision, again) == ("thread", "approved", first)
    assert isinstance(other, ControlRefusal)
    assert other.code == "action_already_decided"
    assert (decided.reason, str(decided.decided_by)) == ("go", first.decided_by)


@pytest.mark.requirement("runtime.control.requests")
@pytest.mark.parametrize("target", ["turn", "thread"])
async def test_a_turn_is_cancelled_by_its_id_or_its_thread(tmp_path: Path, target: str):
    async with run_controlled(endless, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "wait", turn_id="turn")
        answer = await send_request(tmp_path, CancelRequest(target=target))
        assert answer == CancelReply(turn_id="turn", thread_id="thread")
        assert await wait_for_end(runtime, "turn") == "canceled"
        late = await send_request(tmp_path, CancelRequest(target=target))
        assert isinstance(late, ControlRefusal)
        assert late.code == "turn_ended"


@pytest.mark.requirement("runtime.control.requests")
async def test_a_queued_turn_is_taken_out_of_the_queue(tmp_path: Path):
    async with run_controlled(endless, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "wait", turn_id="turn")
        await runtime.submit("thread", "agent", "later", turn_id="later")
        answer = await send_request(tmp_path, CancelRequest(target="later"))
        assert answer == CancelReply(turn_id="later", thread_id="thread")
        assert (await runtime.state("thread")).queue.turns == []


@pytest.mark.requirement("runtime.control.codes")
async def test_refusals_have_stable_codes(tmp_path: Path):
    with pytest.raises(NobodyRunning) as nobody:
        await send_request(tmp_path, StatusRequest())
    assert nobody.value.code == "nobody_running"
    async with run_controlled(ask_and_obey, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        action = await open_action(runtime)
        answers = [
            await send_request(tmp_path, request)
            for request in (
                DecideRequest(action_id="act_none", decision="approve", args_hash=SHOWN_HASH),
                DecideRequest(action_id=action, decision="approve", args_hash="sha256:other"),
                CancelRequest(target="trn_none"),
            )
        ]
    codes = [answer.code for answer in answers if isinstance(answer, ControlRefusal)]
    assert codes == ["unknown_action", "action_changed", "unknown_turn"]
    assert set(codes) <= set(REFUSALS)


@pytest.mark.requirement("runtime.control.codes")
async def test_an_answer_that_comes_too_late_says_so(tmp_path: Path):
    async def ask_expired(turn: Any):
        decision = await turn.host.ask(agents.approval(expires_in=0.0))
        assert not decision.allowed
        yield agents.make_fact(turn.host, "turn.completed")

    async with run_controlled(ask_expired, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        (action,) = (await runtime.state("thread")).actions
        late = await send_request(
            tmp_path, DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH)
        )
    assert isinstance(late, ControlRefusal)
    assert late.code == "action_expired"


@pytest.mark.requirement("runtime.control.elsewhere")
async def test_an_action_of_a_thread_that_nobody_asked_for_is_found_in_the_journal(tmp_path: Path):
    async with open_journal("memory:") as journal:
        agent = agents.Agent(ask_and_obey, resume="yes")
        async with Runtime(journal, MemoryBlobs(), {"agent": agent}, workspace=tmp_path) as first:
            await first.submit("thread", "agent", "deploy", turn_id="turn")
            action = await open_action(first)
        second = Runtime(journal, MemoryBlobs(), {"agent": agent}, workspace=tmp_path)
        async with ControlServer(second, tmp_path):
            assert second.live == ()
            answer = await send_request(
                tmp_path, DecideRequest(action_id=action, decision="deny", args_hash=SHOWN_HASH)
            )
            assert isinstance(answer, DecideReply)
            again = await send_request(
                tmp_path, DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH)
            )
            assert isinstance(again, ControlRefusal)
            assert again.code == "action_already_decided"
            canceled = await send_request(tmp_path, CancelRequest(target="turn"))
            assert canceled == CancelReply(turn_id="turn", thread_id="thread")
            assert (await second.state("thread")).runtime.status == "canceled"


@pytest.mark.requirement("runtime.control.private")
async def test_the_folder_and_the_socket_are_for_the_user_alone(tmp_path: Path):
    data = tmp_path / "data"
    (data / "control").mkdir(parents=True)
    (data / "control").chmod(0o777)
    async with run_controlled(echo, data) as (_, control):
        assert control.path
        assert stat.S_IMODE((data / "control").stat().st_mode) == 0o700
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
    assert list((data / "control").iterdir()) == []


@pytest.mark.requirement("runtime.control.private")
async def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "control").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ControlUnavailable):
        control_client.listen(tmp_path)


@pytest.mark.requirement("runtime.control.private")
async def test_a_client_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with run_controlled(ask_and_obey, tmp_path) as (runtime, control):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        action = await open_action(runtime)

        def somebody_else(connected: socket.socket) -> int:
            del connected
            return os.geteuid() + 1

        monkeypatch.setattr(control_client, "peer_user", somebody_else)
        assert code(await raw(control)) == "not_allowed"
        decide = encode(DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH))
        # What it says is not read, so that the answer may be lost with the connection.
        heard = await raw(control, decide)
        assert heard == b"" or code(heard) == "not_allowed"
        assert (await runtime.state("thread")).actions[action].status == "pending"


@pytest.mark.requirement("runtime.control.private")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_another_user_cannot_even_connect(tmp_path: Path):
    async with run_controlled(echo, tmp_path) as (_, control):
        assert control.path
        os.chmod(tmp_path, 0o755)  # noqa: PTH101
        connect = (
            "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
            "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
            "except PermissionError: print('refused')"
        )
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", connect, f"control/{control.path.name}"],
            cwd=tmp_path,
            capture_output=True,
            timeout=agents.WAIT,
            check=False,
        )
    assert done.stdout == b"refused\n", done.stderr


@pytest.mark.requirement("runtime.control.hostile")
@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"garbage\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{}\n",
        b'{"request":"rm"}\n',
        b'{"request":"status","more":1}\n',
        b'{"request":"decide","actionId":"a","decision":"always"}\n',
        b'{"request":"decide","actionId":["a"],"decision":"approve"}\n',
        b"[" * 10_000 + b"\n",
        json.dumps({"request": "cancel", "target": "t", "reason": "x" * 5_000}).encode() + b"\n",
    ],
)
async def test_what_is_no_request_is_refused(tmp_path: Path, line: bytes):
    async with run_controlled(echo, tmp_path) as (_, control):
        assert code(await raw(control, line)) == "malformed"
        assert len(await list_running(tmp_path)) == 1


@pytest.mark.requirement("runtime.control.hostile")
async def test_a_client_that_leaves_without_a_line_harms_nobody(tmp_path: Path):
    async with run_controlled(echo, tmp_path) as (_, control):
        assert code(await raw(control, b'{"request":"status"}', end=True)) == "malformed"
        assert code(await raw(control, end=True)) == "malformed"
        assert len(await list_running(tmp_path)) == 1


@pytest.mark.requirement("runtime.control.hostile")
async def test_a_line_without_end_is_refused(tmp_path: Path):
    async with run_controlled(echo, tmp_path) as (_, control):
        long = b"x" * (control_limits.LINE_BYTES + 2)
        heard = await raw(control, long, b"\n")
        assert heard == b"" or code(heard) == "too_large"
        assert len(await list_running(tmp_path)) == 1


@pytest.mark.requirement("runtime.control.hostile")
async def test_a_client_that_says_nothing_is_let_go(tmp_path: Path):
    async with run_controlled(echo, tmp_path, read_seconds=0.05) as (_, control):
        assert code(await raw(control)) == "too_slow"
        assert code(await raw(control, b'{"request":')) == "too_slow"


@pytest.mark.requirement("runtime.control.hostile")
async def test_clients_beyond_the_limit_are_refused_and_the_others_go_on(tmp_path: Path):
    async with run_controlled(echo, tmp_path) as (_, control):
        quiet = [asyncio.create_task(raw(control)) for _ in range(control_limits.CONNECTIONS)]
        await until(lambda: control.clients == control_limits.CONNECTIONS)
        assert code(await raw(control)) == "too_many"
        for task in quiet:
            task.cancel()
        await asyncio.gather(*quiet, return_exceptions=True)
        await until(lambda: control.clients == 0)
        assert isinstance(decode_answer(await raw(control, encode(StatusRequest()))), StatusReply)


@pytest.mark.requirement("runtime.control.hostile")
async def test_a_server_that_talks_nonsense_is_no_answer(tmp_path: Path):
    listening, _ = control_client.listen(tmp_path)

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"nonsense\n")
        writer.close()

    server = await asyncio.start_server(nonsense, sock=listening)
    async with server:
        with pytest.raises(NoAnswer):
            await send_request(tmp_path, StatusRequest(), seconds=agents.WAIT)
        assert await list_running(tmp_path) == []


@pytest.mark.requirement("runtime.control.left-over")
async def test_a_socket_that_a_killed_process_left_is_taken_away(tmp_path: Path):
    listening, path = control_client.listen(tmp_path)
    listening.close()
    assert path.exists()
    with pytest.raises(NobodyRunning):
        await send_request(tmp_path, StatusRequest())
    assert not path.exists()
    listening, path = control_client.listen(tmp_path)
    listening.close()
    async with run_controlled(echo, tmp_path) as (_, control):
        assert not path.exists()
        assert control.path


@pytest.mark.requirement("runtime.control.long-path")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_data_folder_with_a_long_path_works(tmp_path: Path):
    data = tmp_path / ("long" * 20) / ("longer" * 20)
    async with run_controlled(echo, data):
        assert len(await list_running(data)) == 1


@pytest.mark.requirement("runtime.control.requests")
@pytest.mark.parametrize(
    "message",
    [
        StatusRequest(),
        CancelRequest(target="t", reason="because"),
        DecideRequest(action_id="a", decision="deny", reason="no", args_hash="sha256:1"),
    ],
)
async def test_requests_are_read_as_they_were_written(message: Any):
    assert decode_request(encode(message)) == message
    with pytest.raises(Malformed):
        decode_answer(encode(message))
