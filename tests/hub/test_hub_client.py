"""A device behind a Hub, from Python and from the command line: a real Hub and a real joined Edge,
which serve from a thread of their own.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import pytest

from factwire.client import (
    AsyncHubClient,
    AsyncStream,
    ClientError,
    DeviceAmbiguous,
    DeviceClient,
    DeviceUnknown,
    EdgeProblem,
    HubApproval,
    HubClient,
    HubFrame,
    HubSession,
    HubSessions,
    NotSignedIn,
    SessionsUnusable,
    SignInTokens,
)
from factwire.client.edge_address import Address
from factwire.facts.resources import Activity, ApprovalState, TaskStatus
from factwire.facts.status_words import STATUS_WORDS, DeviceStatus
from factwire.hub import hub_pages
from factwire.hub.hub_pages import PAGES
from factwire.hub.request_rates import RequestRates
from tests.cli.cli_commands import CommandOutput, Factwire
from tests.cli.cli_homes import Home, thread_in
from tests.cli.conftest import factwire as factwire_fixture
from tests.cli.terminals import Terminal
from tests.cli.terminals import terminal as on_terminal
from tests.edge.edges import running_edge
from tests.hub.hubs import HubPerson
from tests.hub.served_hubs import WAIT, served_hub
from tests.hub.test_link_live import LinkedEdge, unlinked
from tests.test_docs import blocks

factwire = factwire_fixture
T = TypeVar("T")
TOKEN_SECONDS = 16 * 60
"""Longer than an access token lasts."""


class LinkedThread:
    """A Hub and an Edge that has joined it, in a thread; `run` does something there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, linked: LinkedEdge, data: Path) -> None:
        self.loop = loop
        self.linked = linked
        self.data = data
        """Where somebody signed in with `factwire login`."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.linked.hub.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT)

    def pass_time(self, seconds: float = TOKEN_SECONDS) -> None:
        hub, ada = self.linked.hub, self.linked.ada
        hub.clock.advance(seconds)
        ada.signed_in = self.run(hub.login("Ada")).json()

    def sign_in(self, folder: Path, person: HubPerson) -> Path:
        """A data folder in which a new session of somebody's is kept."""
        name = person.signed_in["person"]["name"]
        answer = self.run(self.linked.hub.login(name)).json()
        folder.mkdir(exist_ok=True)
        session = SignInTokens(
            access_token=answer["accessToken"],
            refresh_token=answer["refreshToken"],
            expires_in=answer["expiresIn"],
            person=answer["person"],
        ).to_session(self.url)
        HubSessions(folder).keep(self.url, session)
        return folder

    @contextmanager
    def away(self) -> Generator[None]:
        """The device without its link for a while."""
        link = unlinked(self.linked)
        self.run(link.__aenter__())
        self.run(self._wait_until_offline())
        try:
            yield
        finally:
            self.run(link.__aexit__(None, None, None))

    async def _wait_until_offline(self) -> None:
        async with asyncio.timeout(WAIT):
            while True:
                rows = await self.linked.ada.get("/v1/devices")
                if not any(row["online"] for row in rows["items"]):
                    return
                await asyncio.sleep(0.02)


@asynccontextmanager
async def open_linked(folder: Path) -> AsyncGenerator[LinkedEdge]:
    async with served_hub(folder) as hub, running_edge(folder) as edge:
        ada = await hub.first_admin()
        linked = LinkedEdge(hub, edge, ada, await hub.join(ada, "Bo"))
        await linked.join()
        yield linked


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Generator[LinkedThread]:
    folder = tmp_path_factory.mktemp("linked")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestRates, "spend", spend_nothing)
        thread.start()
        opening = open_linked(folder)
        run = asyncio.run_coroutine_threadsafe
        linked = run(opening.__aenter__(), loop).result(WAIT)
        try:
            yield LinkedThread(loop, linked, folder / "person")
        finally:
            run(opening.__aexit__(None, None, None), loop).result(WAIT)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(WAIT)
            loop.close()


@pytest.fixture
def hub(at: LinkedThread) -> Generator[HubClient]:
    with HubClient(at.url, data=at.sign_in(at.data, at.linked.ada)) as client:
        yield client


@pytest.fixture
def edge(hub: HubClient) -> Generator[DeviceClient]:
    with hub.edge("laptop") as client:
        yield client


