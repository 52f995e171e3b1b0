"""Projects: a name and a folder that runs may work in."""

from typing import Any

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import Conversation, Project


async def create(
    machine: Machine, project_id: str, name: str, work_dir: str | None, trace_id: str
) -> Project:
    """Make a project; one with this id already is the one that was asked for before."""
    known = machine.records.projects.get(project_id)
    if known is not None:
        return known
    payload: dict[str, Any] = {"name": name}
    if work_dir is not None:
        payload["workDir"] = str(machine.runtime.workspaces.real(work_dir))
    await _say(machine, "project.created", project_id, payload, trace_id)
    return find(machine, project_id)


async def change(
    machine: Machine, project_id: str, changes: dict[str, str], trace_id: str
) -> Project:
    """Rename a project, or give it another folder."""
    find(machine, project_id)
    payload: dict[str, Any] = dict(changes)
    if "workDir" in changes:
        payload["workDir"] = str(machine.runtime.workspaces.real(changes["workDir"]))
    if payload:
        await _say(machine, "project.updated", project_id, payload, trace_id)
    return find(machine, project_id)


async def delete(machine: Machine, project_id: str, trace_id: str) -> None:
    """Take a project off the list; refused while active threads belong to it."""
    find(machine, project_id)
    threads = machine.records.threads.newest()
    if any(row.project_id == project_id and row.status == "active" for row in threads):
        raise Problem(
            409,
            "project_in_use",
            "active threads belong to this project; archive or delete them first",
        )
    await _say(machine, "project.deleted", project_id, {}, trace_id)


def find(machine: Machine, project_id: str) -> Project:
    """A project; raises `Problem`."""
    row = machine.records.projects.get(project_id)
    if row is None:
        raise Problem(404, "unknown_project", "no project has this id")
    return row


async def _say(
    machine: Machine, event_class: str, project_id: str, payload: dict[str, Any], trace_id: str
) -> None:
    said = {"projectId": project_id, **payload}
    await machine.append(machine.fact(event_class, said, trace_id, project_id=project_id))


async def converse(
    machine: Machine,
    conversation_id: str,
    title: str | None,
    project_id: str | None,
    trace_id: str,
) -> Conversation:
    """Make a conversation; one with this id already is the one that was asked for before."""
    known = machine.records.conversations.get(conversation_id)
    if known is not None:
        return known
    if project_id is not None:
        find(machine, project_id)
    said = {"conversationId": conversation_id, "title": title, "projectId": project_id}
    payload = {name: value for name, value in said.items() if value is not None}
    ids = {"conversation_id": conversation_id, "project_id": project_id}
    await machine.append(machine.fact("conversation.created", payload, trace_id, **ids))
    return machine.records.conversations.rows[conversation_id]


async def join(
    machine: Machine, conversation_id: str, member_id: str, member_type: str, trace_id: str
) -> Conversation:
    """Add a member to a conversation."""
    payload = {
        "conversationId": conversation_id,
        "memberId": member_id,
        "memberType": member_type,
    }
    ids = {"conversation_id": conversation_id}
    await machine.append(machine.fact("conversation.member.added", payload, trace_id, **ids))
    return machine.records.conversations.rows[conversation_id]
