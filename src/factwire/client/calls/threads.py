"""Threads: their list, their conversation, their state, and what waits on them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from factwire.client.address import path_of, query_of
from factwire.client.call import Answer, Call, delete, get, given, json, nothing, patch, post
from factwire.client.resources import (
    Activity,
    Item,
    Page,
    QueuedRun,
    ReadModel,
    Run,
    Steered,
    Thread,
    ThreadState,
    ThreadStatus,
)

Input = Sequence[Mapping[str, Any]]
"""Parts of a prompt beside its text, in the form of the input contract."""


class _Started(msgspec.Struct):
    run: Run


class _Said(msgspec.Struct):
    steered: Steered


def threads(
    *,
    project_id: str | None = None,
    status: ThreadStatus | None = None,
    activity: Activity | None = None,
    search: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[Thread]]:
    """Threads, newest first; `search` is words of a title or the start of an id."""
    query = query_of(
        project_id=project_id,
        status=status,
        activity=activity,
        search=search,
        cursor=cursor,
        limit=limit,
    )
    return get(path_of("threads"), json(Page[Thread]), query)


def create_thread(
    *,
    title: str | None = None,
    project_id: str | None = None,
    conversation_id: str | None = None,
    agent_id: str | None = None,
) -> Call[Thread]:
    """Make a thread."""
    body = given(
        title=title, projectId=project_id, conversationId=conversation_id, agentId=agent_id
    )
    return post(path_of("threads"), json(Thread), body)


def thread(thread_id: str) -> Call[Thread]:
    """One thread."""
    return get(path_of("threads", thread_id), json(Thread))


def change_thread(
    thread_id: str, *, title: str | None = None, status: ThreadStatus | None = None
) -> Call[Thread]:
    """Rename a thread, archive it or take it out of the archive."""
    return patch(path_of("threads", thread_id), json(Thread), given(title=title, status=status))


def delete_thread(thread_id: str) -> Call[None]:
    """Take a thread off every list."""
    return delete(path_of("threads", thread_id), nothing)


def archive_thread(thread_id: str) -> Call[Thread]:
    """Put a thread into the archive."""
    return post(f"{path_of('threads', thread_id)}:archive", json(Thread))


def fork_thread(
    thread_id: str,
    *,
    from_item_id: str | None = None,
    at: str | None = None,
    title: str | None = None,
) -> Call[Thread]:
    """Make a thread that begins with this one's conversation, to an item or a cursor, or all."""
    body = given(fromItemId=from_item_id, at=at, title=title)
    return post(f"{path_of('threads', thread_id)}:fork", json(Thread), body)


def items(
    thread_id: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[Page[Item]]:
    """What was said and done on a thread, oldest first."""
    return get(
        path_of("threads", thread_id, "items"),
        json(Page[Item]),
        query_of(cursor=cursor, limit=limit),
    )


def state(thread_id: str, *, at: str | None = None) -> Call[ThreadState]:
    """The whole state of a thread, now or as it was at a cursor."""
    return get(path_of("threads", thread_id, "projection"), json(ThreadState), query_of(at=at))


def read_model(thread_id: str, *, at: str | None = None) -> Call[ReadModel]:
    """What a first screen of a thread needs, now or as it was at a cursor."""
    return get(path_of("threads", thread_id, "read-model"), json(ReadModel), query_of(at=at))


def send_message(
    thread_id: str,
    text: str,
    *,
    agent_id: str | None = None,
    input: Input | None = None,  # noqa: A002 - the name of the contract
    options: Mapping[str, Any] | None = None,
    mode: Literal["queue", "refuse"] = "queue",
) -> Call[Run]:
    """Say something to an agent: a run starts, or waits behind the one that is under way."""
    body = given(text=text, agentId=agent_id, input=input, options=options, mode=mode)
    return post(path_of("threads", thread_id, "messages"), _run, body)


def steer(
    thread_id: str,
    text: str,
    *,
    input: Input | None = None,  # noqa: A002 - the name of the contract
) -> Call[Steered]:
    """Say something to the run that is under way."""
    body = given(text=text, input=input, mode="steer")
    return post(path_of("threads", thread_id, "messages"), _steered, body)


def queue(thread_id: str) -> Call[list[QueuedRun]]:
    """What waits on a thread, next first."""
    return get(path_of("threads", thread_id, "queue"), json(list[QueuedRun]))


def promote(thread_id: str, run_id: str) -> Call[list[QueuedRun]]:
    """Let a waiting run go first."""
    return post(f"{_waiting(thread_id, run_id)}:promote", json(list[QueuedRun]))


def steer_queued(thread_id: str, run_id: str) -> Call[list[QueuedRun]]:
    """Say to the run that is under way what a waiting one was to be asked."""
    return post(f"{_waiting(thread_id, run_id)}:steer", json(list[QueuedRun]))


def remove_queued(thread_id: str, run_id: str) -> Call[list[QueuedRun]]:
    """Take a run out of the queue; it never starts."""
    return delete(_waiting(thread_id, run_id), json(list[QueuedRun]))


def _waiting(thread_id: str, run_id: str) -> str:
    return path_of("threads", thread_id, "queue", run_id)


def _run(answer: Answer) -> Run:
    return msgspec.json.decode(answer.body, type=_Started).run


def _steered(answer: Answer) -> Steered:
    return msgspec.json.decode(answer.body, type=_Said).steered
