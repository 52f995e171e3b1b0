"""Projects and conversations: where threads belong."""

from typing import TYPE_CHECKING

from factwire.edge.records.rows import Conversation, Project
from factwire.facts import Fact, id_of
from factwire.projection.reading import word

if TYPE_CHECKING:
    from factwire.edge.records.records import Records


def _project(records: "Records", seq: int, fact: Fact) -> None:
    project_id = id_of(fact, "projectId")
    if project_id is None:
        return
    said = fact.payload
    row = records.projects.get(project_id) or records.projects.add(
        project_id,
        Project(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            project_id=project_id,
            name=word(said, "name") or project_id,
        ),
    )
    row.updated_at = fact.created_at
    row.name = word(said, "name") or row.name
    row.work_dir = word(said, "workDir") or row.work_dir


def _project_gone(records: "Records", _: int, fact: Fact) -> None:
    project_id = id_of(fact, "projectId")
    if project_id is not None:
        records.projects.remove(project_id)


def _conversation(records: "Records", seq: int, fact: Fact) -> None:
    conversation_id = id_of(fact, "conversationId")
    if conversation_id is None or records.conversations.get(conversation_id) is not None:
        return
    records.conversations.add(
        conversation_id,
        Conversation(
            seq=seq,
            created_at=fact.created_at,
            updated_at=fact.created_at,
            conversation_id=conversation_id,
            title=word(fact.payload, "title"),
            project_id=id_of(fact, "projectId"),
        ),
    )


def _member(records: "Records", _: int, fact: Fact) -> None:
    row = records.conversations.get(id_of(fact, "conversationId") or "")
    member_id = word(fact.payload, "memberId")
    if row is not None and member_id is not None:
        row.members[member_id] = word(fact.payload, "memberType") or "unknown"
        row.updated_at = fact.created_at


HANDLERS = {
    "project.created": _project,
    "project.updated": _project,
    "project.deleted": _project_gone,
    "conversation.created": _conversation,
    "conversation.member.added": _member,
}
