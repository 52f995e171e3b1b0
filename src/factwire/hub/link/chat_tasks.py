"""What chats and tasks are to each other: a message that names an agent gives it a task, and what
the agent says for the task is one message of the chat. Rights are those of the person who writes.
"""

from typing import Any, TypedDict, Unpack

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import AgentTask
from factwire.hub.chats.chat_links import ThreadRight
from factwire.hub.chats.chat_messages import upsert_agent_message
from factwire.hub.frames.event_log import HubChange
from factwire.hub.link.agent_tasks import NewTask, apply_target, create_task, find_device
from factwire.hub.records.device_tables import edges
from factwire.hub.records.grant_records import may_access
from factwire.hub.records.invitation_records import ActionOrigin


class ChatTask(TypedDict):
    """A task that a message asks for."""

    person_id: str
    device_id: str
    agent_type: str
    prompt: str
    target_id: str | None
    thread_id: str | None
    screen_id: str
    session_id: str
    agent_instance_id: str
    trigger_message_id: str
    display_name: str
    origin: ActionOrigin


class ChatTasks:
    """Implements `ChatLinks` with the devices, grants and tasks of a Hub."""

    async def create_task(self, change: HubChange, **task: Unpack[ChatTask]) -> str:
        """Queue a task in the transaction of a change; raises `Problem`."""
        fields: dict[str, Any] = {**task}
        origin: ActionOrigin = fields.pop("origin")
        return (await create_task(change, NewTask(**fields), origin)).task_id

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
        await find_device(connection, person_id, device_id, "operator", target_id=target_id)
        new = NewTask(
            person_id=person_id,
            device_id=device_id,
            agent_type=agent_type,
            target_id=target_id,
            prompt="",
        )
        await apply_target(connection, new)

    async def may_access_thread(
        self,
        connection: AsyncConnection,
        person_id: str,
        edge_id: str,
        thread_id: str,
        needed: ThreadRight,
    ) -> bool:
        """Whether somebody may see a mirrored thread, or comment on it."""
        query = select(edges.c.edge_id).where(
            edges.c.edge_id == edge_id,
            may_access(person_id, needed, edges.c.edge_id, thread_id=thread_id),
        )
        return (await connection.execute(query)).first() is not None


async def keep_chat_current(change: HubChange, task: AgentTask, text: str, final: bool) -> None:  # noqa: FBT001 - as tasks call it
    """Have the chat of a task show what its agent has said so far."""
    if task.session_id is not None:
        await upsert_agent_message(
            change, task.task_id, task.session_id, task.agent_instance_id, text, final=final
        )
