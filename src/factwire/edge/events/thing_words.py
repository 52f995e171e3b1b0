"""The Edge's own facts: their class is their type, their payload is read as strictly as any."""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from factwire.edge.events.ids import run_id_of, sent_at, thread_id_of
from factwire.edge.events.payload import EventPayload
from factwire.edge.events.run_payloads import PersistenceError
from factwire.edge.events.thing_payloads import (
    Conversation,
    Item,
    ItemContent,
    Member,
    Preview,
    Project,
    ProjectGone,
    Runner,
    Thread,
    ThreadFork,
    ThreadGone,
)
from factwire.edge.events.word import Said, Table, Words, alike
from factwire.facts import Fact
from factwire.facts.edge_payloads import (
    ConversationRecord,
    ItemRecord,
    MemberRecord,
    PersistenceFailure,
    PreviewRecord,
    ProjectRecord,
    RunnerRecord,
    ThreadForkRecord,
    ThreadRecord,
)
from factwire.facts.payloads import Payload
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.reading import other_id, read, subagent_of, table

_Build = Callable[[Fact], EventPayload | None]


def _taken(fact: Fact, record: type[Payload], *names: str) -> dict[str, Any]:
    """The fields called `names` of a record."""
    said = read(fact, record)
    return {name: getattr(said, name) for name in names}


def _project(fact: Fact) -> Project | None:
    project = other_id(fact, "projectId", "project_id")
    if project is None:
        return None
    names = ("name", "work_dir", "created_at", "updated_at")
    return Project(project_id=project, **_taken(fact, ProjectRecord, *names))


def _project_gone(fact: Fact) -> ProjectGone | None:
    project = other_id(fact, "projectId", "project_id")
    return None if project is None else ProjectGone(project_id=project)


def _conversation(fact: Fact) -> Conversation | None:
    conversation = other_id(fact, "conversationId", "conversation_id")
    if conversation is None:
        return None
    return Conversation(
        conversation_id=conversation,
        project_id=other_id(fact, "projectId", "project_id"),
        **_taken(fact, ConversationRecord, "title", "created_at"),
    )


def _member(fact: Fact) -> Member | None:
    conversation = other_id(fact, "conversationId", "conversation_id")
    said = read(fact, MemberRecord)
    if conversation is None or not said.member_id:
        return None
    return Member(
        conversation_id=conversation,
        member_id=said.member_id,
        member_type=said.member_type or UNKNOWN,
    )


def _thread(fact: Fact) -> Thread | None:
    thread = thread_id_of(fact)
    if thread is None:
        return None
    return Thread(
        thread_id=thread,
        project_id=other_id(fact, "projectId", "project_id"),
        conversation_id=other_id(fact, "conversationId", "conversation_id"),
        agent_id=other_id(fact, "agentId", "agent_id"),
        **_taken(fact, ThreadRecord, "title", "status", "created_at", "updated_at"),
    )


def _thread_gone(fact: Fact) -> ThreadGone | None:
    thread = thread_id_of(fact)
    return None if thread is None else ThreadGone(thread_id=thread)


def _fork(fact: Fact) -> ThreadFork | None:
    thread, parent = thread_id_of(fact), other_id(fact, "parentThreadId", "parent_thread_id")
    if thread is None or parent is None:
        return None
    return ThreadFork(
        thread_id=thread,
        parent_thread_id=parent,
        project_id=other_id(fact, "projectId", "project_id"),
        **_taken(fact, ThreadForkRecord, "from_item_id", "title"),
    )


def _item(fact: Fact) -> Item | None:
    item = other_id(fact, "itemId", "item_id")
    if item is None:
        return None
    said = read(fact, ItemRecord)
    is_message = fact.event_class == "message.created"
    return Item(
        item_id=item,
        type=said.type or ("user_message" if is_message else UNKNOWN),
        status=said.status or fact.status,
        project_id=other_id(fact, "projectId", "project_id"),
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        role=said.role,
        content=_content(said.content),
        subagent_id=subagent_of(fact),
        created_at=said.created_at or sent_at(fact.created_at),
        updated_at=said.updated_at or sent_at(fact.created_at),
    )


def _content(value: object) -> ItemContent | None:
    """What an item holds; fields of a wrong type are left out."""
    said = table(value)
    if said is None:
        return None
    sound: dict[str, Any] = {}
    for field in msgspec.structs.fields(ItemContent):
        try:
            sound[field.name] = msgspec.convert(said.get(field.encode_name), field.type)
        except msgspec.ValidationError:
            continue
    return ItemContent(**sound)


def _runner(fact: Fact) -> Runner | None:
    runner = read(fact, RunnerRecord).runner_id
    return Runner(runner_id=runner) if runner else None


def _persistence(fact: Fact) -> PersistenceError | None:
    run, said = run_id_of(fact), read(fact, PersistenceFailure)
    if run is None:
        return None
    return PersistenceError(run_id=run, error=said.error or fact.detail or UNKNOWN)


def _preview(status: Literal["ready", "stopped"]) -> _Build:
    def build(fact: Fact) -> Preview | None:
        said = read(fact, PreviewRecord)
        if not said.preview_id:
            return None
        return Preview(
            preview_id=said.preview_id,
            status=status,
            run_id=run_id_of(fact),
            artifact_id=other_id(fact, "artifactId", "artifact_id"),
            url=said.url,
        )

    return build


def _own(name: str, build: _Build) -> Words:
    def tell(fact: Fact) -> Said | None:
        payload = build(fact)
        return None if payload is None else (name, payload)

    return alike(tell, name)


_BUILDS: Final[dict[str, _Build]] = {
    "project.created": _project,
    "project.updated": _project,
    "project.deleted": _project_gone,
    "conversation.created": _conversation,
    "conversation.member.added": _member,
    "thread.created": _thread,
    "thread.updated": _thread,
    "thread.deleted": _thread_gone,
    "thread.forked": _fork,
    "message.created": _item,
    "item.created": _item,
    "item.updated": _item,
    "runner.online": _runner,
    "runner.offline": _runner,
    "run.persistence_error": _persistence,
    "preview.ready": _preview("ready"),
    "preview.stopped": _preview("stopped"),
}

THING_WORDS: Final[Table] = {name: _own(name, build) for name, build in _BUILDS.items()}
