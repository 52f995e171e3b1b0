"""`AsyncClient`: an Edge as an object whose methods are its addresses."""

import os
from collections.abc import Iterable
from typing import Any, Literal, Self
from weakref import WeakSet

from factwire.client.address import read_address
from factwire.client.asynchronous.sending import Sender
from factwire.client.asynchronous.streams import AsyncStream
from factwire.client.asynchronous.verbs import Fetching, Listing, Verb
from factwire.client.calls import past as past_calls
from factwire.client.calls import projects as project_calls
from factwire.client.calls import runs as run_calls
from factwire.client.calls import service as service_calls
from factwire.client.calls import things as thing_calls
from factwire.client.calls import threads as thread_calls
from factwire.client.calls.past import View
from factwire.client.frames import Delta, Event, PlacedFact, Snapshot
from factwire.client.limits import RECONNECT_SECONDS, RETRY_SECONDS
from factwire.client.link import Link
from factwire.client.stream import events_course, facts_course, named, projection_course
from factwire.client.tokens import find_token


class AsyncClient:
    """A client for one Edge; close it, or use it with `async with`.

    The token is `token`, or the one that an Edge on this machine keeps in its folder `data`, or
    FACTWIRE_TOKEN. What is safe to send again is tried for `retry_seconds`; a stream that was cut
    comes back for `reconnect_seconds` before its reader hears of it.
    """

    health = Verb(service_calls.health)
    agents = Verb(service_calls.agents)
    create_ticket = Verb(service_calls.create_ticket)
    metrics = Verb(service_calls.metrics)
    openapi = Verb(service_calls.openapi)
    asyncapi = Verb(service_calls.asyncapi)

    projects = Listing(project_calls.projects)
    create_project = Verb(project_calls.create_project)
    project = Verb(project_calls.project)
    change_project = Verb(project_calls.change_project)
    delete_project = Verb(project_calls.delete_project)
    conversations = Listing(project_calls.conversations)
    create_conversation = Verb(project_calls.create_conversation)
    add_member = Verb(project_calls.add_member)

    threads = Listing(thread_calls.threads)
    create_thread = Verb(thread_calls.create_thread)
    thread = Verb(thread_calls.thread)
    change_thread = Verb(thread_calls.change_thread)
    delete_thread = Verb(thread_calls.delete_thread)
    archive_thread = Verb(thread_calls.archive_thread)
    fork_thread = Verb(thread_calls.fork_thread)
    items = Listing(thread_calls.items)
    state = Verb(thread_calls.state)
    read_model = Verb(thread_calls.read_model)
    send_message = Verb(thread_calls.send_message)
    steer = Verb(thread_calls.steer)
    queue = Verb(thread_calls.queue)
    promote = Verb(thread_calls.promote)
    steer_queued = Verb(thread_calls.steer_queued)
    remove_queued = Verb(thread_calls.remove_queued)

    runs = Listing(run_calls.runs)
    start_run = Verb(run_calls.start_run)
    run = Verb(run_calls.run)
    cancel_run = Verb(run_calls.cancel_run)
    retry_run = Verb(run_calls.retry_run)
    log = Verb(run_calls.log)
    diff = Verb(run_calls.diff)
    delete_worktree = Verb(run_calls.delete_worktree)
    approvals = Listing(run_calls.approvals)
    standing_rule = Verb(run_calls.standing_rule)
    decide = Verb(run_calls.decide)

    artifacts = Listing(thing_calls.artifacts)
    artifact = Verb(thing_calls.artifact)
    artifact_content = Fetching(thing_calls.artifact_content)
    blob = Fetching(thing_calls.blob)
    upload = Verb(thing_calls.upload)
    previews = Listing(thing_calls.previews)
    create_preview = Verb(thing_calls.create_preview)
    preview = Verb(thing_calls.preview)
    stop_preview = Verb(thing_calls.stop_preview)
    tasks = Listing(thing_calls.tasks)
    task = Verb(thing_calls.task)
    evidence = Listing(thing_calls.evidence)
    export_evidence = Verb(thing_calls.export_evidence)
    evidence_progress = Verb(thing_calls.evidence_progress)
    evidence_pack = Verb(thing_calls.evidence_pack)
    evidence_content = Fetching(thing_calls.evidence_content)
    verify_evidence = Verb(thing_calls.verify_evidence)

    past_events = Listing(past_calls.past_events)
    run_events = Listing(past_calls.run_events)
    past_facts = Listing(past_calls.past_facts)
    post_facts = Verb(past_calls.post_facts)

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        data: str | os.PathLike[str] | None = None,
        retry_seconds: float = RETRY_SECONDS,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._link = Link(
            address=read_address(url),
            token=find_token(token, data),
            retry_seconds=retry_seconds,
            reconnect_seconds=reconnect_seconds,
        )
        self.sender = Sender(self._link)
        self._streams: WeakSet[AsyncStream[Any]] = WeakSet()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._link.address.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every stream and every connection."""
        for stream in tuple(self._streams):
            await stream.aclose()
        await self.sender.close()

    def events(
        self,
        *,
        cursor: str | None = None,
        since: Literal["now"] | None = None,
        view: View = "runtime",
        types: Iterable[str] | None = None,
        project_id: str | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> AsyncStream[Event]:
        """Events as they come: after a cursor, from now on, or, with neither, from the first.

        A stream that cannot go on exactly raises `CursorLost`.
        """
        course = events_course(
            cursor=cursor,
            now=since == "now",
            view=view,
            types=named(types),
            project_id=project_id,
            thread_id=thread_id,
            run_id=run_id,
        )
        return AsyncStream(self._link, course, self._streams)

    def facts(
        self,
        *,
        cursor: str | None = None,
        since: Literal["now"] | None = None,
        classes: Iterable[str] | None = None,
        project_id: str | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> AsyncStream[PlacedFact]:
        """Facts as they come, each with its place; as for `events`."""
        course = facts_course(
            cursor=cursor,
            now=since == "now",
            classes=named(classes),
            project_id=project_id,
            thread_id=thread_id,
            run_id=run_id,
        )
        return AsyncStream(self._link, course, self._streams)

    def projection(
        self, thread_id: str, *, cursor: str | None = None
    ) -> AsyncStream[Snapshot | Delta]:
        """The state of a thread and then its changes; a `ThreadDocument` keeps both together.

        After a cut, or with a cursor, only changes come where that is exact, else a new state.
        """
        return AsyncStream(self._link, projection_course(thread_id, cursor=cursor), self._streams)