def wait_for_question(edge: DeviceClient, run_id: str) -> Any:
    """What a run asks, once the mirror shows it."""
    with edge.facts(run_id=run_id, classes=["action.required"]) as facts:
        next(facts)
    [found] = edge.approvals(run_id=run_id, status="pending").page().items
    return found


@pytest.mark.requirement("client.hub.device")
@pytest.mark.requirement("link.shown")
def test_a_device_is_used_like_an_edge(at: LinkedThread, edge: DeviceClient):
    assert {"demo", "shell"} <= {each.agent_id for each in edge.agents().items}
    thread = edge.create_thread(title="By way of the Hub")
    # What a command did is there at once, as at the Edge.
    assert edge.thread(thread.thread_id).title == "By way of the Hub"
    run = edge.start_run("demo", "help", thread_id=thread.thread_id)
    assert edge.run(run.run_id).by == run.by
    ended = edge.wait(run, seconds=WAIT)
    assert (ended.status, ended.thread_id) == ("finished", thread.thread_id)
    own = at.run(at.linked.edge.get(f"/v1/threads/{thread.thread_id}/items"))
    assert [item.item_id for item in edge.items(thread.thread_id)] == [
        each["itemId"] for each in own["items"]
    ]
    with edge.facts(thread_id=thread.thread_id) as facts:
        classes = [next(facts).fact.event_class]
        while classes[-1] != "turn.completed":
            classes.append(next(facts).fact.event_class)
    assert "turn.submitted" in classes


def read_function(name: str) -> Any:
    """A function that the page about clients shows."""
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")
    [block] = [each.text for each in blocks(page) if f"def {name}" in each.text]
    shown: dict[str, Any] = {}
    exec(block, shown)
    return shown[name]


@pytest.mark.requirement("client.hub.device")
def test_what_the_page_about_clients_shows_works(at: LinkedThread, hub: HubClient):
    status, items = read_function("run_on_a_device")(hub.url, at.data)
    assert (status, bool(items)) == ("finished", True)


@pytest.mark.requirement("client.hub.device")
@pytest.mark.requirement("hub.approvals.edge-address")
def test_a_decision_goes_to_the_agent_that_asked(at: LinkedThread, edge: DeviceClient):
    run = edge.start_run("shell", "echo decided")
    question = wait_for_question(edge, run.run_id)
    card = edge.decision_card(question.approval_id)
    assert '["echo","decided"]' in (card.shown or "")

    def decide(**more: Any) -> Any:
        wanted: dict[str, Any] = {"decision": "allow", "args_hash": card.args_hash, **more}
        return edge.decide(run.run_id, question.approval_id, **wanted)

    for more, code in (
        ({"args_hash": "sha256:" + "0" * 64}, "approval_changed"),
        ({"always": "thread"}, "not_relayed"),
    ):
        with pytest.raises(EdgeProblem) as refused:
            decide(**more)
        assert refused.value.code == code
    with pytest.raises(EdgeProblem) as unknown:
        edge.decide(run.run_id, "act_none", "deny", args_hash="x")
    assert (unknown.value.status, unknown.value.code) == (404, "unknown_approval")
    decided = decide(reason="fine")
    assert (decided.status, decided.reason) == ("approved", "fine")
    assert decided.decided_by.user_id == at.linked.ada.person_id
    assert edge.wait(run, seconds=WAIT).status == "finished"


@pytest.mark.requirement("client.hub.device")
def test_a_run_of_a_device_is_cancelled(edge: DeviceClient):
    run = edge.start_run("shell", "echo never")
    wait_for_question(edge, run.run_id)
    edge.cancel_run(run.run_id)
    assert edge.wait(run, seconds=WAIT).status == "cancelled"


