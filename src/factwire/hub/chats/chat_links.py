"""What chats use of other parts of a Hub: devices and their grants, and tasks of agents.

A Hub without it has chats among people alone: no agent can be added, and there is no chat of a
thread.
"""

from typing import Literal, Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.frames.event_log import HubChange
from factwire.hub.records.invitation_records import ActionOrigin

ThreadRight = Literal["viewer", "commenter"]


class ChatLinks(Protocol):
    """Devices, threads and tasks, as far as chats need them."""

    async def create_task(
        self,
        change: HubChange,
        *,
        person_id: str,
        device_id: str,
        agent_type: str,
        prompt: str,
        target_id: str | None,
        thread_id: str | None,
        screen_id: str,
        session_id: str,
        agent_instance_id: str,
        trigger_message_id: str,
        display_name: str,
        origin: ActionOrigin,
    ) -> str:
        """Queue a task in the transaction of a change, by the rights of the person; the id of the
        task. Raises `Problem` where the person may not, or the device does not offer the agent.
        """
        ...

    async def ensure_operator(
        self,
        connection: AsyncConnection,
        *,
        person_id: str,
        device_id: str,
        agent_type: str,
        target_id: str | None,
    ) -> None:
        """Raises `Problem` where somebody may not give tasks to an agent of a device, or of a
        target of it.
        """
        ...

    async def may_access_thread(
        self,
        connection: AsyncConnection,
        person_id: str,
        edge_id: str,
        thread_id: str,
        needed: ThreadRight,
    ) -> bool:
        """Whether somebody may see a mirrored thread, or comment on it."""
        ...
