"""Payloads about what an Edge keeps: projects, conversations, threads, items, artifacts."""

from typing import Any, Literal

from factwire.edge.events.payload import EventPayload


class Project(EventPayload, frozen=True):
    """A folder of work on this machine."""

    project_id: str
    name: str | None = None
    work_dir: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ProjectGone(EventPayload, frozen=True):
    """A project that is no more."""

    project_id: str


class Conversation(EventPayload, frozen=True):
    """A place where people and agents talk."""

    conversation_id: str
    project_id: str | None = None
    title: str | None = None
    created_at: str | None = None


class Member(EventPayload, frozen=True):
    """Somebody who joined a conversation; `member_type` is user, agent or another word."""

    conversation_id: str
    member_id: str
    member_type: str


class Thread(EventPayload, frozen=True):
    """A thread, or what changed about it; `status` is active or archived."""

    thread_id: str
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ThreadGone(EventPayload, frozen=True):
    """A thread that was deleted."""

    thread_id: str


class ThreadFork(EventPayload, frozen=True):
    """A thread that begins where another one stood."""

    thread_id: str
    parent_thread_id: str
    from_item_id: str | None = None
    project_id: str | None = None
    title: str | None = None


class ItemContent(EventPayload, frozen=True):
    """What an item holds, by its type. `text` of an agent's message replaces what was streamed;
    `input_delta` is the next piece of a call's input; `refs` name what is elsewhere.
    """

    text: str | None = None
    tool_name: str | None = None
    input: Any = None
    input_delta: str | None = None
    output: Any = None
    output_ref: str | None = None
    is_error: bool | None = None
    exit_code: int | None = None
    failure_category: str | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    refs: list[str] | None = None


class Item(EventPayload, frozen=True):
    """One thing in a thread. `type` is user_message, agent_message, tool, run or another word; a
    `subagent_id` says that it is not the main agent's.
    """

    item_id: str
    type: str
    status: str
    project_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    role: str | None = None
    content: ItemContent | None = None
    subagent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class Runner(EventPayload, frozen=True):
    """Where runs happen, under the name that older clients know."""

    runner_id: str


class Artifact(EventPayload, frozen=True):
    """A thing that a run made; its content is behind refs. `status` is what its facts say."""

    artifact_id: str
    status: str
    run_id: str | None = None
    kind: str | None = None
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None
    preview_ref: str | None = None
    diff_ref: str | None = None
    export_ref: str | None = None
    message: str | None = None
    failure_category: str | None = None


class Preview(EventPayload, frozen=True):
    """A look at what a run made: a server with a `url`, or an artifact's preview behind `ref`."""

    preview_id: str
    status: Literal["ready", "stopped"]
    run_id: str | None = None
    artifact_id: str | None = None
    url: str | None = None
    ref: str | None = None