@pytest.mark.requirement("client.hub.tasks")
def test_tasks_are_given_decided_waited_for_and_cancelled(at: LinkedThread, hub: HubClient):
    device = hub.find_device()
    with hub.events() as events:
        task = hub.create_task("echo task", device_id=device.device_id, agent="shell")
        question = wait_for_approval(hub, events, task.task_id)
        shown = hub.approval(question.approval_id)
        assert '["echo","task"]' in (shown.card.shown or "")
        assert shown.may_decide
        with pytest.raises(EdgeProblem, match="approval_changed"):
            hub.decide(question.approval_id, "allow", args_hash="sha256:" + "0" * 64)
        decided = hub.decide(question.approval_id, "allow", args_hash=shown.args_hash)
        assert decided.decision == "allow"
        done = hub.wait(task, seconds=WAIT)
        assert (done.status, done.device_id) == ("done", at.linked.device_id)
        stopped = hub.create_task("echo no", device_id=device.device_id, agent="shell")
        wait_for_approval(hub, events, stopped.task_id)
    hub.cancel_task(stopped.task_id)
    assert hub.wait(stopped.task_id, seconds=WAIT).status == "cancelled"
    listed = [row.task_id for row in hub.tasks(device_id=device.device_id, limit=1)]
    assert {stopped.task_id, task.task_id} <= set(listed)
    with pytest.raises(EdgeProblem, match="agent_not_offered"):
        hub.create_task("x", device_id=device.device_id, agent="nobody")


def wait_for_approval(hub: HubClient, events: Any, task_id: str) -> HubApproval:
    """What a task asks, once the Hub tells of it."""
    for frame in events:
        if frame.type == "approval.updated":
            approval = hub.approval(frame.payload["approval_id"])
            if approval.run_id == hub.task(task_id).edge_run_id and approval.state == "asked":
                return approval
    pytest.fail("the stream has ended")


