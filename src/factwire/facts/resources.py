"""Resources: what an Edge lists and answers, and a Hub what its clients read, declared once for
both sides.

The text of a class and the order of its fields are those of the OpenAPI document and of the JSON
on the wire. What an Edge answers of a thread's projection is open in its type: the Edge has its
own structs there, a client plain JSON.
"""

from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from factwire.facts.capabilities import CapabilityManifest
from factwire.facts.classes.payloads import Person

ThreadStatus = Literal["active", "archived"]
Activity = Literal["idle", "running", "waiting", "completed", "failed", "canceled"]
RunStatus = Literal[
    "queued", "held", "running", "waiting", "cancelling", "finished", "failed", "cancelled"
]
RUN_ENDS: Final[tuple[RunStatus, ...]] = ("finished", "failed", "cancelled")
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "cancelled"]
PreviewStatus = Literal["ready", "stopped"]
SteerStatus = Literal["pending", "delivered", "started", "queued"]
ExportState = Literal["idle", "making", "unknown"]
RetentionTrigger = Literal["schedule", "request"]
TokenScope = Literal["read", "decide", "run", "admin"]
FileStatus = Literal["created", "modified", "deleted"]

DeviceKind = Literal["edge", "runner"]
GrantRole = Literal["viewer", "commenter", "approver", "operator"]
TaskStatus = Literal[
    "queued",
    "delivered",
    "running",
    "unknown",
    "dead",
    "done",
    "failed",
    "cancelled",
    "timed_out",
    "expired",
]
TASK_ENDS: Final[tuple[TaskStatus, ...]] = ("done", "failed", "cancelled", "timed_out", "expired")
"""How a task ends; whatever else it is, its Edge may still say more."""
TaskClosing = Literal["cancel", "timeout", "expire"]
ApprovalState = Literal[
    "asked",
    "delivered",
    "seen",
    "decided",
    "sent",
    "applied",
    "expired",
    "refused",
    "withdrawn",
]
HumanDecision = Literal["allow", "deny"]

T = TypeVar("T")


class Resource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value as it was when the Edge answered."""


class Page(Resource, Generic[T], frozen=True, kw_only=True):
    """Some rows, and where the next page begins; without `next` there is none."""

    items: list[T]
    as_of: str
    next: str | None = None


class Row(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What every listed thing has; `seq` is where its first fact stands.

    An Edge changes its rows in place by the facts that follow; what a client reads is its own copy.
    """

    seq: int
    created_at: str
    updated_at: str


class ThreadRow(Row, kw_only=True):
    """A row that belongs to a thread."""

    thread_id: str | None = None


class Project(Row, kw_only=True):
    """A folder of work on this machine; `by` is who made it."""

    project_id: str
    name: str
    work_dir: str | None = None
    by: Person | None = None


class Conversation(Row, kw_only=True):
    """A place where people and agents talk; `members` by id, with their type. `by` is who made
    it.
    """

    conversation_id: str
    title: str | None = None
    project_id: str | None = None
    members: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    by: Person | None = None


class HistoryRemoval(Resource, frozen=True, kw_only=True):
    """That retention removed the beginning of a thread: when, for whom, and what it was. `before`
    is the end of the last run that was removed; the other figures are of all that ever were.
    """

    at: str
    before: str
    facts: int
    runs: int
    by: Person
    total_cost_usd: float | None = None


class Thread(Row, kw_only=True):
    """`activity` is what its turns are at; `runtime_id` is who writes it, `by` who created it.
    `history_removed` says that its beginning was removed. Facts of a `private` thread stay on its
    Edge: no Hub gets them.
    """

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
    by: Person | None = None
    history_removed: HistoryRemoval | None = None
    private: bool = False


class RetentionRules(Resource, frozen=True, kw_only=True):
    """What retention removes: runs that ended more than `keep_days` days ago, the oldest runs
    while there are more than `keep_facts` facts, and with `compact` the deltas of complete texts.
    """

    keep_days: float | None = None
    keep_facts: int | None = None
    compact: bool = False


