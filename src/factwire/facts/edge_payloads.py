"""Payloads of the Edge's own facts: what its routes write down, as its records read it back."""

from typing import Any

from factwire.facts.payloads import Payload


class ProjectRecord(Payload):
    """project.*: a folder of work; `work_dir` is where its runs happen."""

    project_id: str | None = None
    name: str | None = None
    work_dir: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ConversationRecord(Payload):
    """conversation.created: a place where people and agents talk."""

    conversation_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    created_at: str | None = None


class MemberRecord(Payload):
    """conversation.member.added: who joined."""

    conversation_id: str | None = None
    member_id: str | None = None
    member_type: str | None = None


class ThreadRecord(Payload):
    """thread.created, thread.updated, thread.deleted: a thread; `status` is active or archived."""

    thread_id: str | None = None
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ThreadForkRecord(Payload):
    """thread.forked: a thread that begins where another one stood."""

    thread_id: str | None = None
    parent_thread_id: str | None = None
    from_item_id: str | None = None
    project_id: str | None = None
    title: str | None = None


class ItemRecord(Payload):
    """message.created, item.*: one thing in a thread; `content` is an object."""

    item_id: str | None = None
    project_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    type: str | None = None
    role: str | None = None
    status: str | None = None
    content: dict[str, Any] | None = None
    created_at: str | None = None
    updated_at: str | None = None


class RunnerRecord(Payload):
    """runner.online, runner.offline: a place where runs happen."""

    runner_id: str | None = None


class PersistenceFailure(Payload):
    """run.persistence_error: the journal refused facts of a run."""

    run_id: str | None = None
    error: str | None = None


class PreviewRecord(Payload):
    """preview.*: a server of what a run made, on an origin of its own."""

    preview_id: str | None = None
    run_id: str | None = None
    artifact_id: str | None = None
    url: str | None = None
    status: str | None = None
