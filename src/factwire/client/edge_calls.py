"""Every address of an Edge, as a function that makes the call and leaves the sending to a client.

Both clients are made of these; nothing is written down twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from factwire.client.edge_address import path_of, query_of
from factwire.client.edge_connection import (
    EdgeCall,
    EdgeResponse,
    delete,
    get,
    json_reader,
    patch,
    post,
    present_fields,
    read_nothing,
)
from factwire.client.edge_connection import post as _post
from factwire.client.edge_streams import read_placed_fact
from factwire.client.resources import (
    Accepted,
    Activity,
    Agents,
    Approval,
    ApprovalStatus,
    Artifact,
    ArtifactDetails,
    Conversation,
    CreatedToken,
    DecisionCard,
    Event,
    EvidenceCheck,
    EvidencePack,
    EvidenceProgress,
    GrantedRule,
    Health,
    Item,
    LogPiece,
    Page,
    PlacedFact,
    Preview,
    PreviewStatus,
    Project,
    QueuedRun,
    ReadModel,
    RetentionRun,
    RetentionState,
    Run,
    RunDiff,
    RunMerge,
    RunProcess,
    RunStatus,
    StandingRule,
    Steered,
    StoredBlob,
    Task,
    TaskDetails,
    Thread,
    ThreadState,
    ThreadStatus,
    Ticket,
    TokenRow,
    TokenScope,
)
from factwire.facts import Fact, Shape, write_fact

_DEGRADED = 503


def health() -> EdgeCall[Health]:
    """Whether the Edge is well, and how it is at work."""
    return EdgeCall(
        method="GET", path=path_of("health"), read=json_reader(Health), accepts=(_DEGRADED,)
    )


def agents() -> EdgeCall[Agents]:
    """Who can be asked to do something, with what each can do."""
    return get(path_of("agents"), json_reader(Agents))


def create_ticket(*, renewable: bool = False, renew: str | None = None) -> EdgeCall[Ticket]:
    """A ticket for programs that cannot send a header: for one stream or, if it is renewable, for
    one that reconnects. `renew` is a renewable ticket that is to last anew.
    """
    body = present_fields(renewable=renewable or None, renew=renew)
    return post(path_of("tickets"), json_reader(Ticket), body)


def tokens() -> EdgeCall[Page[TokenRow]]:
    """The named tokens, newest first."""
    return get(path_of("tokens"), json_reader(Page[TokenRow]))


def create_token(name: str, scopes: Sequence[TokenScope]) -> EdgeCall[CreatedToken]:
    """Create a named token; its secret is in this answer alone."""
    body = {"name": name, "scopes": list(scopes)}
    return post(path_of("tokens"), json_reader(CreatedToken), body)


def revoke_token(token_id: str) -> EdgeCall[None]:
    """Revoke a token, and close its streams."""
    return delete(path_of("tokens", token_id), read_nothing)


def retention() -> EdgeCall[RetentionState]:
    """What the Edge removes by itself, what it removed last, and when it does so next."""
    return get(path_of("retention"), json_reader(RetentionState))


def run_retention(
    *,
    keep_days: float | None = None,
    keep_facts: int | None = None,
    compact: bool = False,
    dry_run: bool = False,
) -> EdgeCall[RetentionRun]:
    """Remove old runs and compact complete texts now; without a rule, as the settings say."""
    body = present_fields(
        keepDays=keep_days,
        keepFacts=keep_facts,
        compact=compact or None,
        dryRun=dry_run or None,
    )
    return post(path_of("retention", "runs"), json_reader(RetentionRun), body)


def metrics() -> EdgeCall[str]:
    """What the Edge counts, in Prometheus' text form."""
    return get(path_of("metrics"), _read_text)


def openapi() -> EdgeCall[dict[str, Any]]:
    """The Edge's own description of its requests, as an OpenAPI document."""
    return get("/openapi.json", json_reader(dict[str, Any]))


def asyncapi() -> EdgeCall[dict[str, Any]]:
    """The Edge's own description of its streams, as an AsyncAPI document."""
    return get("/asyncapi.json", json_reader(dict[str, Any]))


def _read_text(answer: EdgeResponse) -> str:
    return answer.body.decode()


