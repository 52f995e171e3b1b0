"""A Hub that kills itself while somebody decides: `python -m tests.hub.killed_approvals FOLDER
WHERE`, with WHERE `queued` (inside of the transaction, with the delivery in the queue), `decided`
(after the commit, before the answer) or `torn`: there, the delivery is queued after the commit, as
it must not be.
"""

import asyncio
import os
import sys
from pathlib import Path
from signal import SIGKILL

from factwire.edge.hub_frames import EdgeControl
from factwire.hub.approvals.approval_decisions import decide
from factwire.hub.approvals.approval_resources import DecideBody
from factwire.hub.frames.event_log import HubChange
from factwire.hub.people.accounts import HubCaller
from factwire.hub.records.invitation_records import ActionOrigin
from tests.hub.asking_devices import AskingDevice, TableOutbox, links
from tests.hub.hubs import running_hub


def die() -> None:
    os.kill(os.getpid(), SIGKILL)


class DyingOutbox(TableOutbox):
    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    async def send_decision(
        self, change: HubChange, device_id: str, approval_id: str, control: EdgeControl
    ) -> str:
        if self.where == "torn":
            return "dlv_later"
        delivery_id = await super().send_decision(change, device_id, approval_id, control)
        if self.where == "queued":
            die()
        return delivery_id


async def run(folder: Path, where: str) -> None:
    async with running_hub(folder, approvals=links(DyingOutbox(where))) as hub:
        ada = await hub.first_admin()
        device = AskingDevice(hub.hub.services, ada.person_id)
        await device.join()
        await device.ask("act_1")
        approval = (await ada.get("/v1/approvals"))["items"][0]
        sys.stdout.write(f"{approval['approvalId']}\n")
        sys.stdout.flush()
        caller = HubCaller(
            person_id=ada.person_id, session_id=ada.session_id, name="Ada", role="admin"
        )
        body = DecideBody(decision="allow", args_hash=approval["argsHash"])
        origin = ActionOrigin(via="api", address="127.0.0.1")
        await decide(hub.hub.services, caller, approval["approvalId"], body, origin)
        die()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
