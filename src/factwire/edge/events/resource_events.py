"""The Edge's own facts: their class is their type, their payload is read as strictly as any."""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from factwire.facts import Fact, Person, to_person
from factwire.facts.classes.payloads import (
    ConversationPayload,
    ItemPayload,
    MemberPayload,
    Payload,
    PersistenceFailurePayload,
    PreviewPayload,
    ProjectPayload,
    RunnerPayload,
    ThreadForkPayload,
    ThreadPayload,
)
from factwire.facts.json_values import object_at, text_at
from factwire.facts.resources import Item, ItemContent
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.payload_fields import other_id, read_payload, subagent_of
from factwire.serving.envelopes import (
    EventPayload,
    MappingTable,
    TypedPayload,
    ViewMappings,
    map_both_views,
    run_id_of,
    sent_at,
    thread_id_of,
)


class PersistenceError(EventPayload, frozen=True):
    """The journal refused facts of a run: what it did from here on is not on record."""

    run_id: str
    error: str


class ProjectEvent(EventPayload, frozen=True):
    """A folder of work on this machine; `by` is who made or changed it."""

    project_id: str
    name: str | None = None
    work_dir: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | None = None


class ProjectGone(EventPayload, frozen=True):
    """A project that is no more; `by` is who removed it."""

    project_id: str
    by: Person | None = None


class ConversationEvent(EventPayload, frozen=True):
    """A place where people and agents talk; `by` is who made it."""

    conversation_id: str
    project_id: str | None = None
    title: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | None = None


class Member(EventPayload, frozen=True):
    """Somebody who joined a conversation; `member_type` is user, agent or another word, and `by` is
    who added them.
    """

    conversation_id: str
    member_id: str
    member_type: str
    by: Person | None = None


class ThreadEvent(EventPayload, frozen=True):
    """A thread, or what changed about it; `status` is active or archived, `by` is who did it. The
    facts of a `private` thread stay on its Edge.
    """

    thread_id: str
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    private: bool | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | None = None


class ThreadGone(EventPayload, frozen=True):
    """A thread that was deleted, and `by` whom."""

    thread_id: str
    by: Person | None = None


class ThreadFork(EventPayload, frozen=True):
    """A thread that begins where another one stood."""

    thread_id: str
    parent_thread_id: str
    from_item_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | None = None


class Runner(EventPayload, frozen=True):
    """Where runs happen, under the name that older clients know."""

    runner_id: str


class PreviewEvent(EventPayload, frozen=True):
    """A look at what a run made: a server with a `url`, or an artifact's preview behind `ref`; `by`
    is who started or stopped it, if it was a person.
    """

    preview_id: str
    status: Literal["ready", "stopped"]
    run_id: str | None = None
    artifact_id: str | None = None
    url: str | None = None
    ref: str | None = None
    by: Person | None = None


_Build = Callable[[Fact], EventPayload | None]


def _take_fields(fact: Fact, record: type[Payload], *names: str) -> dict[str, Any]:
    """The fields called `names` of a record."""
    fields = read_payload(fact, record)
    return {name: getattr(fields, name) for name in names}


def _build_project(fact: Fact) -> ProjectEvent | None:
    project = other_id(fact, "projectId", "project_id")
    if project is None:
        return None
    fields = _take_fields(fact, ProjectPayload, "name", "work_dir")
    times = _read_times(fact, "project.created")
    return ProjectEvent(project_id=project, by=_person_of(fact), **fields, **times)


def _person_of(fact: Fact) -> Person | None:
    return to_person(fact.payload.get("by"))


def _read_times(fact: Fact, creation: str) -> dict[str, str]:
    """When the row of a fact was made and changed: the fact itself is the latest change of it, and
    the first where it is its creation.
    """
    changed = sent_at(fact.created_at)
    times = {"updated_at": text_at(fact.payload, "updatedAt") or changed}
    made = text_at(fact.payload, "createdAt") or (changed if fact.event_class == creation else None)
    return times if made is None else {"created_at": made, **times}


def _build_project_gone(fact: Fact) -> ProjectGone | None:
    project = other_id(fact, "projectId", "project_id")
    return None if project is None else ProjectGone(project_id=project, by=_person_of(fact))


def _build_conversation(fact: Fact) -> ConversationEvent | None:
    conversation = other_id(fact, "conversationId", "conversation_id")
    if conversation is None:
        return None
    return ConversationEvent(
        conversation_id=conversation,
        project_id=other_id(fact, "projectId", "project_id"),
        by=_person_of(fact),
        **_take_fields(fact, ConversationPayload, "title"),
        **_read_times(fact, "conversation.created"),
    )


def _build_member(fact: Fact) -> Member | None:
    conversation = other_id(fact, "conversationId", "conversation_id")
    fields = read_payload(fact, MemberPayload)
    if conversation is None or not fields.member_id:
        return None
    return Member(
        conversation_id=conversation,
        member_id=fields.member_id,
        member_type=fields.member_type or UNKNOWN,
        by=_person_of(fact),
    )