def projects(*, cursor: str | None = None, limit: int | None = None) -> EdgeCall[Page[Project]]:
    """Projects, newest first."""
    return get(
        path_of("projects"), json_reader(Page[Project]), query_of(cursor=cursor, limit=limit)
    )


def create_project(name: str, *, work_dir: str | None = None) -> EdgeCall[Project]:
    """Make a project; its folder must lie in a workspace of the Edge."""
    return post(
        path_of("projects"), json_reader(Project), present_fields(name=name, workDir=work_dir)
    )


def project(project_id: str) -> EdgeCall[Project]:
    """One project."""
    return get(path_of("projects", project_id), json_reader(Project))


def change_project(
    project_id: str, *, name: str | None = None, work_dir: str | None = None
) -> EdgeCall[Project]:
    """Rename a project, or give it another folder."""
    body = present_fields(name=name, workDir=work_dir)
    return patch(path_of("projects", project_id), json_reader(Project), body)


def delete_project(project_id: str) -> EdgeCall[None]:
    """Take a project off the list."""
    return delete(path_of("projects", project_id), read_nothing)


def conversations(
    *, cursor: str | None = None, limit: int | None = None
) -> EdgeCall[Page[Conversation]]:
    """Conversations, newest first."""
    return get(
        path_of("conversations"),
        json_reader(Page[Conversation]),
        query_of(cursor=cursor, limit=limit),
    )


def conversation(conversation_id: str) -> EdgeCall[Conversation]:
    """One conversation."""
    return get(path_of("conversations", conversation_id), json_reader(Conversation))


def create_conversation(
    *, title: str | None = None, project_id: str | None = None
) -> EdgeCall[Conversation]:
    """Make a conversation, to which threads and members can belong."""
    body = present_fields(title=title, projectId=project_id)
    return post(path_of("conversations"), json_reader(Conversation), body)


def add_member(conversation_id: str, member_id: str, member_type: str) -> EdgeCall[Conversation]:
    """Add a member to a conversation."""
    body = present_fields(memberId=member_id, memberType=member_type)
    return post(
        path_of("conversations", conversation_id, "members"), json_reader(Conversation), body
    )


Input = Sequence[Mapping[str, Any]]
"""Parts of a prompt beside its text, in the form of the input contract."""


class _StartResponse(msgspec.Struct):
    run: Run


class _SteerResponse(msgspec.Struct):
    steered: Steered


def threads(
    *,
    project_id: str | None = None,
    status: ThreadStatus | None = None,
    activity: Activity | None = None,
    search: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Thread]]:
    """Threads, newest first; `search` is words of a title or the start of an id."""
    query = query_of(
        project_id=project_id,
        status=status,
        activity=activity,
        search=search,
        cursor=cursor,
        limit=limit,
    )
    return get(path_of("threads"), json_reader(Page[Thread]), query)


def create_thread(
    *,
    title: str | None = None,
    project_id: str | None = None,
    conversation_id: str | None = None,
    agent_id: str | None = None,
    private: bool = False,
) -> EdgeCall[Thread]:
    """Make a thread; facts of a private one stay on its Edge."""
    body = present_fields(
        title=title,
        projectId=project_id,
        conversationId=conversation_id,
        agentId=agent_id,
        private=private or None,
    )
    return post(path_of("threads"), json_reader(Thread), body)


def thread(thread_id: str) -> EdgeCall[Thread]:
    """One thread."""
    return get(path_of("threads", thread_id), json_reader(Thread))


def change_thread(
    thread_id: str,
    *,
    title: str | None = None,
    status: ThreadStatus | None = None,
    private: Literal[True] | None = None,
) -> EdgeCall[Thread]:
    """Rename a thread, archive it, take it out of the archive or make it private for good."""
    return patch(
        path_of("threads", thread_id),
        json_reader(Thread),
        present_fields(title=title, status=status, private=private),
    )


def delete_thread(thread_id: str) -> EdgeCall[None]:
    """Take a thread off every list."""
    return delete(path_of("threads", thread_id), read_nothing)


def archive_thread(thread_id: str) -> EdgeCall[Thread]:
    """Put a thread into the archive."""
    return post(f"{path_of('threads', thread_id)}:archive", json_reader(Thread))