class RetentionRun(Resource, frozen=True, kw_only=True):
    """What one run of retention removed or, with `dry_run`, would have removed. `threads` and
    `runs` lost their facts, `deltas` were complete texts' and are missed by nobody; `held_by`
    names what kept more from being removed.
    """

    started_at: str
    finished_at: str
    trigger: RetentionTrigger
    by: Person
    rules: RetentionRules
    dry_run: bool = False
    threads: int = 0
    runs: int = 0
    facts: int = 0
    deltas: int = 0
    freed_bytes: int = 0
    blobs: int = 0
    held_by: tuple[str, ...] = ()


class RetentionState(Resource, frozen=True, kw_only=True):
    """What retention does by itself, and what it did last. Without rules, nothing is scheduled;
    `pending_threads` wait for readers of what is to be removed.
    """

    rules: RetentionRules | None = None
    every_seconds: float | None = None
    is_running: bool = False
    last: RetentionRun | None = None
    next_at: str | None = None
    error: str | None = None
    pending_threads: int = 0


class RunError(Resource, frozen=True, kw_only=True):
    """Why a run failed; the code is one of the Edge's, the category the runtime's own."""

    code: str
    message: str
    failure_category: str | None = None
    recovery_hint: str | None = None


class RunWorktree(Resource, frozen=True, kw_only=True):
    """The git worktree of a run: where it is, of which repository, and as which commit it began."""

    path: str
    repository: str
    base: str


class Run(ThreadRow, kw_only=True):
    """One turn of an agent. A `held` one waits until a person goes on after a stop; a `cancelling`
    one was asked to stop and has not ended. `reason` is why it was cancelled; one that was
    cancelled as `steered` never ran, because the run `steered_into` took its prompt. `by` is
    who asked for it, `cancelled_by` who stopped it; `under` is a task or a worker that its first
    fact names above it.
    """

    run_id: str
    turn_id: str
    status: RunStatus
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
    reason: str | None = None
    steered_into: str | None = None
    by: Person | None = None
    cancelled_by: Person | None = None
    under: str | None = None


class RunProcess(Resource, frozen=True, kw_only=True):
    """A program of a run: a process of the runtime, or a command that a tool ran."""

    process_id: str
    run_id: str
    kind: str
    status: str
    command: Any = None
    cwd: str | None = None
    exit_code: int | None = None
    signal: str | int | None = None
    output_bytes: int = 0
    output_ref: str | None = None
    tool_call_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class QueuedRun(Resource, frozen=True, kw_only=True):
    """A run that has not started. A `held` one does not start by itself: it waited when a person
    stopped the thread, at `held_at`.
    """

    run_id: str
    prompt: str | None = None
    agent_id: str | None = None
    status: Literal["queued", "held"] = "queued"
    held_at: str | None = None
    by: Person | None = None


class SteerAnswer(Resource, frozen=True, kw_only=True):
    """What became of words for a run that is under way. They wait for it (`pending`), were taken
    (`delivered`), or are a run of their own, which was `started` or is `queued`.
    """

    steer_id: str
    thread_id: str
    turn_id: str
    status: SteerStatus


class Approval(ThreadRow, kw_only=True):
    """What a person must decide, or has; the answer is bound to `args_hash`. It was asked for at
    `created_at` and decided at `decided_at`; the decision was sent to the agent at `sent_at`, and
    at `applied_at` the agent acted upon it.
    """

    approval_id: str
    status: ApprovalStatus
    kind: str
    risk_level: str
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
    decided_by: Person | None = None
    reason: str | None = None
    applied: bool | None = None
    response: Any = None
    decided_at: str | None = None
    sent_at: str | None = None
    applied_at: str | None = None


class DecisionCard(Resource, frozen=True, kw_only=True):
    """Exactly what a person decides about, from the memory of the runtime that asks, where facts
    and rows are redacted. `masks` counts the secrets that are masked in the text, each within one
    word; `has_open_secret` says that one had to be shown, because a mask could have hidden what
    runs. Where the exact text is gone there is only a `reason`, and the request can only be denied.
    A decision is bound to `args_hash`.
    """

    request_id: str
    args_hash: str | None = None
    prompt: str | None = None
    shown: str | None = None
    masks: int = 0
    has_open_secret: bool = False
    reason: str | None = None


class RuleMatch(Resource, frozen=True, kw_only=True):
    """An earlier request that a rule would have answered."""

    approval_id: str
    created_at: str | None = None
    thread_id: str | None = None
    summary: str | None = None


