"""`AsyncClient`: an Edge as an object whose methods are its addresses."""

import os
from collections.abc import Iterable
from typing import Any, Literal, Self
from weakref import WeakSet

from factwire.client import calls
from factwire.client.address import read_address
from factwire.client.asynchronous.sending import Sender
from factwire.client.asynchronous.streams import AsyncStream
from factwire.client.asynchronous.verbs import Fetching, Listing, Verb
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

    health = Verb(calls.service.health)
    agents = Verb(calls.service.agents)
    create_ticket = Verb(calls.service.create_ticket)

    projects = Listing(calls.projects.projects)
    create_project = Verb(calls.projects.create_project)
    project = Verb(calls.projects.project)
    change_project = Verb(calls.projects.change_project)
    delete_project = Verb(calls.projects.delete_project)
    conversations = Listing(calls.projects.conversations)
    create_conversation = Verb(calls.projects.create_conversation)
    add_member = Verb(calls.projects.add_member)

    threads = Listing(calls.threads.threads)
    create_thread = Verb(calls.threads.create_thread)
    thread = Verb(calls.threads.thread)
    change_thread = Verb(calls.threads.change_thread)
    delete_thread = Verb(calls.threads.delete_thread)
    archive_thread = Verb(calls.threads.archive_thread)
    fork_thread = Verb(calls.threads.fork_thread)
    items = Listing(calls.threads.items)
    state = Verb(calls.threads.state)
    read_model = Verb(calls.threads.read_model)
    send_message = Verb(calls.threads.send_message)
    steer = Verb(calls.threads.steer)
    queue = Verb(calls.threads.queue)
    promote = Verb(calls.threads.promote)
    steer_queued = Verb(calls.threads.steer_queued)
    remove_queued = Verb(calls.threads.remove_queued)

    runs = Listing(calls.runs.runs)
    start_run = Verb(calls.runs.start_run)
    run = Verb(calls.runs.run)
    cancel_run = Verb(calls.runs.cancel_run)
    retry_run = Verb(calls.runs.retry_run)
    log = Verb(calls.runs.log)
    diff = Verb(calls.runs.diff)
    approvals = Listing(calls.runs.approvals)
    decide = Verb(calls.runs.decide)

    artifacts = Listing(calls.things.artifacts)
    artifact = Verb(calls.things.artifact)
    artifact_content = Fetching(calls.things.artifact_content)
    blob = Fetching(calls.things.blob)
    tasks = Listing(calls.things.tasks)
    task = Verb(calls.things.task)
    evidence = Listing(calls.things.evidence)
    export_evidence = Verb(calls.things.export_evidence)
    evidence_pack = Verb(calls.things.evidence_pack)
    evidence_content = Fetching(calls.things.evidence_content)

    past_events = Listing(calls.past.past_events)
    run_events = Listing(calls.past.run_events)
    past_facts = Listing(calls.past.past_facts)
    post_facts = Verb(calls.past.post_facts)

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