def fork_thread(
    thread_id: str,
    *,
    from_item_id: str | None = None,
    at: str | None = None,
    title: str | None = None,
) -> EdgeCall[Thread]:
    """Make a thread that begins with this one's conversation, to an item or a cursor, or all."""
    body = present_fields(fromItemId=from_item_id, at=at, title=title)
    return post(f"{path_of('threads', thread_id)}:fork", json_reader(Thread), body)


def items(
    thread_id: str, *, cursor: str | None = None, limit: int | None = None
) -> EdgeCall[Page[Item]]:
    """What was said and done on a thread, oldest first."""
    return get(
        path_of("threads", thread_id, "items"),
        json_reader(Page[Item]),
        query_of(cursor=cursor, limit=limit),
    )


def item(thread_id: str, item_id: str) -> EdgeCall[Item]:
    """One item of a thread."""
    return get(path_of("threads", thread_id, "items", item_id), json_reader(Item))


def state(thread_id: str, *, at: str | None = None) -> EdgeCall[ThreadState]:
    """The whole state of a thread, now or as it was at a cursor."""
    return get(
        path_of("threads", thread_id, "projection"), json_reader(ThreadState), query_of(at=at)
    )


def read_model(thread_id: str, *, at: str | None = None) -> EdgeCall[ReadModel]:
    """What a first screen of a thread needs, now or as it was at a cursor."""
    return get(path_of("threads", thread_id, "read-model"), json_reader(ReadModel), query_of(at=at))


def send_message(
    thread_id: str,
    text: str,
    *,
    agent_id: str | None = None,
    input: Input | None = None,  # noqa: A002 - the name of the contract
    options: Mapping[str, Any] | None = None,
    mode: Literal["queue", "refuse"] = "queue",
) -> EdgeCall[Run]:
    """Say something to an agent: a run starts, or waits behind the one that is under way."""
    body = present_fields(text=text, agentId=agent_id, input=input, options=options, mode=mode)
    return post(path_of("threads", thread_id, "messages"), _read_run, body)


def steer(
    thread_id: str,
    text: str,
    *,
    input: Input | None = None,  # noqa: A002 - the name of the contract
) -> EdgeCall[Steered]:
    """Say something to the run that is under way."""
    body = present_fields(text=text, input=input, mode="steer")
    return post(path_of("threads", thread_id, "messages"), _read_steered, body)


def queue(thread_id: str) -> EdgeCall[Page[QueuedRun]]:
    """What waits on a thread, next first."""
    return get(path_of("threads", thread_id, "queue"), json_reader(Page[QueuedRun]))


def promote(thread_id: str, run_id: str) -> EdgeCall[Page[QueuedRun]]:
    """Let a waiting run go first."""
    return post(f"{_queued_path(thread_id, run_id)}:promote", json_reader(Page[QueuedRun]))


def continue_queue(thread_id: str) -> EdgeCall[Page[QueuedRun]]:
    """Go on after a stop: let all held runs start in their order."""
    return post(f"{path_of('threads', thread_id, 'queue')}:continue", json_reader(Page[QueuedRun]))


def continue_queued(thread_id: str, run_id: str) -> EdgeCall[Page[QueuedRun]]:
    """Let one held run start; others stay held."""
    return post(f"{_queued_path(thread_id, run_id)}:continue", json_reader(Page[QueuedRun]))


def steer_queued(thread_id: str, run_id: str) -> EdgeCall[Page[QueuedRun]]:
    """Say to the run that is under way what a waiting one was to be asked."""
    return post(f"{_queued_path(thread_id, run_id)}:steer", json_reader(Page[QueuedRun]))


def remove_queued(thread_id: str, run_id: str) -> EdgeCall[Page[QueuedRun]]:
    """Take a run out of the queue; it never starts."""
    return delete(_queued_path(thread_id, run_id), json_reader(Page[QueuedRun]))


def _queued_path(thread_id: str, run_id: str) -> str:
    return path_of("threads", thread_id, "queue", run_id)


def _read_run(answer: EdgeResponse) -> Run:
    return msgspec.json.decode(answer.body, type=_StartResponse).run


