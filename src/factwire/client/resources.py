"""What an Edge answers and streams, as typed values; fields that are not known are passed over."""

from typing import Any, Generic, Literal, TypeVar

import msgspec

from factwire.facts import CapabilityManifest, Fact

ThreadStatus = Literal["active", "archived"]
Activity = Literal["idle", "running", "waiting", "completed", "failed", "canceled"]
RunStatus = Literal["queued", "running", "waiting", "finished", "failed", "cancelled"]
PreviewStatus = Literal["ready", "stopped"]
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "cancelled"]

T = TypeVar("T")


class Resource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value as it was when the Edge answered."""


class Page(Resource, Generic[T], frozen=True, kw_only=True, omit_defaults=True):
    """Some of a list; events go on from `as_of`, the list from `next`, if there is one."""

    items: list[T]
    as_of: str
    next: str | None = None


class StoredResource(Resource, frozen=True, kw_only=True):
    """What every listed thing has; `seq` is where its first fact stands."""

    seq: int
    created_at: str
    updated_at: str


class Project(StoredResource, frozen=True, kw_only=True):
    """A folder of work on the Edge's machine."""

    project_id: str
    name: str
    work_dir: str | None = None


class Conversation(StoredResource, frozen=True, kw_only=True):
    """A place where people and agents talk; `members` by id, with their type."""

    conversation_id: str
    title: str | None = None
    project_id: str | None = None
    members: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class Thread(StoredResource, frozen=True, kw_only=True):
    """`activity` is what its runs are at; `runtime_id` is who writes it."""

    thread_id: str
    status: ThreadStatus
    activity: Activity
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    agent_id: str | None = None
    runtime_id: str | None = None
    latest_run_id: str | None = None
    parent_thread_id: str | None = None
    from_item_id: str | None = None
    queued_runs: tuple[str, ...] = ()
    open_approvals: tuple[str, ...] = ()


class RunError(Resource, frozen=True, kw_only=True):
    """Why a run failed; the code is the Edge's, the category the runtime's."""

    code: str
    message: str
    failure_category: str | None = None
    recovery_hint: str | None = None


class RunWorktree(Resource, frozen=True, kw_only=True):
    """The git worktree of a run: where it is, of which repository, and as which commit it began."""

    path: str
    repository: str
    base: str


class Run(StoredResource, frozen=True, kw_only=True):
    """One turn of an agent."""

    run_id: str
    turn_id: str
    status: RunStatus
    thread_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    prompt: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    work_dir: str | None = None
    worktree: RunWorktree | None = None
    started_at: str | None = None
    finished_at: str | None = None
    error: RunError | None = None


class QueuedRun(Resource, frozen=True, kw_only=True):
    """A run that has not started."""

    run_id: str
    prompt: str | None = None
    agent_id: str | None = None


class Steered(Resource, frozen=True, kw_only=True):
    """What became of words said to a run: `pending`, `delivered`, or a turn that was `started` or
    is `queued` under the id of the steer.
    """

    steer_id: str
    thread_id: str
    turn_id: str
    status: str


class Approval(StoredResource, frozen=True, kw_only=True):
    """What a person must decide, or has; the answer is bound to `args_hash`."""

    approval_id: str
    status: ApprovalStatus
    kind: str
    risk_level: str
    thread_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    summary: str | None = None
    shown: str | None = None
    cwd: str | None = None
    rule: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_by: str | None = None
    subagent_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    decision: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    applied: bool | None = None


class StandingRule(Resource, frozen=True, kw_only=True):
    """The rule that `always` would grant for what has this `args_hash`; without one, `code` is a
    stable word for why, and `reason` tells it.
    """

    approval_id: str
    args_hash: str | None = None
    rule: str | None = None
    workspace: str | None = None
    code: str | None = None
    reason: str | None = None


class ItemContent(Resource, frozen=True, kw_only=True):
    """What an item holds, by its type; `refs` name what is elsewhere."""

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


class Item(Resource, frozen=True, kw_only=True):
    """One thing that was said or done on a thread."""

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


class Artifact(StoredResource, frozen=True, kw_only=True):
    """A thing that a run made; its content is behind a ref."""

    artifact_id: str
    status: str
    thread_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    kind: str = "unknown"
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None


class Task(StoredResource, frozen=True, kw_only=True):
    """A piece of work."""

    task_id: str
    status: str
    thread_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    title: str | None = None
    parent_task_id: str | None = None
    subagent_id: str | None = None


class Preview(StoredResource, frozen=True, kw_only=True):
    """A folder of a run that its Edge serves on an origin of its own."""

    preview_id: str
    status: PreviewStatus
    thread_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    url: str | None = None


class EvidencePack(StoredResource, frozen=True, kw_only=True):
    """A pack that was made of a thread."""

    evidence_id: str
    status: str
    thread_id: str | None = None
    project_id: str | None = None
    export_ref: str | None = None


class EvidenceProgress(Resource, frozen=True, kw_only=True):
    """A pack that is being made; `total` is missing where the Edge cannot tell it."""

    state: Literal["idle", "making", "unknown"]
    facts: int = 0
    total: int | None = None


class ChangedFile(Resource, frozen=True, kw_only=True):
    """One file of a diff. `diff` is absent for binary files and past the Edge's bound."""

    path: str
    change: str
    added_lines: int | None = None
    removed_lines: int | None = None
    diff: str | None = None


