"""Approvals in any order of things, and across a kill: never two answers, never applied before it
was sent, never decided without a delivery.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from factwire.facts.resources import ApprovalState
from factwire.hub.approvals.approval_states import (
    DECIDED,
    ENDED,
    LOST,
    OVERDUE,
    STATE_TIMES,
    TRANSITIONS,
    WAITING,
    ApprovalStep,
    find_next_state,
    is_lost,
    is_overdue,
)
from tests.hub.asking_devices import AskingDevice, links
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.test_approvals import Scene, build_scene, by_id, replay
from tests.trials import TRIAL_SECONDS, count_trials

STEPS: list[ApprovalStep] = list(get_args(ApprovalStep))


@pytest.mark.requirement("hub.approvals.steps")
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from([None, OVERDUE, *LOST])), max_size=40
    )
)
@settings(max_examples=500, deadline=None)
def test_no_order_of_steps_applies_what_was_not_sent(steps: list[tuple[ApprovalStep, str | None]]):
    state: ApprovalState = "asked"
    code: str | None = None
    reached: list[ApprovalState] = [state]
    for step, why in steps:
        following = find_next_state(state, step, code)
        if following is None:
            continue
        lost, overdue = is_lost(state, code), is_overdue(state, code)
        if following == "applied":
            assert state == "sent"
        if following == "sent":
            assert lost or overdue or state in (*WAITING, "decided")
        if overdue:
            # Nobody but the device has anything to say.
            assert step not in ("decide", "retry", "deliver", "see")
        elif state in ENDED and not lost:
            # Only a new question opens what has ended.
            assert (step, following) == ("ask", "asked")
        if state in DECIDED:
            assert step != "decide"
        code = why if following in ENDED else None
        state = following
        reached.append(state)
    assert set(reached) <= TRANSITIONS.keys()
    assert STATE_TIMES.keys() <= TRANSITIONS.keys()


class Device:
    """A device as it really is: it has one answer, whoever gave it, and does what it says once."""

    def __init__(self, scene: Scene, action_id: str) -> None:
        self.scene = scene
        self.action_id = action_id
        self.answer: str | None = None
        self.applied = 0
        self.known: dict[str, str | None] = {}
        self.waiting: list[Any] = []

    def decide(self, decision: str) -> str | None:
        """Take a decision; why it is refused, if it is."""
        if self.answer is None:
            self.answer = decision
            word = "approved" if decision == "allow" else "denied"
            fact = self.scene.device.fact(
                "action.resolved", self.action_id, decision=word, applied=False
            )
            self.waiting.append(fact)
            return None
        return None if self.answer == decision else "approval_decided"

    async def take(self, *, loses_ack: bool) -> None:
        """Take everything that was sent, each delivery once, and acknowledge it."""
        for delivery_id, control in await self.scene.device.queued():
            if control.request_id != self.action_id:
                continue
            if delivery_id not in self.known:
                self.known[delivery_id] = self.decide(control.decision)
            if not loses_ack:
                await self.scene.device.acknowledge(delivery_id, self.known[delivery_id])

    def apply(self) -> None:
        if self.answer is not None and not self.applied:
            self.applied += 1
            word = "approved" if self.answer == "allow" else "denied"
            fact = self.scene.device.fact(
                "action.updated", self.action_id, decision=word, applied=True
            )
            self.waiting.append(fact)

    async def upload(self) -> None:
        waiting, self.waiting = self.waiting, []
        await self.scene.device.upload(*waiting)


OPERATIONS = ("ada allow", "ada deny", "bo allow", "bo deny", "local allow", "local deny")
MOVES = ("take", "lose", "apply", "upload", "see", *OPERATIONS)


async def try_decision(person: HubPerson, approval: Any, decision: str) -> int:
    body = {"decision": decision, "argsHash": approval["argsHash"]}
    path = f"/v1/approvals/{approval['approvalId']}/decide"
    return (await person.request("POST", path, body)).status_code


async def play(scene: Scene, number: int, moves: list[str]) -> None:
    action_id = f"act_{number}"
    approval = await scene.ask(action_id)
    old = await scene.bo.get("/v1/approvals?status=all&limit=200")
    device = Device(scene, action_id)
    for move in [*moves, "take", "apply", "upload", "take"]:
        who, _, decision = move.partition(" ")
        if who in ("ada", "bo"):
            person = scene.ada if who == "ada" else scene.bo
            assert await try_decision(person, approval, decision) in (200, 409)
        elif who == "local":
            device.decide(decision)
        elif who in ("take", "lose"):
            await device.take(loses_ack=who == "lose")
        elif who == "apply":
            device.apply()
        elif who == "upload":
            await device.upload()
        else:
            await scene.bo.post(f"/v1/approvals/{approval['approvalId']}/seen", status=200)
        ensure_true(await scene.read(approval), device)
    ended = await scene.read(approval)
    sent = [
        control.decision
        for _, control in await scene.device.queued()
        if control.request_id == action_id
    ]
    assert len(sent) <= 1
    if device.answer is None:
        assert ended["state"] in WAITING
    elif sent and sent[0] != device.answer:
        assert (ended["state"], ended["decision"]) == ("refused", sent[0])
    else:
        assert (ended["state"], ended["decision"]) == ("applied", device.answer)
    fresh = await scene.bo.get("/v1/approvals?status=all&limit=200")
    assert await replay(scene, scene.bo, old) == by_id(fresh)


def ensure_true(shown: Any, device: Device) -> None:
    """What a screen shows is never more than what is so."""
    if shown["state"] == "applied":
        assert device.applied == 1
        assert shown["decision"] == device.answer
    if "appliedAt" in shown:
        assert "sentAt" in shown
    if "sentAt" in shown:
        assert device.answer is not None
        assert "decidedAt" in shown


@pytest.mark.fault
@pytest.mark.nightly
@pytest.mark.requirement("hub.approvals.events")
@pytest.mark.requirement("hub.approvals.once")
@pytest.mark.timeout(TRIAL_SECONDS)
def test_two_deciders_lost_acknowledgements_and_restarts_come_to_one_answer(tmp_path: Path):
    """One Hub for all schedules; it is opened anew for each few of them."""
    schedules: list[list[str]] = []

    @given(st.lists(st.sampled_from(MOVES), min_size=3, max_size=10))
    @settings(
        max_examples=count_trials(full=2_000, share=12),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def collect(moves: list[str]) -> None:
        schedules.append(moves)

    collect()
    asyncio.run(play_all(tmp_path, schedules))


async def play_all(folder: Path, schedules: list[list[str]]) -> None:
    numbered = list(enumerate(schedules))
    found = links()
    async with running_hub(folder, approvals=found) as hub:
        await build_scene(hub, found)
    for start in range(0, len(numbered), 6):
        async with running_hub(folder, approvals=found) as hub:
            scene = await reopen(hub, found)
            for number, moves in numbered[start : start + 6]:
                await play(scene, number, moves)


async def reopen(hub: RunningHub, found: Any) -> Scene:
    ada, bo, eve = [await hub.sign_in(name) for name in ("Ada", "Bo", "Eve")]
    device = AskingDevice(hub.hub.services, ada.person_id)
    device.start_anew()
    return Scene(hub, device, ada, bo, eve, found)


@pytest.mark.fault
@pytest.mark.requirement("hub.approvals.killed")
@pytest.mark.parametrize(
    ("where", "state", "deliveries"), [("queued", "asked", 0), ("decided", "decided", 1)]
)
def test_a_kill_leaves_a_decision_with_its_delivery_or_neither(
    tmp_path: Path, where: str, state: str, deliveries: int
):
    found = asyncio.run(kill_and_read(tmp_path, where))
    assert (found["state"], len(found["queued"])) == (state, deliveries)
    assert found["after"] == "applied"


@pytest.mark.fault
@pytest.mark.requirement("hub.approvals.killed")
def test_a_delivery_that_is_queued_later_would_be_lost(tmp_path: Path):
    found = asyncio.run(kill_and_read(tmp_path, "torn"))
    assert (found["state"], found["queued"]) == ("decided", [])


async def kill_and_read(folder: Path, where: str) -> dict[str, Any]:
    """What is there after the kill, and what becomes of it once the device is back."""
    command = [sys.executable, "-m", "tests.hub.killed_approvals", str(folder), where]
    killed = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=240, check=False
    )
    assert killed.returncode == -9, killed.stderr
    approval_id = killed.stdout.strip()
    async with running_hub(folder, approvals=links()) as hub:
        ada = await hub.sign_in("Ada")
        device = AskingDevice(hub.hub.services, ada.person_id)
        device.start_anew()
        path = f"/v1/approvals/{approval_id}"
        before = await ada.get(path)
        queued = await device.queued()
        # The same decision again is one decision: it is queued once, whatever the kill left.
        body = {"decision": "allow", "argsHash": before["argsHash"]}
        await ada.post(f"{path}/decide", body, status=200)
        for delivery_id, _ in await device.queued():
            await device.acknowledge(delivery_id)
            await device.acknowledge(delivery_id)
        await device.resolve("act_1")
        await device.apply("act_1")
        await device.apply("act_1")
        after = await ada.get(path)
        assert len(await device.queued()) == (0 if where == "torn" else 1)
    return {"state": before["state"], "queued": queued, "after": after["state"]}