def _read_steered(answer: EdgeResponse) -> Steered:
    return msgspec.json.decode(answer.body, type=_SteerResponse).steered


def runs(
    *,
    thread_id: str | None = None,
    project_id: str | None = None,
    status: RunStatus | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Run]]:
    """Runs, newest first."""
    query = query_of(
        thread_id=thread_id, project_id=project_id, status=status, cursor=cursor, limit=limit
    )
    return get(path_of("runs"), json_reader(Page[Run]), query)


def start_run(
    agent_id: str,
    prompt: str,
    *,
    thread_id: str | None = None,
    project_id: str | None = None,
    title: str | None = None,
    work_dir: str | None = None,
    worktree: bool | None = None,
    input: Input | None = None,  # noqa: A002 - the name of the contract
    options: Mapping[str, Any] | None = None,
    when_busy: Literal["queue", "refuse"] = "queue",
) -> EdgeCall[Run]:
    """Start a run on a thread, or without one on a fresh thread; in a git worktree of its own, if
    `worktree` says so or the Edge's configuration does.
    """
    body = present_fields(
        agentId=agent_id,
        prompt=prompt,
        threadId=thread_id,
        projectId=project_id,
        title=title,
        workDir=work_dir,
        worktree=worktree,
        input=input,
        options=options,
        whenBusy=when_busy,
    )
    return post(path_of("runs"), json_reader(Run), body)


def run(run_id: str, *, wait: int | None = None) -> EdgeCall[Run]:
    """One run; as soon as it has ended, or after `wait` seconds as it is then."""
    return get(path_of("runs", run_id), json_reader(Run), query_of(wait=wait))


def cancel_run(run_id: str, *, reason: str | None = None) -> EdgeCall[Run]:
    """Ask a run to stop; events tell when it has."""
    return post(
        f"{path_of('runs', run_id)}:cancel", json_reader(Run), present_fields(reason=reason)
    )


def retry_run(run_id: str) -> EdgeCall[Run]:
    """Run what ended once more, as a run of its own."""
    return post(f"{path_of('runs', run_id)}:retry", json_reader(Run))


def merge_run(
    run_id: str, *, into: str | None = None, message: str | None = None, tree: str | None = None
) -> EdgeCall[RunMerge]:
    """Merge what an ended run changed in its worktree into a branch, and remove the worktree; with
    the `tree` of a diff, only if the worktree is still as that diff says.
    """
    body = present_fields(into=into, message=message, tree=tree)
    return post(f"{path_of('runs', run_id)}:merge", json_reader(RunMerge), body)


def log(
    run_id: str,
    *,
    stream: Literal["stdout", "stderr"] = "stdout",
    offset: int = 0,
    limit: int | None = None,
    process_id: str | None = None,
) -> EdgeCall[LogPiece]:
    """Bytes of what a program of a run printed; of its newest program, where none is named."""
    query = query_of(stream=stream, offset=offset, limit=limit, process_id=process_id)
    return get(path_of("runs", run_id, "logs"), _read_log_piece, query)


def diff(run_id: str) -> EdgeCall[RunDiff]:
    """What is different in the folder of a run from its last commit."""
    return get(path_of("runs", run_id, "diff"), json_reader(RunDiff))


def delete_worktree(run_id: str) -> EdgeCall[None]:
    """Remove the worktree of a run that has ended, with whatever it holds."""
    return delete(path_of("runs", run_id, "worktree"), read_nothing)


def approvals(
    *,
    status: ApprovalStatus | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Approval]]:
    """What waits for a person, and what was decided; newest first."""
    query = query_of(status=status, thread_id=thread_id, run_id=run_id, cursor=cursor, limit=limit)
    return get(path_of("approvals"), json_reader(Page[Approval]), query)


def approval(approval_id: str, *, wait: int | None = None) -> EdgeCall[Approval]:
    """One approval; as soon as it is decided, or after `wait` seconds as it is then."""
    return get(path_of("approvals", approval_id), json_reader(Approval), query_of(wait=wait))


def processes(run_id: str) -> EdgeCall[Page[RunProcess]]:
    """The programs of a run, in the order in which they started."""
    return get(path_of("runs", run_id, "processes"), json_reader(Page[RunProcess]))