@pytest.mark.requirement("client.hub.events")
def test_what_a_hub_tells_resumes_after_a_cursor(at: LinkedThread, hub: HubClient):
    ada = at.linked.ada

    def numbers(stream: Any, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            frame = next(stream)
            if frame.type == "notification.new":
                found.append(frame.payload["payload"]["n"])
        return found

    with hub.events() as events:
        at.run(at.linked.hub.tell(ada, 1, 2, 3))
        assert numbers(events, 2) == [1, 2]
        cursor = events.cursor
    at.run(at.linked.hub.tell(ada, 4))

    async def resume() -> list[int]:
        async with (
            AsyncHubClient(at.url, data=at.data) as awaiting,
            awaiting.events(cursor=cursor) as later,
        ):
            frames = [frame async for frame in take_notifications(later, 2)]
            return [frame.payload["payload"]["n"] for frame in frames]

    assert asyncio.run(resume()) == [3, 4]
    with pytest.raises(ClientError) as lost, hub.events(cursor="nonsense") as stream:
        next(stream)
    assert lost.value.code == "cursor_invalid"


async def take_notifications(stream: AsyncStream[HubFrame], count: int) -> AsyncGenerator[HubFrame]:
    async for frame in stream:
        if frame.type == "notification.new":
            yield frame
            count -= 1
        if not count:
            return


@pytest.mark.requirement("client.hub.away")
@pytest.mark.requirement("cli.hub.target")
def test_a_device_that_is_away_is_read_and_not_commanded(
    at: LinkedThread, edge: DeviceClient, ask: Factwire
):
    run = edge.wait(edge.start_run("demo", "help"), seconds=WAIT)
    with at.away():
        assert edge.run(run.run_id) == run
        assert run.thread_id in [row.thread_id for row in edge.threads()]
        with edge.facts(thread_id=run.thread_id) as facts:
            assert next(facts).fact.thread_id == run.thread_id
        with pytest.raises(EdgeProblem) as refused:
            edge.start_run("demo", "help")
        assert (refused.value.status, refused.value.code) == (409, "device_offline")
        for command in (("run", "demo", "help"), ("steer", run.thread_id or "", "go on")):
            failed = ask(*command)
            assert (failed.code, failed.err.count("\n")) == (2, 1)
            assert "device_offline: laptop is offline, last seen 20" in failed.err
        assert run.thread_id in ask("threads").out


@pytest.mark.requirement("client.hub.later")
def test_a_task_and_a_decision_are_left_for_a_device_that_is_away(
    at: LinkedThread, hub: HubClient, edge: DeviceClient
):
    device = edge.device
    asking = hub.create_task("echo left", device_id=device.device_id, agent="shell")
    with hub.events() as events:
        question = wait_for_approval(hub, events, asking.task_id)
        assert hub.find_approval(device, question.request_id) == hub_row(hub, question)
        assert hub.find_approval(device, "act_none") is None
        assert edge.hub is hub
        with at.away():
            task = read_function("start_now_or_later")(edge, "demo", "help")
            assert (task.status, task.edge_run_id) == ("queued", None)
            decided = hub.decide(question.approval_id, "allow", args_hash=question.args_hash)
            assert (decided.state, decided.sent_at) == ("decided", None)
            assert hub.approval(question.approval_id).state == "decided"
        assert hub.wait(task, seconds=WAIT).status == "done"
        assert hub.wait(asking, seconds=WAIT).status == "done"
        while hub.approval(question.approval_id).state != "applied":
            next(events)


def hub_row(hub: HubClient, approval: HubApproval) -> HubApproval:
    """An approval as the list has it."""
    [row] = [each for each in hub.approvals() if each.approval_id == approval.approval_id]
    return row


@pytest.mark.requirement("client.hub.find-device")
def test_a_device_is_found_by_id_or_name_and_only_by_who_may_see_it(
    at: LinkedThread, hub: HubClient, tmp_path: Path
):
    device = hub.find_device()
    assert device.device_id == at.linked.device_id
    assert hub.find_device("laptop") == hub.find_device(device.device_id) == device
    with pytest.raises(DeviceUnknown, match="desktop"):
        hub.find_device("desktop")
    with HubClient(at.url, data=at.sign_in(tmp_path, at.linked.bo)) as stranger:
        for wanted in (None, "laptop", device.device_id):
            with pytest.raises(DeviceUnknown):
                stranger.find_device(wanted)
        with stranger.edge(device) as theirs:
            for ask in (theirs.threads().page, theirs.agents, lambda: theirs.start_run("demo", "")):
                with pytest.raises(EdgeProblem) as refused:
                    ask()
                assert (refused.value.status, refused.value.code) == (404, "unknown_edge")
            with pytest.raises(EdgeProblem), theirs.events() as events:
                next(events)
    second = at.run(at.linked.hub.join_device(at.linked.ada, "edge_second"))
    try:
        for wanted in (None, "laptop"):
            with pytest.raises(DeviceAmbiguous, match=device.device_id):
                hub.find_device(wanted)
        assert hub.find_device(second.device_id).edge_id == "edge_second"
    finally:
        path = f"/v1/devices/{second.device_id}"
        at.run(at.linked.ada.request("DELETE", path))


@pytest.mark.requirement("client.hub.renewal")
def test_a_session_is_renewed_when_the_hub_no_longer_takes_its_token(
    at: LinkedThread, hub: HubClient
):
    before = HubSessions(at.data).find(at.url)
    with hub.edge() as edge:
        at.pass_time()
        assert edge.threads(limit=1).page().as_of
        with edge.events(since="now"):
            pass
        at.pass_time()
        with edge.events(since="now"):
            pass
    after = HubSessions(at.data).find(at.url)
    assert after.refresh_token != before.refresh_token
    assert hub.find_device().name == "laptop"
    # One that this clock knows to be over is not even tried.
    HubSessions(at.data).keep(at.url, expired(after))
    with HubClient(at.url, data=at.data) as again:
        assert again.find_device().name == "laptop"
    assert HubSessions(at.data).find(at.url).refresh_token != after.refresh_token


def spend_nothing(*_: object) -> None:
    """Limits have tests of their own."""


def expired(session: HubSession) -> HubSession:
    return msgspec.structs.replace(session, expires_at=0.0)


@pytest.mark.requirement("client.hub.renewal")
@pytest.mark.parametrize("reads_again", [True, False])
def test_who_renews_second_takes_what_the_first_has_renewed(
    at: LinkedThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads_again: bool
):
    data = at.sign_in(tmp_path, at.linked.ada)
    with HubClient(at.url, data=data) as first, HubClient(at.url, data=data) as second:
        stale = HubSessions(data).find(at.url)
        assert first.find_device() == second.find_device()
        at.pass_time()
        assert first.find_device().name == "laptop"
        at.pass_time(60)
        if reads_again:
            assert second.find_device().name == "laptop"
            assert first.find_device().name == "laptop"
            return
        # Without reading the file again, the second sends a token that was used before.

        def find_stale(*_: object) -> HubSession:
            return stale

        monkeypatch.setattr(HubSessions, "find", find_stale)
        with pytest.raises(NotSignedIn, match="used before"):
            second.find_device()


_RENEWING = """
import sys
from factwire.client import HubClient
with HubClient(sys.argv[1], data=sys.argv[2]) as hub:
    print("ready", flush=True)
    for line in sys.stdin:
        print(hub.find_device().name, flush=True)
"""


@pytest.mark.requirement("client.hub.renewal")
def test_two_programs_that_renew_at_once_stay_signed_in(at: LinkedThread, tmp_path: Path):
    data = at.sign_in(tmp_path, at.linked.ada)
    command = [sys.executable, "-c", _RENEWING, at.url, str(data)]
    pipe = subprocess.PIPE
    with (
        HubClient(at.url, data=data) as own,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other,
    ):
        assert other.stdin
        assert read_line(other) == "ready"
        for _ in range(5):
            at.pass_time()
            other.stdin.write("\n")
            other.stdin.flush()
            assert own.find_device().name == "laptop"
            assert read_line(other) == "laptop"
        other.stdin.close()
        assert other.wait(WAIT) == 0


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.requirement("client.hub.sessions")
def test_sessions_are_private_and_no_token_is_shown(at: LinkedThread, tmp_path: Path):
    with (
        pytest.raises(NotSignedIn, match="factwire login"),
        HubClient(at.url, data=tmp_path) as hub,
    ):
        hub.find_device()
    data = at.sign_in(tmp_path, at.linked.ada)
    session = HubSessions(data).find(at.url)
    file = data / "hub-sessions.json"
    assert file.stat().st_mode & 0o777 == 0o600
    shown = repr(session) + repr(HubClient(at.url, data=data)) + repr(session.token)
    assert not any(token in shown for token in (session.access_token, session.refresh_token))
    file.chmod(0o644)
    with pytest.raises(SessionsUnusable, match="other users"):
        HubSessions(data).read()
    file.chmod(0o600)
    file.write_text("{")
    with pytest.raises(SessionsUnusable, match="damaged"):
        HubSessions(data).read()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionsUnusable):
        HubSessions(data).read()
    with pytest.raises(ClientError, match="https"):
        HubClient("http://hub.example", data=data)
    assert Address("http://h", "e/1").http("/v1/threads") == "http://h/v1/edges/e%2F1/threads"