def _build_thread(fact: Fact) -> ThreadEvent | None:
    thread = thread_id_of(fact)
    if thread is None:
        return None
    return ThreadEvent(
        thread_id=thread,
        project_id=other_id(fact, "projectId", "project_id"),
        conversation_id=other_id(fact, "conversationId", "conversation_id"),
        agent_id=other_id(fact, "agentId", "agent_id"),
        private=True if fact.payload.get("private") is True else None,
        by=_person_of(fact),
        **_take_fields(fact, ThreadPayload, "title", "status"),
        **_read_times(fact, "thread.created"),
    )


def _build_thread_gone(fact: Fact) -> ThreadGone | None:
    thread = thread_id_of(fact)
    return None if thread is None else ThreadGone(thread_id=thread, by=_person_of(fact))


def _build_thread_fork(fact: Fact) -> ThreadFork | None:
    thread, parent = thread_id_of(fact), other_id(fact, "parentThreadId", "parent_thread_id")
    if thread is None or parent is None:
        return None
    return ThreadFork(
        thread_id=thread,
        parent_thread_id=parent,
        project_id=other_id(fact, "projectId", "project_id"),
        status=text_at(fact.payload, "status") or "active",
        agent_id=other_id(fact, "agentId", "agent_id"),
        by=_person_of(fact),
        **_take_fields(fact, ThreadForkPayload, "from_item_id", "title"),
        **_read_times(fact, "thread.forked"),
    )


def _build_item(fact: Fact) -> Item | None:
    item = other_id(fact, "itemId", "item_id")
    if item is None:
        return None
    fields = read_payload(fact, ItemPayload)
    is_message = fact.event_class == "message.created"
    return Item(
        item_id=item,
        type=fields.type or ("user_message" if is_message else UNKNOWN),
        status=fields.status or fact.status,
        project_id=other_id(fact, "projectId", "project_id"),
        thread_id=thread_id_of(fact),
        run_id=run_id_of(fact),
        role=fields.role,
        content=_build_item_content(fields.content),
        subagent_id=subagent_of(fact),
        created_at=fields.created_at or sent_at(fact.created_at),
        updated_at=fields.updated_at or sent_at(fact.created_at),
    )


def _build_item_content(value: object) -> ItemContent | None:
    """What an item holds; fields of a wrong type are left out."""
    payload = object_at(value)
    if payload is None:
        return None
    sound: dict[str, Any] = {}
    for field in msgspec.structs.fields(ItemContent):
        try:
            sound[field.name] = msgspec.convert(payload.get(field.encode_name), field.type)
        except msgspec.ValidationError:
            continue
    return ItemContent(**sound)


def _build_runner(fact: Fact) -> Runner | None:
    runner = read_payload(fact, RunnerPayload).runner_id
    return Runner(runner_id=runner) if runner else None


def _build_persistence_error(fact: Fact) -> PersistenceError | None:
    run, fields = run_id_of(fact), read_payload(fact, PersistenceFailurePayload)
    if run is None:
        return None
    return PersistenceError(run_id=run, error=fields.error or fact.detail or UNKNOWN)


def _preview_builder(status: Literal["ready", "stopped"]) -> _Build:
    def build(fact: Fact) -> PreviewEvent | None:
        fields = read_payload(fact, PreviewPayload)
        if not fields.preview_id:
            return None
        return PreviewEvent(
            preview_id=fields.preview_id,
            status=status,
            run_id=run_id_of(fact),
            artifact_id=other_id(fact, "artifactId", "artifact_id"),
            url=fields.url,
            by=_person_of(fact),
        )

    return build


def _own_mapping(name: str, build: _Build) -> ViewMappings:
    def to_event(fact: Fact) -> TypedPayload | None:
        payload = build(fact)
        return None if payload is None else (name, payload)

    return map_both_views(to_event, name)


_BUILDERS: Final[dict[str, _Build]] = {
    "project.created": _build_project,
    "project.updated": _build_project,
    "project.deleted": _build_project_gone,
    "conversation.created": _build_conversation,
    "conversation.member.added": _build_member,
    "thread.created": _build_thread,
    "thread.updated": _build_thread,
    "thread.deleted": _build_thread_gone,
    "thread.forked": _build_thread_fork,
    "message.created": _build_item,
    "item.created": _build_item,
    "item.updated": _build_item,
    "runner.online": _build_runner,
    "runner.offline": _build_runner,
    "run.persistence_error": _build_persistence_error,
    "preview.ready": _preview_builder("ready"),
    "preview.stopped": _preview_builder("stopped"),
}

RESOURCE_EVENTS: Final[MappingTable] = {
    name: _own_mapping(name, build) for name, build in _BUILDERS.items()
}
