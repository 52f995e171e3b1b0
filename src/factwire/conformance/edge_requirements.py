"""What an Edge promises: REST, events, streams, previews, security and what holds under faults."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

EDGE_REST_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Commands, Runs",
    {
        "edge.rest.runs": "A run is accepted at once; facts and lists report its end.",
        "edge.rest.approvals": "An approval is decided once, for its run, on what was shown.",
        "edge.rest.rules": "A rule is shown with its folder, what it would have answered and what "
        "the agent may edit; it is listed, may expire, and can be revoked.",
        "edge.rest.standing": "What an approval for always allows is shown before it is granted, "
        "or why not.",
        "edge.rest.cancel": "A run is cancelled once; it can be tried again as a new one.",
        "edge.rest.queue": "A second run on a thread waits in a queue that can be changed.",
        "edge.rest.limits": "As many runs as may are active; one more is refused and leaves "
        "nothing.",
        "edge.rest.idempotency": "A POST under one key is done once, after a restart too.",
        "edge.rest.threads": "Threads are made, named, archived, forked and deleted.",
        "edge.rest.projects": "A project's folder lies in a workspace, and its runs work there.",
        "edge.rest.snapshot-cursor": "Every snapshot says the cursor from which events go on.",
        "edge.rest.outside-facts": "Facts from outside are checked, redacted, atomic, idempotent.",
        "edge.rest.outside-text": "A text from outside is stored whole and redacted, however it is "
        "split over requests and processes.",
        "edge.rest.outside-lifecycle": "Facts from outside that cannot have happened are refused, "
        "after a restart too.",
        "edge.rest.outside-bodies": "A batch from outside is an object, a list or lines; an error "
        "names the place.",
        "edge.rest.outside-approvals": "What an outside runtime asks is decided at the Edge, once, "
        "and comes back by request and by stream.",
        "edge.rest.outside-commits": "Requests of one outside thread share commits; what was "
        "judged on a batch that failed is judged again.",
        "edge.rest.outside-checkpoints": "An outside thread is known again from its checkpoint and "
        "a bounded number of facts.",
        "edge.rest.outside-loop": "A batch from outside gives the event loop away after a bounded "
        "amount of work.",
        "edge.rest.outside-without-ids": "Facts from outside without ids are repeats only in a "
        "retry of their request.",
        "edge.rest.evidence": "A thread's evidence pack is made, fetched and verified.",
        "edge.rest.evidence.progress": "While a pack is made, its progress is reported.",
        "edge.rest.artifacts": "Artifacts and blobs are attachments, by id and never by path.",
        "edge.rest.time-travel": "A thread's state can be read as of any cursor.",
        "edge.rest.problems": "Every refusal has a stable code and a trace id.",
        "edge.records.belonging": "What a fact says changes rows of its own thread alone.",
        "edge.records.pure": "Lists follow from facts alone, and go on from where they were saved.",
        "edge.recovery": "Approvals and queued runs of a former run of the server stay.",
        "edge.rest.fork-work": "A fork begins with the calls and artifacts of its parent up to the "
        "place, marked as the parent's, their refs readable.",
    },
)


EDGE_EVENT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge, Envelope and types",
    {
        "edge.events.one-envelope": "A fact is one envelope in each view, with the fact's seq.",
        "edge.events.pure": "An envelope follows from epoch, edge, seq, fact and view alone.",
        "edge.events.envelope": "An envelope has version, id, seq, type, scope, trace, time, "
        "payload and a cursor.",
        "edge.events.ids": "An event id begins with evt_, is one fact's, and leads back to it.",
        "edge.events.types.listed": "Nothing is emitted that is neither listed nor a fact's class.",
        "edge.events.types.emitted": "Every listed type has a class of facts that gives it.",
        "edge.events.types.specified": "Every type of the specification is listed with its fields.",
        "edge.events.payloads": "A payload is what its type says, whatever the fact holds.",
        "edge.events.views": "Where two words fit a fact, the view chooses.",
        "edge.events.runs": "A turn is reported as a run, with one of seven codes where it "
        "failed; a "
        "subagent's turn is not.",
        "edge.events.unpromoted": "A fact that lacks what a type needs keeps its class.",
        "edge.events.unforged": "No fact passes for a type or a frame that is not its own.",
        "edge.events.classes": "The Edge's own classes are known, with ids and payloads.",
        "edge.events.schemas": "The Edge's schemas, declarations and AsyncAPI take what is sent.",
        "edge.events.live": "Every listed type is emitted by an agent at work or by a request, "
        "with the fields of the specification.",
    },
)


_FEED: Final = requirements(
    "design.md; guarantees.md R15",
    {
        "edge.feed.order": "Every subscriber is handed each fact once, in order, uncopied.",
        "edge.feed.reached": "Whoever waits for a seq goes on once it has been handed out.",
        "edge.feed.degraded": "A missing journal is reported, and followed again from the same "
        "place.",
        "edge.feed.isolated": "A subscriber that fails is notified, and is the only one affected.",
    },
)

_STREAMS: Final = requirements(
    "edge.md Cursor and resume; guarantees.md R6 R7 R8 R11 R14",
    {
        "edge.stream.order": "A reader gets what is kept and what comes, once and in order.",
        "edge.stream.bytes": "A fact is sent as the bytes that are stored.",
        "edge.stream.resume": "A stream cut after any frame resumes without hole or repeat.",
        "edge.stream.cursor": "One cursor, event id or fact id serves every face and filter.",
        "edge.stream.now": "A stream that starts now says where that is.",
        "edge.stream.cursor-refused": "A cursor that is no place gets one error and a close code.",
        "edge.stream.filters": "Only facts of the ids and classes named are sent.",
        "edge.stream.types": "A filter on types looks at the envelope in its view.",
        "edge.stream.checkpoints": "Facts passed over advance the reader, in few frames.",
        "edge.stream.query": "A query that is not understood is refused before the stream.",
        "edge.stream.methods": "A stream is read with GET, as events or over a socket.",
        "edge.stream.shared": "Readers of one stream are written the same bytes.",
        "edge.stream.any-server": "Without our protocol the same messages are sent.",
        "edge.stream.joining": "Whoever joins under writers loses and repeats nothing.",
        "edge.stream.converging": "Catching up ends, or the reader is closed as slow.",
        "edge.stream.slow": "A slow reader is closed at its limit and slows no other.",
        "edge.stream.storm": "A thousand readers cut at once all come back whole.",
        "edge.stream.unasked": "A message from a reader ends its stream.",
        "edge.stream.malformed": "Malformed frames end in a documented code, never in a fault.",
        "edge.stream.keepalive": "A socket is dead after two pings without an answer.",
        "edge.stream.stop": "A stop tells what is durable and closes with 1012.",
        "edge.stream.sse": "Server-sent events carry the same, with the cursor as their id.",
        "edge.stream.page": "A page has the bytes of the stream and the cursor to go on.",
    },
)

_PROJECTIONS: Final = requirements(
    "edge.md Commands; design.md",
    {
        "edge.stream.projection": "A snapshot and its changes give the state at every step.",
        "edge.stream.projection-shared": "Viewers of a thread are sent identical bytes.",
        "edge.stream.projection-resume": "A viewer goes on exactly, or from a new snapshot.",
        "edge.stream.projection-slow": "A slow viewer is closed at its limit.",
    },
)

EDGE_STREAM_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_FEED, *_STREAMS, *_PROJECTIONS)


EDGE_PREVIEW_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "edge.md Commands",
        {
            "edge.preview.served": "A folder of a run is served on an origin of its own, by type.",
            "edge.preview.facts": "A preview is reported as ready and as stopped, and made once "
            "per key.",
            "edge.preview.stops": "A preview ends when stopped, idle, or with its thread or Edge; "
            "the next start reports those left ready as stopped.",
            "edge.preview.limits": "The number of previews served at once is limited.",
            "edge.preview.address": "Only its address opens a preview, on a host the Edge knows.",
            "edge.preview.browser": "A page is kept to its own folder and only read; two previews "
            "are two origins.",
            "edge.preview.ranges": "A part of a file can be asked for; a cut one is never whole.",
            "edge.preview.paths": "Nothing outside the folder, hidden or the Edge's own is served.",
        },
    ),
    *requirements(
        "guarantees.md S10",
        {
            "edge.paths.ids": "A hostile id or path is refused by a code wherever one is taken.",
            "edge.paths.races": "A folder that is swapped for a link leads nobody outside.",
        },
    ),
    *requirements(
        "edge.md Runs",
        {
            "edge.worktree.run": "A run may work in a fresh git worktree, and its diff is its own; "
            "without one the diff says that it is the workspace's.",
            "edge.worktree.merge": "What an ended run changed is merged into a branch as one "
            "commit; the files of a branch that is checked out follow, and a hostile repository "
            "runs nothing.",
            "edge.worktree.conflicts": "A merge with conflicts names the files; what is dirty, "
            "locked, unknown or shown elsewhere is refused with a code. Nothing is changed then.",
            "edge.worktree.killed": "A merge that is killed at any point is whole or was none, and "
            "what somebody changed since then stays.",
            "edge.worktree.unavailable": "Where no worktree can be made, a run is refused.",
            "edge.worktree.removed": "A worktree goes when asked, or with its thread.",
            "runtime.worktree.real": "A worktree begins as the last commit and is one to git.",
            "runtime.worktree.diff": "The diff of a worktree has all that was done there.",
            "runtime.worktree.unavailable": "Without a commit there is no worktree, with a reason.",
            "runtime.worktree.removed": "A removed worktree leaves nothing, and others alone.",
        },
    ),
    *requirements(
        "guarantees.md S11",
        {
            "edge.worktree.hostile": "A hostile repository runs nothing by a worktree or a diff.",
            "runtime.worktree.hostile": "No setting, hook, filter or link of a repository acts "
            "while a worktree of it is made, looked at or removed.",
        },
    ),
)


EDGE_SECURITY_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Who may talk to it; guarantees.md S1, S2, S3, S7, S8, S14, S15",
    {
        "edge.security.default-deny": "No route answers without the token but those on one list.",
        "edge.security.hosts": "Only known host names are answered.",
        "edge.security.origins": "Pages of other origins may not talk here, even with the token.",
        "edge.security.tickets": "A ticket opens one stream, once, soon; tokens stand in no URL.",
        "edge.security.no-secret-kept": "No token or ticket is in the database, data or log.",
        "edge.security.identity": "Identity, ids and numbers are the server's to say.",
        "edge.security.approvals": "An approval is forged, crossed, replayed or late in vain.",
        "edge.security.insecure-start": "An Edge that would not be safe does not start, and says "
        "why.",
    },
)

EDGE_ACCESS_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Settled since; Who may talk to it",
    {
        "edge.access.who": "What a person does carries who did it and by what means, on row, event "
        "and screen.",
        "edge.access.scopes": "One table has the scope that each route needs; the rest is denied.",
        "edge.access.tokens": "Named tokens are shown once, stored hashed, listed with their last "
        "use, and revoked at once with their streams.",
        "edge.access.lists": "Every list has the form {items, next, asOf}; its rows can be read "
        "one by one.",
        "edge.access.types": "Types that a view does not have are refused with those it has.",
        "edge.access.stream-tickets": "A renewable ticket opens streams again while it lasts, also "
        "after a restart, and ends with its token.",
    },
)


EDGE_ATTACK_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Commands (REST), Who may talk to it; guarantees.md R11, R13, S6, S7, S14",
    {
        "edge.rest.openapi.document": "The OpenAPI document describes every handler, and nothing "
        "else.",
        "edge.rest.openapi.examples": "Every operation has valid examples and names its headers.",
        "edge.rest.openapi.answers": "Every answer to a documented request is a documented one.",
        "edge.rest.openapi.negative": "A request that the document does not allow is refused.",
        "edge.rest.openapi.stateful": "Ids that were given can be used in any order of requests.",
        "edge.floods.streams": "Streams are bounded in number and in how fast they come.",
        "edge.floods.credentials": "Guesses and tickets are bounded; the token is always let in.",
        "edge.floods.bodies": "A body is bounded, whether or not it says its length.",
        "edge.floods.slow": "A connection that trickles or idles is given up.",
        "edge.floods.headers": "Addresses, headers and trailers are bounded and unambiguous.",
        "edge.floods.connections": "Connections are bounded in number.",
        "edge.floods.json": "JSON that is deep, ambiguous or no JSON is refused by name.",
        "edge.floods.counts": "Batches, keys, names and query parameters are bounded.",
        "edge.stream.catch-up-memory": "A reader that catches up and takes nothing holds one "
        "window of facts in memory, and gets every fact once when it reads on.",
        "edge.lists.later-pages": "A later page of a list costs no more than the first one.",
        "edge.start.flat": "Start, first page and memory of an Edge do not grow with the facts and "
        "threads that it has.",
        "edge.loop.turns": "A request of many facts or threads takes turns with other requests.",
        "edge.loop.beside": "What grows with the length of a thread is done beside the event loop.",
        "edge.loop.collections": "No request waits for a full garbage collection: everything is "
        "looked through while the process rests.",
        "edge.http.malformed": "Malformed HTTP gets a documented answer and leaves no traceback.",
        "edge.http.facts": "Mutated facts are taken whole or refused by name.",
        "edge.ids.unknown": "An id that nobody has is not found, at every address.",
        "edge.ids.crossed": "An id of another kind or another thread is not found.",
        "edge.ids.declared": "No body says who somebody is, nor what an id or a number is.",
        "edge.ids.slashes": "What an outside runtime calls a thread can be asked for.",
        "edge.ids.repeated": "A POST fifty times at once under one key has one effect.",
    },
)


EDGE_FAULT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "guarantees.md R1, R3, R14, R15; edge.md Runs",
    {
        "edge.faults.kill": "A killed Edge has lost nothing it acknowledged; readers converge, "
        "runs are closed and reaped, queued runs start, approvals wait.",
        "edge.faults.stop": "A stop under load loses no answer, closes streams with 1012 and is "
        "over within five seconds.",
        "edge.faults.disk": "A disk that refuses a write is reported by a code and "
        "run.persistence_error; "
        "reads go on, and no restart is needed.",
        "edge.faults.servers": "A journal's server that dies makes the Edge degraded; once it is "
        "back, all goes on exactly.",
        "edge.faults.start": "An Edge that cannot start says why with exit code 2; damaged lists "
        "are made anew.",
    },
)


EDGE_OBSERVING_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge, Observability",
    {
        "edge.observing.metrics": "Requests, streams, journal, runs, approvals and the process are "
        "reported to Prometheus, by one registry an Edge.",
        "edge.observing.bounded": "No id, path or method that somebody sends makes a series.",
        "edge.observing.one-trace": "A request, its run and what the run did are one trace: that "
        "of the run's envelopes.",
        "edge.observing.kept-trace": "A turn's facts carry the trace of who asked for it, also "
        "after a wait and a restart.",
        "edge.observing.spans": "Spans have the facts' times and no text of anybody's; without a "
        "collector there are none.",
        "edge.observing.logs": "Each request, stream, start, stop and recovery is one line, as "
        "JSON or as text, and so are warnings of libraries.",
        "edge.observing.unread": "A log that nobody reads holds up nothing: lines beyond a limit "
        "are dropped and counted, and the count is a line once somebody reads.",
        "edge.observing.no-secrets": "No token, ticket, query, header, path, body or secret in an "
        "error is logged.",
        "edge.observing.health": "A stranger learns that an Edge is well; who shows the token "
        "learns how it is.",
        "edge.observing.health.writes": "While the journal refuses facts, the health of an Edge is "
        "degraded and says why; it recovers by itself.",
    },
)


EDGE_CONTROL_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge, Runs",
    {
        "edge.stop.holds": "What waited when a run was stopped starts only when a person continues "
        "it, also after a restart.",
        "edge.stop.cancelling": "A run that was asked to stop is `cancelling` until it has ended, "
        "on its row, in its events and in the state of its thread.",
        "edge.steer.queued": "A queued run whose prompt is sent to the running one ends when that "
        "one has taken it; until then it waits.",
        "edge.approval.times": "An approval has the times at which it was asked for, decided, sent "
        "to the agent and applied, on its row, in its events and in the state.",
        "edge.events.scope": "A filter by project, thread or run returns exactly the events whose "
        "scope names it; every event of a thread names the thread's project.",
        "edge.events.loop": "Who follows the events of a run sees its end, however it ends.",
        "edge.retention.honest": "Retention on a running Edge removes ended runs alone, says what "
        "it removed on the thread, and refuses cursors from before it on every face.",
        "edge.retention.compact": "Compaction on a running Edge changes no state, and cursors "
        "inside what it removed go on with what is left.",
        "edge.retention.crash": "A removal that was cut short is finished at the next start.",
        "edge.retention.keeps": "Retention leaves alone what is open, what a reader needs, "
        "standing rules, packs and blobs that a fact refers to.",
        "edge.events.cost": "A read that is filtered by run or project takes from the journal what "
        "it returns, however much else is there.",
        "edge.events.rows": "An event about a change of a thread has the whole row, also "
        "where an agent changed it.",
        "edge.run.times": "Every event of a run has the times at which it was asked for, started "
        "and ended, as far as that has happened.",
        "edge.retention.outside-turns": "Turns of an outside thread that all name a worker or a "
        "task above are the thread's own, and go when they are old.",
    },
) + requirements(
    "guarantees S15",
    {
        "edge.files.damaged": "Each file of the data folder, damaged in any way, has a documented "
        "answer or is made anew, and a full disk leaves none that keeps an Edge from starting.",
        "edge.files.saved": "Lists are saved while an Edge runs; a start after a kill reads "
        "few facts.",
        "edge.files.private": "A data folder that others may write to is closed to them or "
        "refused, and so is a token or a key of another user.",
        "edge.approval.exact": "What a person decides about is read from the card, for those who "
        "may decide; a decision without its hash, or about what is gone, is refused.",
        "edge.rest.items": "The events of a conversation come to the items that are listed.",
    },
)