@pytest.fixture
def person(at: LinkedThread, tmp_path: Path) -> Home:
    """The home of somebody who is signed in."""
    home = Home(tmp_path)
    at.sign_in(at.data, at.linked.ada)
    home.environment |= {"FACTWIRE_DATA": str(at.data), "FACTWIRE_HUB": at.url}
    return home


@pytest.fixture
def ask(person: Home, factwire: Factwire, monkeypatch: pytest.MonkeyPatch) -> Factwire:
    """The command, in this process, for whoever is signed in."""
    for name, value in person.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FACTWIRE_EDGE", raising=False)
    monkeypatch.chdir(person.folder)
    return factwire


@pytest.mark.requirement("cli.hub.run")
def test_a_run_on_a_device_is_shown_like_one_that_runs_here(ask: Factwire):
    there = ask("run", "demo", "help")
    assert (there.code, "completed" in there.out) == (0, True), there.err
    facts = ask("run", "demo", "help", "--device", "laptop", "--json")
    assert "turn.completed" in [json.loads(line).get("eventClass") for line in lines(facts)]
    thread = thread_in(there.out)
    again = ask("run", "demo", "help", "--thread", thread)
    assert (again.code, thread_in(again.out)) == (0, thread)
    listed = ask("threads")
    assert (listed.code, thread in listed.out) == (0, True)
    rows = json.loads(ask("threads", "--json").out)["threads"]
    assert thread in [row["threadId"] for row in rows]


def lines(done: CommandOutput) -> list[str]:
    assert done.code == 0, done.err
    return done.out.splitlines()


@contextmanager
def watched(person: Home, *arguments: str) -> Generator[Terminal]:
    environment = {**person.environment, "COLUMNS": "100"}
    options: Any = {"folder": person.folder, "environment": environment}
    with on_terminal("run", *arguments, columns=100, **options) as shown:
        yield shown


@pytest.mark.requirement("cli.hub.run")
def test_a_question_of_a_device_is_asked_with_exactly_what_will_run(person: Home):
    with watched(person, "shell", "echo from afar && sleep 600") as shown:
        assert "echo from afar && sleep 600" in shown.until("[?] help")
        shown.press(b"?", f"--hub {person.environment['FACTWIRE_HUB']}")
        shown.press(b"y", "from afar")
        shown.press(b"\x03", "cancelled")
        assert (shown.end(), shown.restored) == (130, True)