class RunDiff(Resource, frozen=True, kw_only=True):
    """`available` says whether git could tell; `reason` is a stable word where it could not. Of
    scope `run` is what the run changed in its worktree, of scope `workspace` whatever is different
    in its folder.
    """

    run_id: str
    scope: Literal["run", "workspace"]
    available: bool
    files: tuple[ChangedFile, ...] = ()
    truncated: bool = False
    reason: str | None = None
    base: str | None = None


class LogPiece(Resource, frozen=True, kw_only=True):
    """Bytes of what a program printed; more may follow at `next_offset`."""

    process_id: str
    offset: int
    next_offset: int
    data: bytes


class ThreadState(Resource, frozen=True, kw_only=True):
    """The whole state of a thread; its changes go on from `as_of`."""

    thread_id: str
    as_of: str
    state: dict[str, Any]


class ReadModel(Resource, frozen=True, kw_only=True):
    """What a first screen of a thread needs."""

    as_of: str
    read_model: dict[str, Any]


class ArtifactDetails(Resource, frozen=True, kw_only=True):
    """An artifact with its versions, as the state of its thread has them."""

    artifact: Artifact
    as_of: str
    details: dict[str, Any] | None = None


class TaskDetails(Resource, frozen=True, kw_only=True):
    """A task with its attempts, dependencies and progress."""

    task: Task
    as_of: str
    snapshot: dict[str, Any] | None = None


class Accepted(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """Where the facts of a batch stand; `repeated` counts those that were there already."""

    accepted: int
    repeated: int
    cursor: str
    seqs: tuple[int, ...]
    sequences: tuple[int | None, ...]


class HealthDetails(Resource, frozen=True, kw_only=True):
    """How an Edge is at work; what its journal would have to say is absent while it cannot."""

    edge_id: str
    runtime_id: str
    uptime_seconds: float
    feed: Literal["live", "degraded", "stopped"]
    feed_cursor: str
    journal_head: int | None = None
    feed_lag: int | None = None
    reason: str | None = None
    runs_active: int
    runs_queued: int
    approvals_pending: int
    streams: int


class Health(Resource, frozen=True, kw_only=True):
    """Whether an Edge is well; degraded while its journal cannot be reached."""

    status: Literal["ok", "degraded", "stopping"]
    version: str
    details: HealthDetails | None = None


class Agent(Resource, frozen=True, kw_only=True):
    """An agent that can be asked, or why it cannot."""

    agent_id: str
    available: bool
    manifest: CapabilityManifest | None = None
    code: str | None = None
    message: str | None = None


class Agents(Resource, frozen=True, kw_only=True):
    """Who can be asked; `default` answers where nobody is named."""

    items: list[Agent]
    default: str | None = None


class StoredBlob(Resource, frozen=True, kw_only=True):
    """Content that was stored, by the ref under which a message can attach it."""

    ref: str
    bytes: int


class Ticket(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """Opens one stream, as `?ticket=`, within `expires_in` seconds; shown to nobody."""

    ticket: str
    expires_in: float

    def __repr__(self) -> str:
        return f"Ticket(…, expires_in={self.expires_in})"


class EventScope(Resource, frozen=True, kw_only=True):
    """What an event is about."""

    project_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    item_id: str | None = None


class Event(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """One envelope. `type` decides what `payload` is; a stream resumes after `cursor`."""

    version: str
    id: str
    seq: int
    type: str
    scope: EventScope
    trace_id: str
    sent_at: str
    payload: Any
    cursor: str


class PlacedFact(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """A fact and its place in the journal; a stream resumes after `cursor`."""

    cursor: str
    seq: int
    fact: Fact


class ThreadSnapshot(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """The whole state of a thread."""

    thread_id: str
    cursor: str
    state: dict[str, Any]


class ThreadDelta(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """What changed in a state since the frame before, to be carried out in order."""

    thread_id: str
    cursor: str
    operations: list[dict[str, Any]]


SignerState = Literal["trusted", "unknown", "unsigned", "invalid"]
ArchiveState = Literal["as_written", "repacked", "changed"]
MatchState = Literal["matches", "compacted", "copy", "differs", "not_from_journal"]


class PackFinding(Resource, frozen=True, kw_only=True):
    """One thing that is wrong; `first` and `last` are bytes of the entry."""

    code: str
    message: str
    entry: str | None = None
    first: int | None = None
    last: int | None = None


class PackSigner(Resource, frozen=True, kw_only=True):
    """Which key signed, by its fingerprint."""

    state: SignerState
    key_id: str | None = None
    name: str | None = None


class PackReport(Resource, frozen=True, kw_only=True):
    """The pack by itself: its contents, its signer, its archive."""

    ok: bool
    findings: list[PackFinding]
    signer: PackSigner
    container: ArchiveState
    facts: int
    digest: str
    producer: str
    derived_again: bool
    container_offset: int | None = None
    created_at: str | None = None


class PackDifference(Resource, frozen=True, kw_only=True):
    """One place where the journal has something else."""

    code: str
    seq: int
    message: str


class PackMatch(Resource, frozen=True, kw_only=True):
    """The pack beside the journal of the Edge."""

    state: MatchState
    facts: int
    removed: int
    anchors: int
    incomparable: int
    differences: list[PackDifference]
    more: int = 0


class PackCheck(Resource, frozen=True, kw_only=True):
    """All that was found; `journal` is missing where the pack itself is not right."""

    report: PackReport
    journal: PackMatch | None = None