def decision_card(approval_id: str) -> EdgeCall[DecisionCard]:
    """Exactly what an approval is about, with the hash that a decision is bound to."""
    return get(path_of("approvals", approval_id, "card"), json_reader(DecisionCard))


def standing_rule(approval_id: str) -> EdgeCall[StandingRule]:
    """The rule that `always` would grant for what waits, or why there is none."""
    return get(path_of("approvals", approval_id, "standing-rule"), json_reader(StandingRule))


def standing_rules() -> EdgeCall[Page[GrantedRule]]:
    """The rules that were granted and hold, newest first."""
    return get(path_of("standing-rules"), json_reader(Page[GrantedRule]))


def revoke_standing_rule(rule_id: str) -> EdgeCall[None]:
    """Revoke a rule: what it allowed is asked about again."""
    return delete(path_of("standing-rules", rule_id), read_nothing)


def decide(
    run_id: str,
    approval_id: str,
    decision: Literal["allow", "deny"],
    *,
    args_hash: str,
    reason: str | None = None,
    always: Literal["thread", "workspace"] | None = None,
    expires_in: float | None = None,
    response: Any = None,
) -> EdgeCall[Approval]:
    """Decide what a run waits for, once; `args_hash` is the hash on the card that was shown. With
    `always`, it holds from then on, or for `expires_in` seconds.
    """
    body = present_fields(
        runId=run_id,
        requestId=approval_id,
        decision=decision,
        reason=reason,
        argsHash=args_hash,
        always=always,
        expiresIn=expires_in,
        response=response,
    )
    return post(path_of("permissions", "decide"), json_reader(Approval), body)


def _read_log_piece(answer: EdgeResponse) -> LogPiece:
    return LogPiece(
        process_id=answer.headers["x-process-id"],
        offset=int(answer.headers["x-offset"]),
        next_offset=int(answer.headers["x-next-offset"]),
        data=answer.body,
    )


def artifacts(
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Artifact]]:
    """What runs made, newest first."""
    query = query_of(thread_id=thread_id, run_id=run_id, cursor=cursor, limit=limit)
    return get(path_of("artifacts"), json_reader(Page[Artifact]), query)


def artifact(artifact_id: str) -> EdgeCall[ArtifactDetails]:
    """An artifact with its versions."""
    return get(path_of("artifacts", artifact_id), json_reader(ArtifactDetails))


def artifact_content(artifact_id: str, *, version_id: str | None = None) -> EdgeCall[None]:
    """What an artifact holds; its newest version, where none is named."""
    query = query_of(version_id=version_id)
    return get(path_of("artifacts", artifact_id, "content"), read_nothing, query)


def blob(ref: str) -> EdgeCall[None]:
    """The bytes behind a ref."""
    return get(path_of("blobs", ref), read_nothing)


def upload(content: bytes) -> EdgeCall[StoredBlob]:
    """Store an attachment; a message names it by its ref."""
    return post(path_of("blobs"), json_reader(StoredBlob), present_fields(content=content))


def previews(
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    status: PreviewStatus | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Preview]]:
    """Previews, newest first; one that has stopped has no address any more."""
    query = query_of(thread_id=thread_id, run_id=run_id, status=status, cursor=cursor, limit=limit)
    return get(path_of("previews"), json_reader(Page[Preview]), query)


def create_preview(run_id: str, *, path: str = ".") -> EdgeCall[Preview]:
    """Serve a folder of a run on an origin of its own; its address opens it to whoever has it."""
    return post(path_of("previews"), json_reader(Preview), present_fields(runId=run_id, path=path))


def preview(preview_id: str) -> EdgeCall[Preview]:
    """One preview, with its address while it is served."""
    return get(path_of("previews", preview_id), json_reader(Preview))


def stop_preview(preview_id: str) -> EdgeCall[Preview]:
    """Serve a preview no longer."""
    return post(f"{path_of('previews', preview_id)}:stop", json_reader(Preview))


def tasks(
    *,
    thread_id: str | None = None,
    status: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Task]]:
    """Tasks of all threads, newest first."""
    query = query_of(thread_id=thread_id, status=status, cursor=cursor, limit=limit)
    return get(path_of("tasks"), json_reader(Page[Task]), query)