@pytest.mark.requirement("cli.hub.answers")
def test_what_a_device_asks_is_decided_and_cancelled_from_any_terminal(
    ask: Factwire, edge: DeviceClient
):
    run = edge.start_run("shell", "echo once")
    action = wait_for_question(edge, run.run_id).approval_id
    assert f"approve {action} --hub {edge.url}" in ask("threads", "--status", "waiting").out
    shown = ask("approve", action)
    assert (shown.code, '["echo","once"]' in shown.err, "hash_required" in shown.err) == (
        *(1, True, True),
    )
    digits = shown.err.split("--hash ")[1].split()[0]
    done = ask("approve", action, "--hash", digits)
    assert (done.code, done.out) == (0, f"approved by Ada via hub: {action}\n"), done.err
    assert edge.wait(run, seconds=WAIT).status == "finished"
    opposite = ask("deny", action)
    assert (opposite.code, "action_already_decided" in opposite.err) == (1, True)
    run = edge.start_run("shell", "echo denied")
    action = wait_for_question(edge, run.run_id).approval_id
    denied = ask("deny", action, "--reason", "no", "--json")
    assert (denied.code, json.loads(denied.out)["decision"]) == (0, "denied")
    edge.wait(run, seconds=WAIT)
    run = edge.start_run("shell", "echo stopped")
    wait_for_question(edge, run.run_id)
    assert ask("cancel", run.thread_id or "", "--json").code == 0
    assert edge.wait(run, seconds=WAIT).status == "cancelled"
    unknown = ask("cancel", "thr_none")
    assert (unknown.code, "unknown_turn" in unknown.err) == (1, True)


@pytest.mark.requirement("cli.hub.answers")
def test_a_device_is_followed_by_way_of_the_hub(person: Home, edge: DeviceClient):
    run = edge.wait(edge.start_run("demo", "help"), seconds=WAIT)
    wanted = ("--thread", run.thread_id or "", "--types", "run.finished")
    with person.background("tail", *wanted, "--all", "--json") as tail:
        tail.until("\n")
    assert json.loads(tail.seen)["scope"]["runId"] == run.run_id


