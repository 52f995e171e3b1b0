"""A story of faults: an Edge that goes down again and again, and those who never give up on it."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import psutil

from factwire.runtime.configuration import PolicySettings, SandboxSettings
from tests.edge.edge_process import Client, EdgeProcess
from tests.edge.fault_load import Ledger, Producers, Subscriber
from tests.edge.streaming import until

SETTINGS: Final[dict[str, Any]] = {
    "policy": PolicySettings(allow=("Bash(sh loop.sh)", "Bash(echo queued)")),
    "sandbox": SandboxSettings(mode="off"),
}
_LOOP: Final = "echo $$ > pid\nwhile :; do sleep 1; done\n"


class UnderWay:
    """Runs that a kill interrupts: one works, one is queued behind it, one waits for a person."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._pid = folder / "workspace" / "pid"
        self._pid.unlink(missing_ok=True)
        (folder / "workspace" / "loop.sh").write_text(_LOOP)
        self.works: dict[str, Any] = {}
        self.waits: dict[str, Any] = {}
        self.queued: dict[str, Any] = {}
        self.approval = ""
        self.process = 0

    async def begin(self) -> None:
        post = self._client.post
        self.works = await post("/v1/runs", {"agentId": "shell", "prompt": "sh loop.sh"})
        after = {"threadId": self.works["threadId"], "prompt": "echo queued", "agentId": "shell"}
        self.queued = await post("/v1/runs", after)
        self.waits = await post("/v1/runs", {"agentId": "demo", "prompt": "approve"})
        await self._client.run_until(self.waits["runId"], "waiting")
        self.approval = await self._open_approval()
        await until(lambda: self._pid.exists() and bool(self._pid.read_text().strip()))
        self.process = int(self._pid.read_text())

    async def check_after_restart(self) -> None:
        assert not _runs(self.process)
        works = await self._client.run_until(self.works["runId"])
        assert (works["status"], works["error"]["code"]) == ("failed", "EDGE_RESTARTED")
        assert (await self._client.run_until(self.queued["runId"]))["status"] == "finished"
        assert await self._open_approval() == self.approval
        while (run := await self._now())["status"] == "waiting":
            await self._allow(await self._open_approval())
        assert run["status"] == "finished"

    async def _now(self) -> dict[str, Any]:
        return await self._client.run_until(self.waits["runId"], "waiting")

    async def _open_approval(self) -> str:
        run = self.waits["runId"]
        page = await self._client.get("/v1/approvals", runId=run, status="pending")
        return page["items"][0]["approvalId"]

    async def _allow(self, approval: str) -> None:
        card = await self._client.get(f"/v1/approvals/{approval}/card")
        body = {"runId": self.waits["runId"], "requestId": approval, "decision": "allow"}
        body["argsHash"] = card["argsHash"]
        await self._client.post("/v1/permissions/decide", body)


def _runs(process: int) -> bool:
    """Whether a program is at work; one that ended may wait for its parent to hear of it."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Story:
    """An Edge that is killed again and again, and those who never give up on it."""

    def __init__(self, client: Client, folder: Path, *, eager: bool = False) -> None:
        self.client = client
        self.edge: EdgeProcess
        self.producers = Producers(client)
        self.ledger = Ledger(client)
        self.whole = Subscriber(client, "/v1/facts")
        self.lane = Subscriber(client, "/v1/facts", threadId="lane-3")
        self.events = Subscriber(client, "/v1/events", types="run")
        self._folder = folder
        self._eager = eager
        self._under_way: UnderWay | None = None

    async def start(self) -> None:
        """Start it, and see that everything is as it was acknowledged."""
        start = EdgeProcess.start
        self.edge = await asyncio.to_thread(start, self._folder, eager=self._eager, **SETTINGS)
        self.client.turn_to(self.edge)
        await self.ledger.read_on()
        self.ledger.check(self.producers.acknowledged)
        if self._under_way is not None:
            await self._under_way.check_after_restart()
            self._under_way = None

    async def end_amid(self, moment: int, end: Callable[[], None], *, runs: bool) -> None:
        """Let everybody work until so many batches were acknowledged, then end it."""
        async with AsyncExitStack() as stack:
            for subscriber in self.readers:
                await stack.enter_async_context(subscriber.keep_reading())
            if runs:
                self._under_way = UnderWay(self.client, self._folder)
                await self._under_way.begin()
            enough = len(self.producers.acknowledged) + moment
            await stack.enter_async_context(self.producers.at_work())
            await self.producers.until(lambda: len(self.producers.acknowledged) >= enough)
            end()

    @property
    def readers(self) -> tuple[Subscriber, ...]:
        return self.whole, self.lane, self.events

    async def check_readers(self) -> None:
        """Readers that resume have everything, once and in order."""
        facts = self.ledger.facts
        head = facts[-1][0]
        async with self.whole.keep_reading(), self.lane.keep_reading(), self.events.keep_reading():
            for subscriber in self.readers:
                await subscriber.wait_for_seq(head)
            self.edge.kill()
        await self.edge.wait_for_end()
        assert self.whole.seen[: len(facts)] == self.ledger.ids
        of_lane = [(seq, fact["id"]) for seq, fact in facts if fact.get("threadId") == "lane-3"]
        assert self.lane.seen == of_lane
        seqs = [seq for seq, _ in self.events.seen]
        assert seqs == sorted(set(seqs))
        batches = {seq for seqs in self.producers.acknowledged.values() for seq in seqs}
        assert batches <= set(seqs)