class StandingRule(Resource, frozen=True, kw_only=True):
    """The rule that `always` would grant for what has this `args_hash`, in its thread or in this
    workspace, for commands in `folder` alone. `editable` are the files it names that the agent may
    change; `matches` are those of the newest `searched` requests that it would have answered. Where
    there is no rule, `code` is a stable word for why, and `reason` explains it.
    """

    approval_id: str
    args_hash: str | None = None
    rule: str | None = None
    workspace: str | None = None
    folder: str | None = None
    editable: list[str] = msgspec.field(default_factory=list[str])
    matches: list[RuleMatch] = msgspec.field(default_factory=list[RuleMatch])
    searched: int = 0
    code: str | None = None
    reason: str | None = None


class GrantedRule(Resource, frozen=True, kw_only=True):
    """A rule that a person granted and that holds: for commands in `folder`, on the thread or in
    the `workspace`, until `expires_at` or until it is revoked.
    """

    rule_id: str
    rule: str
    lasts: str
    folder: str
    thread_id: str
    workspace: str | None = None
    expires_at: str | None = None


class Artifact(ThreadRow, kw_only=True):
    """A thing that a run made; its content is behind a ref."""

    artifact_id: str
    status: str
    project_id: str | None = None
    run_id: str | None = None
    kind: str = "unknown"
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None


class Task(ThreadRow, kw_only=True):
    """A piece of work; the whole of it is in the projection of its thread."""

    task_id: str
    status: str
    project_id: str | None = None
    run_id: str | None = None
    title: str | None = None
    parent_task_id: str | None = None
    subagent_id: str | None = None


class Preview(ThreadRow, kw_only=True):
    """A folder of a run that is served on an origin of its own, by the Edge `edge_id`; `by` is who
    started it.
    """

    preview_id: str
    status: PreviewStatus
    project_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    url: str | None = None
    by: Person | None = None


class EvidenceRow(ThreadRow, kw_only=True):
    """A pack that was made of a thread, and `by` whom."""

    evidence_id: str
    status: str
    project_id: str | None = None
    export_ref: str | None = None
    by: Person | None = None


class ExportProgress(Resource, frozen=True, kw_only=True):
    """Facts of a thread that are in the pack being made, of how many; `total` is missing where the
    journal has removed facts, since it counts those as well.
    """

    state: ExportState
    facts: int = 0
    total: int | None = None


