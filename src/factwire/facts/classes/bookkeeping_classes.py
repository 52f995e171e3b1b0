"""Classes of bookkeeping: routing, cost, limits, notes about facts, snapshots and diagnostics."""

from typing import Final

from factwire.facts.classes.payloads import (
    BenchmarkPayload,
    CostPayload,
    DiagnosticPayload,
    OutputPayload,
    RoutingPayload,
    SnapshotPayload,
    StateDeltaPayload,
)
from factwire.facts.classes.specification import Family, row

FAMILIES: Final = (
    Family("routing", payload=RoutingPayload),
    Family("limit", payload=CostPayload),
    Family("cost", payload=CostPayload),
    Family("rate_limit", payload=CostPayload),
    Family("quota", payload=CostPayload),
    Family("output", payload=OutputPayload),
    Family("state"),
    Family("snapshot", payload=SnapshotPayload),
    Family("stream", payload=SnapshotPayload),
    Family("benchmark", payload=BenchmarkPayload),
    Family("runtime", payload=DiagnosticPayload),
    Family("metrics", payload=CostPayload),
)  # fmt: skip

CLASSES: Final = (
    # routing, cost, limits
    row("routing.candidates.resolved", "runtime run routing diagnostics diagnostics_log", "run.status"),
    row("routing.decided", "runtime run routing runtime_status snapshot", "run.status"),
    row("routing.fallback.applied", "runtime run routing runtime_status snapshot", "run.status"),
    row("routing.not_possible", "runtime run failed diagnostics diagnostics_log", "run.status diagnostic.changed"),
    row("routing.single_candidate", "runtime run routing runtime_status snapshot", "run.status"),
    row("limit.changed", "policy run unknown runtime_status snapshot", "metric.changed"),
    row("cost.estimated", "policy run unknown runtime_status diagnostics_log", "metric.changed"),
    row("cost.recorded", "policy run unknown runtime_status diagnostics_log", "metric.changed"),
    row("rate_limit.hit", "policy run waiting runtime_status diagnostics_log", "diagnostic.changed"),
    row("quota.low", "policy run unknown runtime_status diagnostics_log", "diagnostic.changed"),
    row("quota.blocked", "policy run failed runtime_status diagnostics_log", "diagnostic.changed"),
    # bookkeeping
    row("output.spilled", "runtime unknown unknown diagnostics diagnostics_log", "diagnostic.changed"),
    row("output.truncated", "runtime unknown unknown diagnostics diagnostics_log", "diagnostic.changed"),
    row("output.redacted", "runtime unknown unknown diagnostics diagnostics_log", "diagnostic.changed"),
    row("output.expired", "runtime unknown unknown diagnostics diagnostics_log", "diagnostic.changed"),
    row("state.delta", "runtime thread unknown unknown snapshot", "state.delta",
        payload=StateDeltaPayload),
    row("snapshot.updated", "session thread reconciling session_tabs snapshot", "state.snapshot"),
    row("snapshot.repaired", "session thread reconciling session_tabs snapshot", "state.snapshot session.hydrated",
        settles_gaps=True),
    row("stream.gap.detected", "diagnostics thread hydrating diagnostics diagnostics_log", "diagnostic.changed"),
    row("stream.repair.started", "diagnostics thread hydrating diagnostics diagnostics_log", "diagnostic.changed"),
    row("stream.repair.completed", "diagnostics thread reconciling diagnostics diagnostics_log", "diagnostic.changed",
        settles_gaps=True),
    row("benchmark.dataset.resolved", "evidence evidence preparing timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.configuration.resolved", "evidence evidence preparing timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.trial.started", "evidence evidence acting timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.trial.completed", "evidence evidence completed timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.trial.failed", "evidence evidence failed timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.reward.recorded", "evidence evidence reviewing timeline_evidence evidence_pack", "evidence.changed"),
    row("benchmark.comparison.completed", "evidence evidence completed timeline_evidence evidence_pack", "evidence.changed"),
    row("runtime.warning", "diagnostics run unknown diagnostics diagnostics_log", "diagnostic.changed"),
    row("runtime.error", "diagnostics run failed diagnostics diagnostics_log", "diagnostic.changed"),
    row("metrics.changed", "diagnostics run unknown diagnostics diagnostics_log", "metric.changed"),
)  # fmt: skip
