"""What an Edge or a Hub answers and streams, as typed values; fields that are not known are passed
over.

What they answer is declared for both sides in `facts.resources`; some of it has another name here.
States of a thread are plain JSON to a client, and so are streams and checks of packs, which an Edge
has in types that a client does not know.
"""

from typing import Any, Literal

from factwire.facts import Fact, resources
from factwire.facts.resources import (
    RUN_ENDS,
    TASK_ENDS,
    Accepted,
    Activity,
    Agents,
    AgentTask,
    Approval,
    ApprovalScreen,
    ApprovalState,
    ApprovalStatus,
    ApprovalVote,
    ApprovalWithCard,
    Artifact,
    ChangedFile,
    Conversation,
    CreatedToken,
    DecisionCard,
    Device,
    DeviceDelivery,
    GrantedRule,
    Health,
    HealthDetails,
    HistoryRemoval,
    HubApproval,
    Item,
    ItemContent,
    MirrorPosition,
    Page,
    Person,
    Preview,
    PreviewStatus,
    Project,
    QueuedRun,
    Resource,
    RetentionRules,
    RetentionRun,
    RetentionState,
    RetentionTrigger,
    RuleMatch,
    Run,
    RunDiff,
    RunError,
    RunMerge,
    RunProcess,
    RunStatus,
    RunWorktree,
    StandingRule,
    StoredBlob,
    Task,
    TaskChanges,
    TaskFile,
    TaskStatus,
    Thread,
    ThreadStatus,
    Ticket,
    TokenRow,
    TokenScope,
)
from factwire.facts.team_resources import (
    TEAM_RUN_ENDS,
    AgentTeam,
    AgentTeamMember,
    AssignmentMerge,
    RosterMember,
    RouteRecord,
    Supervision,
    TeamAssignment,
    TeamBudget,
    TeamRole,
    TeamRun,
    TeamRunState,
    TeamRunStatus,
    TeamTask,
)

__all__ = [
    "RUN_ENDS",
    "TASK_ENDS",
    "TEAM_RUN_ENDS",
    "Accepted",
    "Activity",
    "Agent",
    "AgentTask",
    "AgentTeam",
    "AgentTeamMember",
    "Agents",
    "Approval",
    "ApprovalScreen",
    "ApprovalState",
    "ApprovalStatus",
    "ApprovalVote",
    "ApprovalWithCard",
    "ArchiveState",
    "Artifact",
    "ArtifactDetails",
    "AssignmentMerge",
    "ChangedFile",
    "Conversation",
    "CreatedToken",
    "DecisionCard",
    "Device",
    "DeviceDelivery",
    "Event",
    "EventScope",
    "EvidenceCheck",
    "EvidencePack",
    "EvidenceProgress",
    "EvidenceReport",
    "GrantedRule",
    "Health",
    "HealthDetails",
    "HistoryRemoval",
    "HubApproval",
    "HubFrame",
    "Item",
    "ItemContent",
    "LogPiece",
    "MatchState",
    "MirrorPosition",
    "PackDifference",
    "PackFinding",
    "PackMatch",
    "PackSigner",
    "Page",
    "Person",
    "PlacedFact",
    "Preview",
    "PreviewStatus",
    "Project",
    "QueuedRun",
    "ReadModel",
    "Resource",
    "RetentionRules",
    "RetentionRun",
    "RetentionState",
    "RetentionTrigger",
    "RosterMember",
    "RouteRecord",
    "RuleMatch",
    "Run",
    "RunDiff",
    "RunError",
    "RunMerge",
    "RunProcess",
    "RunStatus",
    "RunWorktree",
    "SignerState",
    "StandingRule",
    "Steered",
    "StoredBlob",
    "Supervision",
    "Task",
    "TaskChanges",
    "TaskDetails",
    "TaskFile",
    "TaskStatus",
    "TeamAssignment",
    "TeamBudget",
    "TeamRole",
    "TeamRun",
    "TeamRunState",
    "TeamRunStatus",
    "TeamTask",
    "Thread",
    "ThreadDelta",
    "ThreadSnapshot",
    "ThreadState",
    "ThreadStatus",
    "Ticket",
    "TokenRow",
    "TokenScope",
]

Agent = resources.AgentRow
EvidencePack = resources.EvidenceRow
EvidenceProgress = resources.ExportProgress
Steered = resources.SteerAnswer
ThreadState = resources.ThreadState[dict[str, Any]]
ReadModel = resources.ThreadOverview[dict[str, Any]]
ArtifactDetails = resources.ArtifactAnswer[dict[str, Any]]
TaskDetails = resources.TaskAnswer[dict[str, Any]]


class LogPiece(Resource, frozen=True, kw_only=True):
    """Bytes of what a program printed; more may follow at `next_offset`."""

    process_id: str
    offset: int
    next_offset: int
    data: bytes


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


class HubFrame(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """What a Hub tells a person. `type` decides what `payload` is; a stream resumes after `cursor`,
    and what has none is told once.
    """

    type: str
    payload: dict[str, Any]
    cursor: str | None = None


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


class EvidenceReport(Resource, frozen=True, kw_only=True):
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


class EvidenceCheck(Resource, frozen=True, kw_only=True):
    """All that was found; `journal` is missing where the pack itself is not right."""

    report: EvidenceReport
    journal: PackMatch | None = None