class ChangedFile(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """One file. `diff` is absent for binary files and past the bound; lines for binary files."""

    path: str
    change: FileStatus
    added_lines: int | None = None
    removed_lines: int | None = None
    diff: str | None = None


class RunDiff(Resource, frozen=True, kw_only=True):
    """`available` says whether git could tell; `reason` is a stable word where it could not. `tree`
    is git's id of all that was compared with `base`.

    Of scope `run` is what was changed in the worktree of the run, by it and by runs that tried it
    again. Of scope `workspace` is whatever is in the folder and not in its last commit, which
    others may have changed, before the run or after it.
    """

    run_id: str
    scope: Literal["run", "workspace"]
    available: bool
    files: tuple[ChangedFile, ...] = ()
    truncated: bool = False
    reason: str | None = None
    base: str | None = None
    tree: str | None = None


class TaskFile(Resource, frozen=True, kw_only=True):
    """A file that a task changed; lines are absent for binary files."""

    path: str
    change: FileStatus
    added_lines: int | None = None
    removed_lines: int | None = None


class TaskChanges(Resource, frozen=True, kw_only=True):
    """What the worktree of a task has that the commit `base` has not: `fileCount` files, the first
    of which are in `files`. `diffRef` is the diff among the blobs of the device; where `truncated`,
    some files are in it without their text. `tree` is git's id of all that the worktree has, which
    a merge can be bound to. `available` says whether there is a worktree and git
    could tell; `reason` is a stable word where not: a task without a worktree worked in its folder
    itself.
    """

    available: bool
    reason: str | None = None
    worktree: str | None = None
    base: str | None = None
    tree: str | None = None
    file_count: int = 0
    added_lines: int = 0
    removed_lines: int = 0
    files: tuple[TaskFile, ...] = ()
    diff_ref: str | None = None
    diff_bytes: int = 0
    truncated: bool = False

    def describe_absence(self) -> str:
        """Why it is not known what was changed."""
        why = "there is no worktree" if self.worktree is None else "git could not tell"
        return f"{why} ({self.reason})"

    def describe_size(self) -> str:
        """How much was changed, as in "3 files +42 −7"."""
        files = "1 file" if self.file_count == 1 else f"{self.file_count} files"
        return f"{files} +{self.added_lines} −{self.removed_lines}"


class RunMerge(Resource, frozen=True, kw_only=True):
    """What came of merging what a run changed into `branch`. With `conflicts`, both sides changed
    `files`, and nothing was changed; else `commit` is where the branch is now.
    """

    run_id: str
    status: Literal["merged", "conflicts"]
    branch: str
    commit: str | None = None
    files: tuple[str, ...] = ()


class EventPayload(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """A typed payload; a field that the fact does not have is absent, never guessed."""


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
    `subagent_id` says that it is not the main agent's, `by` who wrote a message.
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
    by: Person | None = None


class ThreadState(Resource, Generic[T], frozen=True, kw_only=True):
    """The projection of a thread at a cursor; its stream of changes goes on from there."""

    thread_id: str
    as_of: str
    state: T


class ThreadOverview(Resource, Generic[T], frozen=True, kw_only=True):
    """What a first screen of a thread needs, at a cursor."""

    as_of: str
    read_model: T


class ArtifactAnswer(Resource, Generic[T], frozen=True, kw_only=True):
    """An artifact, with its versions as the projection of its thread has them."""

    artifact: Artifact
    as_of: str
    details: T | None = None


class TaskAnswer(Resource, Generic[T], frozen=True, kw_only=True):
    """A task, with its attempts and dependencies as the projection of its thread has them."""

    task: Task
    as_of: str
    snapshot: T | None = None


class StoredBlob(Resource, frozen=True, kw_only=True):
    """Content that was stored, by the ref under which a message can attach it."""

    ref: str
    bytes: int


class Accepted(Resource, frozen=True, kw_only=True):
    """Where the facts of a batch stand; `repeated` counts those that were there already."""

    accepted: int
    repeated: int
    cursor: str
    seqs: tuple[int, ...]
    sequences: tuple[int | None, ...]


class HealthDetails(Resource, frozen=True, kw_only=True):
    """What whoever shows the token may know; `reason` is what ails the journal, `journal_head` and
    `feed_lag` are absent while it cannot be asked. `runtime_id` writes the Edge's own threads.
    `untrusted_project` says which project's file this Edge ignores, and what to do; `hub_trouble`,
    why there is no link to the Hub that it has joined.
    """

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
    untrusted_project: str | None = None
    hub_trouble: str | None = None


class Health(Resource, frozen=True, kw_only=True):
    """What anybody may know; `status` is degraded while the journal cannot be reached or refuses
    facts, and `code` is a stable word for why. `details` are for whoever shows the token.
    """

    status: Literal["ok", "degraded", "stopping"]
    version: str
    code: str | None = None
    details: HealthDetails | None = None


class AgentRow(Resource, frozen=True, kw_only=True):
    """An agent that can be asked, or why it cannot."""

    agent_id: str
    available: bool
    manifest: CapabilityManifest | None = None
    code: str | None = None
    message: str | None = None


class Agents(Page[AgentRow], frozen=True, kw_only=True):
    """Every agent; `default` is the one to use where none is named."""

    default: str | None = None


class TokenRow(Resource, frozen=True, kw_only=True):
    """A named token, without its secret; `admin` includes all other scopes."""

    token_id: str
    name: str
    scopes: tuple[TokenScope, ...]
    created_at: str
    last_used_at: str | None = None


class CreatedToken(TokenRow, frozen=True, kw_only=True):
    """A token that was just created; its secret `token` cannot be read again."""

    token: str

    def __repr__(self) -> str:
        return f"CreatedToken({self.token_id!r}, …)"


class Ticket(Resource, frozen=True, kw_only=True):
    """Opens streams, as `?ticket=`, within `expires_in` seconds: one, or, if it is `renewable`, any
    number. A renewable one also lasts while a stream is open by it.
    """

    ticket: str
    expires_in: float
    renewable: bool = False

    def __repr__(self) -> str:
        return f"Ticket(…, expires_in={self.expires_in})"


class MirrorPosition(Resource, frozen=True, kw_only=True):
    """How far the mirror of an Edge is, and when something was last uploaded."""

    cursor: str
    uploaded_at: str


class Device(Resource, frozen=True, kw_only=True):
    """A machine whose Edge has joined. `role` is what you may do with it, by a grant of its owner;
    it is absent where the device is your own.
    """

    device_id: str
    owner_id: str
    kind: DeviceKind
    name: str
    edge_id: str
    platform: str
    version: str
    agents: list[str]
    created_at: str
    last_seen_at: str
    online: bool
    role: GrantRole | None = None
    mirror: MirrorPosition | None = None
    revoked_at: str | None = None


class AgentTask(Resource, frozen=True, kw_only=True):
    """Work for an agent on one device. `status` is `unknown` while the device says nothing, `dead`
    where it did not acknowledge the task; `closing` is why it is to stop, or was. The code of its
    `error` is `stop_unconfirmed` where it was closed without an answer of the device.
    """

    task_id: str
    person_id: str
    device_id: str
    agent_type: str
    prompt: str
    status: TaskStatus
    created_at: str
    updated_at: str
    expires_at: str
    timeout_seconds: int
    target_id: str | None = None
    session_id: str | None = None
    agent_instance_id: str
    edge_run_id: str | None = None
    thread_id: str | None = None
    closing: TaskClosing | None = None
    result_summary: str | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    changes: TaskChanges | None = None
    delivered_at: str | None = None
    ended_at: str | None = None


DeliveryKind = Literal["dispatch", "cancel", "timeout", "control", "relay"]
DeliveryState = Literal["pending", "sent", "acked", "refused", "expired", "dead"]


class DeviceDelivery(Resource, frozen=True, kw_only=True):
    """One entry of a device's queue at a Hub. `code` says why it was refused or given up."""

    delivery_id: str
    device_id: str
    person_id: str
    kind: DeliveryKind
    state: DeliveryState
    attempts: int
    created_at: str
    expires_at: str
    task_id: str | None = None
    approval_id: str | None = None
    sent_at: str | None = None
    ended_at: str | None = None
    code: str | None = None


class ApprovalVote(Resource, frozen=True, kw_only=True):
    """What one person said, on which screen (`sessionId`), and when."""

    person_id: str
    decision: HumanDecision
    session_id: str
    at: str
    reason: str | None = None


class ApprovalScreen(Resource, frozen=True, kw_only=True):
    """Where an approval was shown: `targetId` is the session of a screen, or a push subscription,
    a webhook or a mail address.
    """

    person_id: str
    channel: str
    target_id: str
    delivered_at: str
    seen_at: str | None = None


class HubApproval(Resource, frozen=True, kw_only=True):
    """What an agent on a device asks, and how far it got. `state` *decided* means that the decision
    waits for the device, *sent* that the device has it, *applied* that the agent acted upon it.
    `required` is how many people must allow it, and `votes` what was said until now.
    """

    approval_id: str
    device_id: str
    edge_id: str
    request_id: str
    state: ApprovalState
    kind: str
    risk_level: str
    args_hash: str
    required: int
    asked_at: str
    thread_id: str | None = None
    run_id: str | None = None
    tool_name: str | None = None
    summary: str | None = None
    expires_at: str | None = None
    delivered_at: str | None = None
    seen_at: str | None = None
    decided_at: str | None = None
    sent_at: str | None = None
    applied_at: str | None = None
    ended_at: str | None = None
    decision: str | None = None
    reason: str | None = None
    decided_by: Person | None = None
    code: str | None = None
    votes: list[ApprovalVote] = msgspec.field(default_factory=list[ApprovalVote])
    screens: list[ApprovalScreen] = msgspec.field(default_factory=list[ApprovalScreen])


class ApprovalWithCard(HubApproval, frozen=True, kw_only=True):
    """An approval with exactly what is to be decided. Where `card` has only a reason, it cannot be
    shown exactly, and can only be denied. `mayDecide` is whether you are somebody who may.
    """

    card: DecisionCard
    may_decide: bool
    as_of: str