@pytest.mark.requirement("cli.hub.target")
def test_what_keeps_a_command_from_a_device_is_said_in_one_line(
    at: LinkedThread, ask: Factwire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def refused(*arguments: str) -> tuple[int, str]:
        done = ask(*arguments)
        assert done.err.count("\n") == 1, done.err
        return done.code, done.err.split(":")[1].strip()

    assert refused("threads", "--device", "desktop") == (2, "unknown_device")
    assert refused("run", "nobody", "x")[0] == 1
    assert refused("threads", "--hub", at.url, "--edge", at.url)[1].startswith("choose one")
    assert refused("threads", "--device", "laptop", "--journal", "x")[1].startswith("choose one")
    assert refused("run", "demo", "x", "--model", "m")[1].startswith("--model")
    assert refused("threads", "--hub", "http://127.0.0.1:9") == (2, "not_signed_in")
    assert refused("threads", "--hub", "http://hub.example") == (2, "tls_required")
    second = at.run(at.linked.hub.join_device(at.linked.ada, "edge_third"))
    assert refused("threads") == (2, "device_ambiguous")
    assert ask("threads", "--device", at.linked.device_id).code == 0
    monkeypatch.setenv("FACTWIRE_DEVICE_SECONDS", "soon")
    assert refused("threads", "--device", "laptop") == (2, "FACTWIRE_DEVICE_SECONDS")
    monkeypatch.setenv("FACTWIRE_DEVICE_SECONDS", "120")
    at.run(at.linked.ada.request("DELETE", f"/v1/devices/{second.device_id}"))
    # A device that is named needs no Hub's name where there is one Hub.
    monkeypatch.delenv("FACTWIRE_HUB")
    assert ask("threads", "--device", "laptop").code == 0
    monkeypatch.setenv("FACTWIRE_DATA", os.fspath(tmp_path / "nobody"))
    assert refused("threads", "--device", "laptop") == (2, "not_signed_in")


def task_in(done: CommandOutput) -> str:
    """The task that a command has left at the Hub."""
    assert done.code == 3, done.err
    return done.out.split()[-1]


@pytest.mark.requirement("cli.hub.later")
def test_a_run_is_left_for_a_device_that_is_away(at: LinkedThread, hub: HubClient, ask: Factwire):
    thread = thread_in(ask("run", "demo", "help").out)
    with at.away():
        refused = ask("run", "demo", "help")
        assert (refused.code, "nothing was started; with --queue" in refused.err) == (2, True)
        wanted = ("run", "demo", "help", "--queue", "--device", "laptop")
        queued = ask(*wanted, "--thread", thread, "--expires-in", "3600")
        assert queued.out.startswith("queued for laptop, expires 20")
        assert f"factwire cancel {task_in(queued)} --hub {at.url} --device laptop" in queued.err
        as_json = ask(*wanted, "--json")
        assert (as_json.code, json.loads(as_json.out)["status"]) == (3, "queued")
        listed = lines(ask("tasks", "--status", "queued"))
        own = [line for line in listed if task_in(queued) in line]
        assert own[0].startswith(f"queued  {task_in(queued)}  laptop  demo  expires 20")
        unattended = ask(*wanted, "--approve", "never")
        assert (unattended.code, "--approve never" in unattended.err) == (2, True)
        offered = ask("run", "nobody", "help", "--queue")
        assert (offered.code, "agent_not_offered" in offered.err) == (1, True)
    task = hub.wait(task_in(queued), seconds=WAIT)
    assert (task.status, task.thread_id) == ("done", thread)
    shown = [line for line in lines(ask("tasks", "--device", "laptop")) if task.task_id in line]
    assert shown[0].startswith("completed  ")
    hub.wait(json.loads(as_json.out)["taskId"], seconds=WAIT)
    # While the device is there, the run is watched as ever.
    assert ask(*wanted).code == 0
    nowhere = ask("run", "demo", "help", "--queue", "--journal", "x.db")
    assert (nowhere.code, "--device" in nowhere.err) == (2, True)


@pytest.mark.requirement("cli.hub.later")
def test_who_sits_at_a_terminal_is_asked_whether_a_run_shall_wait(
    at: LinkedThread, hub: HubClient, person: Home
):
    question = "laptop is offline. Leave the run for it, to start when laptop is back? [y/N]:"
    with at.away():
        with watched(person, "demo", "help") as shown:
            shown.until(question)
            shown.press(b"n\r", "nothing was started")
            assert shown.end() == 2
        with watched(person, "demo", "help") as shown:
            shown.until(question)
            seen = shown.press(b"y\r", "take it back")
            assert shown.end() == 3
    [task_id] = set(re.findall(r"tsk_[A-Z2-7]{26}", seen))
    assert hub.wait(task_id, seconds=WAIT).status == "done"


@pytest.mark.requirement("cli.hub.later")
def test_what_a_device_asked_is_decided_while_it_is_away(
    at: LinkedThread, edge: DeviceClient, ask: Factwire
):
    runs = [edge.start_run("shell", f"echo {word}") for word in ("allowed", "denied")]
    yes, no = [wait_for_question(edge, run.run_id).approval_id for run in runs]
    later = "decided; will be sent when laptop is back"
    with at.away():
        shown = ask("approve", yes)
        assert (shown.code, '["echo","allowed"]' in shown.err) == (1, True)
        digits = shown.err.split("--hash ")[1].split()[0]
        for _ in range(2):
            done = ask("approve", yes, "--hash", digits)
            assert (done.code, done.out) == (3, f"approved by Ada via hub: {yes}\n{later}\n")
        opposite = ask("deny", yes)
        assert (opposite.code, "action_already_decided" in opposite.err) == (1, True)
        denied = ask("deny", no, "--json")
        reply = json.loads(denied.out)
        assert (denied.code, reply["decision"], reply["later"]) == (3, "denied", later)
        unknown = ask("approve", "act_none")
        assert (unknown.code, "unknown_action" in unknown.err) == (1, True)
    # The shell whose command was denied has nothing else to do, and fails.
    assert [edge.wait(run, seconds=WAIT).status for run in runs] == ["finished", "failed"]
    assert [edge.approval(each).status for each in (yes, no)] == ["approved", "denied"]


@pytest.mark.requirement("cli.hub.later")
def test_more_people_that_must_allow_something_are_what_a_decision_waits_for(
    at: LinkedThread, edge: DeviceClient, ask: Factwire
):
    path = f"/v1/devices/{at.linked.device_id}/approval-rule"
    at.run(at.linked.ada.request("PUT", path, {"required": 2}))
    try:
        run = edge.start_run("shell", "echo two")
        action = wait_for_question(edge, run.run_id).approval_id
        digits = ask("approve", action).err.split("--hash ")[1].split()[0]
        done = ask("approve", action, "--hash", digits)
        waits = "1 of the 2 people needed have allowed it"
        assert (done.code, done.out) == (3, f"pending: {action}\n{waits}\n")
    finally:
        at.run(at.linked.ada.request("PUT", path, {"required": 1}))
    edge.cancel_run(run.run_id)
    edge.wait(run, seconds=WAIT)


@pytest.mark.requirement("cli.hub.later")
def test_a_task_is_cancelled_and_a_message_left_while_the_device_is_away(
    at: LinkedThread, hub: HubClient, edge: DeviceClient, ask: Factwire
):
    device_id = edge.device.device_id
    running = hub.create_task("echo x", device_id=device_id, agent="shell")
    with hub.events() as events:
        wait_for_approval(hub, events, running.task_id)
    run_id = hub.task(running.task_id).edge_run_id or ""
    own = edge.start_run("shell", "echo own")
    wait_for_question(edge, own.run_id)
    thread = own.thread_id or ""
    with at.away():
        queued = task_in(ask("run", "demo", "help", "--queue"))
        assert ask("cancel", queued) == (0, f"cancelled: {queued}\n", "")
        again = ask("cancel", "tsk_none")
        assert (again.code, "unknown_task" in again.err) == (1, True)
        later = (
            f"cancelling: {running.task_id}\n"
            "it will be stopped when laptop is back; without an answer, it is closed after a day\n"
        )
        assert ask("cancel", run_id) == (3, later, "")
        # What was not started from the Hub is left for its device, too.
        alone = ask("cancel", own.run_id)
        assert (alone.code, alone.err) == (3, "")
        assert alone.out.startswith(f"cancelling: {own.turn_id}\nlaptop is offline or does not")
        steered = ask("steer", thread, "and then?", "--queue")
        assert (steered.code, "queued for laptop, expires 20" in steered.out) == (3, True)
        left = steered.out.split()[1]
        assert [line.split()[1] for line in lines(ask("queue", thread))] == [left]
        assert lines(ask("queue", thread, "--remove", left)) == ["no queued turns"]
        assert hub.task(left).status == "cancelled"
    assert hub.wait(running, seconds=WAIT).status == "cancelled"
    stopped = hub.create_task("echo y", device_id=device_id, agent="shell")
    with hub.events() as events:
        wait_for_approval(hub, events, stopped.task_id)
    assert ask("cancel", stopped.task_id) == (0, f"cancelled: {stopped.task_id}\n", "")
    assert hub.task(stopped.task_id).status == "cancelled"
    ended = ask("cancel", running.task_id)
    assert ended == (0, f"cancelled: {running.task_id}\n", "")
    assert edge.wait(own, seconds=WAIT).status == "cancelled"


@pytest.mark.requirement("hub.status-words")
def test_pages_and_command_line_have_one_word_for_each_status(ask: Factwire):
    kinds: dict[str, Any] = {
        "device": DeviceStatus,
        "task": TaskStatus,
        "approval": ApprovalState,
        "thread": Activity,
    }
    for kind, statuses in kinds.items():
        assert set(STATUS_WORDS[kind]) == set(get_args(statuses)), kind
    encoded = msgspec.json.encode(STATUS_WORDS).decode()
    assert f"const STATUS_WORDS = {encoded};" in PAGES["/"].content.decode()
    # No page words a status by itself.
    texts = {word for kind in kinds for word in STATUS_WORDS[kind].values() if " " in word}
    texts |= {text.replace("{device}", "") for text in STATUS_WORDS["taskSentences"].values()}
    texts |= {text.replace("{device}", "") for text in STATUS_WORDS["approvalSentences"].values()}
    scripts = Path(hub_pages.__file__).with_name("pages").glob("*.js")
    for script in scripts:
        found = {text for text in texts if text in script.read_text("utf-8")}
        assert found <= set(TONED), script.name
    assert "  online  " in ask("devices").out


TONED = ("not heard from", "not acknowledged", "timed out")
"""Words that a page may name because it colours them."""