def task(task_id: str) -> EdgeCall[TaskDetails]:
    """A task with its attempts, dependencies and progress."""
    return get(path_of("tasks", task_id), json_reader(TaskDetails))


def evidence(
    *, thread_id: str | None = None, cursor: str | None = None, limit: int | None = None
) -> EdgeCall[Page[EvidencePack]]:
    """Packs that were made, newest first."""
    query = query_of(thread_id=thread_id, cursor=cursor, limit=limit)
    return get(path_of("evidence"), json_reader(Page[EvidencePack]), query)


def export_evidence(thread_id: str, *, with_blobs: bool = False) -> EdgeCall[EvidencePack]:
    """Make a signed pack of a thread."""
    body = present_fields(threadId=thread_id, withBlobs=with_blobs)
    return post(path_of("evidence"), json_reader(EvidencePack), body)


def evidence_progress(thread_id: str) -> EdgeCall[EvidenceProgress]:
    """How far the pack of a thread is that is being made; idle where none is."""
    return get(path_of("threads", thread_id, "evidence-progress"), json_reader(EvidenceProgress))


def evidence_pack(evidence_id: str) -> EdgeCall[EvidencePack]:
    """One pack."""
    return get(path_of("evidence", evidence_id), json_reader(EvidencePack))


def evidence_content(evidence_id: str) -> EdgeCall[None]:
    """The pack itself, to be checked with `factwire evidence verify`."""
    return get(path_of("evidence", evidence_id, "content"), read_nothing)


def verify_evidence(evidence_id: str) -> EdgeCall[EvidenceCheck]:
    """Have the Edge check every byte of a pack, its signature, and compare it with the journal."""
    return get(path_of("evidence", evidence_id, "verification"), json_reader(EvidenceCheck))


View = Literal["runtime", "conversation"]

T = TypeVar("T")


def past_events(
    *,
    cursor: str | None = None,
    view: View = "runtime",
    types: Iterable[str] | None = None,
    project_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[Event]]:
    """Events that are there already, oldest first."""
    query = query_of(
        cursor=cursor,
        view=view,
        types=types,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        limit=limit,
    )
    return get(path_of("events"), _read_events, query)


def run_events(
    run_id: str, *, cursor: str | None = None, view: View = "runtime", limit: int | None = None
) -> EdgeCall[Page[Event]]:
    """The events of a run that are there already, oldest first."""
    query = query_of(cursor=cursor, view=view, limit=limit)
    return get(path_of("runs", run_id, "events"), _read_events, query)


def past_facts(
    *,
    cursor: str | None = None,
    classes: Iterable[str] | None = None,
    project_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[PlacedFact]]:
    """Facts that are there already, oldest first."""
    query = query_of(
        cursor=cursor,
        classes=classes,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        limit=limit,
    )
    return get(path_of("facts"), _read_facts, query)


def post_facts(facts: Iterable[Fact | Mapping[str, Any]]) -> EdgeCall[Accepted]:
    """Send facts of another runtime: all are written or none, and repeats change nothing.

    A fact without a sequence goes in the shape that needs none, and gets the next one there. A
    mapping is sent as it is, in any shape.
    """
    body = {
        "facts": [
            write_fact(fact, _shape_of(fact)) if isinstance(fact, Fact) else fact for fact in facts
        ]
    }
    return _post(path_of("facts"), json_reader(Accepted), body)


def _shape_of(fact: Fact) -> Shape:
    return "ui" if fact.sequence is None else "facts"


_RAW_PAGE = msgspec.json.Decoder(Page[msgspec.Raw])
_EVENT = msgspec.json.Decoder(Event)


def _read_events(answer: EdgeResponse) -> Page[Event]:
    page = _RAW_PAGE.decode(answer.body)
    items = [_EVENT.decode(item) for item in page.items]
    return Page(items=items, as_of=page.as_of, next=page.next)


def _read_facts(answer: EdgeResponse) -> Page[PlacedFact]:
    page = _RAW_PAGE.decode(answer.body)
    items = [read_placed_fact(bytes(item)) for item in page.items]
    return Page(items=items, as_of=page.as_of, next=page.next)
