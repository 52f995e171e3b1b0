"""The row of every event class: what it is about, where it shows, which UI classes it becomes.

One line a class, checked against the vocabulary when it is imported. A row says only what the
class alone can know; `unknown` stands where that depends on the fact. Classifying a fact fills
what its source left open from the row, and nothing more.
"""

from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.vocabulary import OWNERS, PERSISTENCE, PHASES, SCOPES, SURFACES, UNKNOWN

_COLUMNS = (OWNERS, SCOPES, PHASES, SURFACES, PERSISTENCE)


class ClassRow(msgspec.Struct, frozen=True):
    """What one class says about every fact that carries it."""

    name: str
    owner: str
    scope: str
    phase: str
    surface: str
    persistence: str
    ui: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The first word of the class."""
        return self.name.partition(".")[0]


def read_rows(table: str) -> dict[str, ClassRow]:
    """Read lines of `name | owner scope phase surface persistence | ui classes`; `#` titles."""
    rows: dict[str, ClassRow] = {}
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            row = _read_row(line)
            rows[row.name] = row
    return rows


def _read_row(line: str) -> ClassRow:
    name, words, *ui = (cell.strip() for cell in line.split("|"))
    cells = words.split()
    for cell, column in zip(cells, _COLUMNS, strict=True):
        if cell not in column:
            raise ValueError(f"{name}: {cell!r} is not in the vocabulary")
    return ClassRow(name, *cells, ui=tuple(ui[0].split()) if ui else ())


RUNTIME_CLASSES: Final[dict[str, ClassRow]] = read_rows("""
# lifecycle
session.created | session session unknown session_tabs snapshot | session.opened
session.updated | session session unknown session_tabs snapshot | session.updated
thread.started | session thread unknown session_tabs snapshot | session.opened
thread.updated | session thread unknown session_tabs snapshot | session.updated
turn.submitted | runtime turn submitted runtime_status transcript | run.status
turn.started | runtime turn accepted runtime_status transcript | run.started
turn.completed | runtime turn completed runtime_status transcript | run.finished
turn.failed | runtime turn failed runtime_status transcript | run.failed
turn.canceled | runtime turn cancelled runtime_status transcript | run.finished
run.status | runtime run unknown runtime_status ephemeral_live | run.status
# model
model.requested | model turn preparing runtime_status ephemeral_live | run.status
model.delta | model part producing conversation ephemeral_live | text.delta
model.completed | model part completed conversation transcript | text.final
model.failed | model turn failed diagnostics diagnostics_log | diagnostic.changed
reasoning.started | model part reasoning inline_process ephemeral_live | run.status
reasoning.delta | model part reasoning inline_process ephemeral_live | reasoning.delta
reasoning.summary | model part reasoning inline_process transcript | reasoning.summary
reasoning.completed | model part completed inline_process transcript | reasoning.summary
plan.delta | model turn planning inline_process ephemeral_live | plan.delta
plan.final | model turn planning inline_process transcript | plan.final
messages.snapshot | session thread reconciling conversation snapshot | messages.snapshot
# tools
tool.catalog.resolved | tool turn preparing runtime_status snapshot | context.changed
tool.started | tool tool_call acting tool_ui transcript | tool.started
tool.args | tool tool_call acting tool_ui transcript | tool.args
tool.args.delta | tool tool_call acting tool_ui ephemeral_live | tool.args.delta
tool.progress | tool tool_call acting tool_ui ephemeral_live | tool.progress
tool.output.delta | tool tool_call acting tool_ui ephemeral_live | tool.output.delta
tool.result | tool tool_call completed tool_ui transcript | tool.result
tool.failed | tool tool_call failed tool_ui transcript | tool.failed
# decisions
action.required | action action_request waiting hitl transcript | action.required
action.updated | action action_request waiting hitl transcript | action.required
action.resolved | action action_request completed hitl transcript | action.resolved
action.cancelled | action action_request cancelled hitl transcript | action.resolved
action.canceled | action action_request cancelled hitl transcript | action.resolved
action.expired | action action_request cancelled hitl transcript | action.resolved
permission.evaluated | policy turn acting runtime_status transcript | permission.changed
permission.requested | policy turn waiting hitl transcript | permission.changed
permission.resolved | policy turn completed hitl transcript | permission.changed
permission.denied | policy turn failed hitl transcript | permission.changed
sandbox.applied | policy turn preparing diagnostics diagnostics_log | permission.changed
sandbox.blocked | policy turn failed diagnostics diagnostics_log | permission.changed
sandbox.violation | policy turn failed diagnostics diagnostics_log | permission.changed
policy.changed | policy workspace unknown runtime_status snapshot | permission.changed
hook.started | runtime run acting inline_process ephemeral_live | run.status
hook.progress | runtime run acting inline_process ephemeral_live | run.status
hook.completed | runtime run acting inline_process transcript | run.status
hook.failed | runtime run failed diagnostics diagnostics_log | diagnostic.changed
queue.changed | runtime thread unknown task_capsule snapshot | queue.changed
# context and history
context.resolved | context turn preparing runtime_status snapshot | context.changed
context.attached | context turn preparing composer snapshot | context.changed
context.failed | context turn failed diagnostics diagnostics_log | context.changed diagnostic.changed
context.compaction.started | context thread preparing inline_process transcript | context.compaction.started
context.compaction.completed | context thread completed inline_process transcript | context.compaction.completed
context.compaction.failed | context thread failed diagnostics diagnostics_log | context.changed diagnostic.changed
history.compacted | context thread completed inline_process transcript | context.compaction.completed
history.window.loaded | session thread hydrating conversation snapshot | messages.snapshot
history.reconstructed | session thread hydrating conversation snapshot | session.hydrated messages.snapshot
history.rollback.started | session thread reconciling runtime_status transcript | run.status
history.rollback.completed | session thread reconciling conversation transcript | messages.snapshot
# artifacts and evidence
artifact.changed | artifact artifact producing artifact_workspace artifact_store | artifact.changed
artifact.created | artifact artifact producing artifact_workspace artifact_store | artifact.created
artifact.updated | artifact artifact producing artifact_workspace artifact_store | artifact.updated
artifact.versioned | artifact artifact producing artifact_workspace artifact_store | artifact.version.created
artifact.preview.ready | artifact artifact producing artifact_workspace artifact_store | artifact.preview.ready
artifact.diff.ready | artifact artifact producing artifact_workspace artifact_store | artifact.diff.ready
artifact.export.started | artifact artifact producing artifact_workspace artifact_store | artifact.export.started
artifact.export.completed | artifact artifact completed artifact_workspace artifact_store | artifact.export.completed
artifact.exported | artifact artifact completed artifact_workspace artifact_store | artifact.export.completed
artifact.failed | artifact artifact failed artifact_workspace artifact_store | artifact.failed
artifact.deleted | artifact artifact archived artifact_workspace artifact_store | artifact.deleted
evidence.changed | evidence evidence reviewing timeline_evidence evidence_pack | evidence.changed
evidence.exported | evidence evidence completed timeline_evidence evidence_pack | evidence.changed
review.requested | evidence evidence reviewing review_lane evidence_pack | review.requested
review.verdict | evidence evidence completed review_lane evidence_pack | review.completed evidence.changed
review.completed | evidence evidence completed review_lane evidence_pack | review.completed
# tasks
task.created | task task draft task_capsule snapshot | task.changed
task.accepted | task task accepted task_capsule snapshot | task.changed
task.queued | task task submitted task_capsule snapshot | task.changed
task.started | task task acting task_capsule snapshot | task.changed
task.updated | task task unknown task_capsule snapshot | task.changed
task.progress | task task acting task_capsule ephemeral_live | task.changed
task.waiting | task task waiting task_capsule snapshot | task.changed
task.blocked | task task waiting task_capsule snapshot | task.changed
task.paused | task task waiting task_capsule snapshot | task.changed
task.resumed | task task acting task_capsule snapshot | task.changed
task.retrying | task task preparing task_capsule snapshot | task.changed
task.cancel_requested | task task interrupted task_capsule snapshot | task.changed
task.cancelled | task task cancelled task_capsule snapshot | task.changed
task.timed_out | task task failed task_capsule snapshot | task.changed
task.failed | task task failed task_capsule snapshot | task.changed
task.lost | task task unknown task_capsule snapshot | task.changed
task.completed | task task completed task_capsule snapshot | task.changed
task.archived | task task archived task_capsule archive | task.changed
task.profile.resolved | task task routing runtime_status snapshot | run.status
task.delegated | task task routing delegation_graph snapshot | task.changed
task.dependency.updated | task task unknown work_board snapshot | task.changed
task.attempt.started | task task acting task_capsule snapshot | task.changed
task.attempt.completed | task task completed task_capsule snapshot | task.changed
task.attempt.failed | task task failed task_capsule snapshot | task.changed
job.created | task task draft task_capsule snapshot | task.changed
job.queued | task task submitted task_capsule snapshot | task.changed
job.started | task task acting task_capsule snapshot | task.changed
job.progress | task task acting task_capsule ephemeral_live | task.changed
job.item.started | task task acting task_capsule snapshot | task.changed
job.item.completed | task task completed task_capsule snapshot | task.changed
job.item.failed | task task failed task_capsule snapshot | task.changed
job.completed | task task completed task_capsule snapshot | task.changed
job.failed | task task failed task_capsule snapshot | task.changed
job.cancelled | task task cancelled task_capsule snapshot | task.changed
# agents and teams
subagent.spawned | agent agent preparing team_roster snapshot | agent.spawned
subagent.started | agent agent acting team_roster snapshot | agent.changed
subagent.status | agent agent unknown team_roster snapshot | agent.changed
subagent.progress | agent agent acting team_roster ephemeral_live | agent.changed
subagent.input | agent agent unknown teammate_transcript transcript | agent.changed
subagent.completed | agent agent completed team_roster snapshot | agent.completed
subagent.failed | agent agent failed team_roster snapshot | agent.completed
subagent.closed | agent agent archived team_roster snapshot | agent.changed
worker.started | agent agent acting team_roster snapshot | agent.changed
worker.completed | agent agent completed team_roster snapshot | agent.completed
worker.notification | agent task unknown worker_notifications transcript | worker.notification
agent.changed | agent agent unknown team_roster snapshot | agent.changed
agent.spawned | agent agent preparing team_roster snapshot | agent.spawned
agent.completed | agent agent completed team_roster snapshot | agent.completed
agent.handoff | team task routing handoff_lane transcript | agent.handoff
handoff.requested | team task routing handoff_lane transcript | agent.handoff
handoff.accepted | team task accepted handoff_lane transcript | agent.handoff
handoff.rejected | team task failed handoff_lane transcript | agent.handoff
handoff.completed | team task completed handoff_lane transcript | agent.handoff
team.changed | team team unknown team_roster snapshot | team.changed
channel.connected | agent agent unknown remote_teammate snapshot | agent.changed
channel.disconnected | agent agent interrupted remote_teammate snapshot | agent.changed
channel.resumed | agent agent unknown remote_teammate snapshot | agent.changed
channel.message | agent agent unknown teammate_transcript transcript | agent.changed
channel.permission_forwarded | policy action_request waiting hitl transcript | permission.changed
channel.permission_returned | policy action_request completed hitl transcript | permission.changed
# processes and coding
process.started | runtime run acting inline_process transcript | tool.progress
process.output | runtime run acting inline_process ephemeral_live | tool.output.delta
process.input | runtime run acting inline_process transcript | tool.progress
process.completed | runtime run completed inline_process transcript | tool.progress
process.failed | runtime run failed inline_process transcript | tool.progress
process.terminated | runtime run cancelled inline_process transcript | tool.progress
command.started | tool tool_call acting inline_process transcript | tool.progress
command.output | tool tool_call acting inline_process ephemeral_live | tool.output.delta
command.exited | tool tool_call completed inline_process transcript | tool.progress
file.read | tool tool_call acting inline_process transcript | tool.progress
file.changed | artifact artifact producing artifact_workspace artifact_store | artifact.changed
patch.started | tool tool_call acting inline_process transcript | tool.progress
patch.applied | tool tool_call completed inline_process transcript | tool.progress
patch.failed | tool tool_call failed inline_process transcript | tool.progress
test.started | tool tool_call acting inline_process transcript | tool.progress
test.completed | tool tool_call completed inline_process transcript | tool.progress
# routing, cost, limits
routing.candidates.resolved | runtime run routing diagnostics diagnostics_log | run.status
routing.decided | runtime run routing runtime_status snapshot | run.status
routing.fallback.applied | runtime run routing runtime_status snapshot | run.status
routing.not_possible | runtime run failed diagnostics diagnostics_log | run.status diagnostic.changed
routing.single_candidate | runtime run routing runtime_status snapshot | run.status
limit.changed | policy run unknown runtime_status snapshot | metric.changed
cost.estimated | policy run unknown runtime_status diagnostics_log | metric.changed
cost.recorded | policy run unknown runtime_status diagnostics_log | metric.changed
rate_limit.hit | policy run waiting runtime_status diagnostics_log | diagnostic.changed
quota.low | policy run unknown runtime_status diagnostics_log | diagnostic.changed
quota.blocked | policy run failed runtime_status diagnostics_log | diagnostic.changed
# bookkeeping
output.spilled | runtime unknown unknown diagnostics diagnostics_log | diagnostic.changed
output.truncated | runtime unknown unknown diagnostics diagnostics_log | diagnostic.changed
output.redacted | runtime unknown unknown diagnostics diagnostics_log | diagnostic.changed
output.expired | runtime unknown unknown diagnostics diagnostics_log | diagnostic.changed
state.delta | runtime thread unknown unknown snapshot | state.delta
snapshot.updated | session thread reconciling session_tabs snapshot | state.snapshot
snapshot.repaired | session thread reconciling session_tabs snapshot | state.snapshot session.hydrated
stream.gap.detected | diagnostics thread hydrating diagnostics diagnostics_log | diagnostic.changed
stream.repair.started | diagnostics thread hydrating diagnostics diagnostics_log | diagnostic.changed
stream.repair.completed | diagnostics thread reconciling diagnostics diagnostics_log | diagnostic.changed
benchmark.dataset.resolved | evidence evidence preparing timeline_evidence evidence_pack | evidence.changed
benchmark.configuration.resolved | evidence evidence preparing timeline_evidence evidence_pack | evidence.changed
benchmark.trial.started | evidence evidence acting timeline_evidence evidence_pack | evidence.changed
benchmark.trial.completed | evidence evidence completed timeline_evidence evidence_pack | evidence.changed
benchmark.trial.failed | evidence evidence failed timeline_evidence evidence_pack | evidence.changed
benchmark.reward.recorded | evidence evidence reviewing timeline_evidence evidence_pack | evidence.changed
benchmark.comparison.completed | evidence evidence completed timeline_evidence evidence_pack | evidence.changed
runtime.warning | diagnostics run unknown diagnostics diagnostics_log | diagnostic.changed
runtime.error | diagnostics run failed diagnostics diagnostics_log | diagnostic.changed
metrics.changed | diagnostics run unknown diagnostics diagnostics_log | metric.changed
""")


EDGE_CLASSES: Final[dict[str, ClassRow]] = read_rows("""
project.created | session workspace unknown session_tabs snapshot | session.updated
project.updated | session workspace unknown session_tabs snapshot | session.updated
project.deleted | session workspace archived session_tabs archive | session.updated
conversation.created | session session unknown session_tabs snapshot | session.updated
conversation.member.added | session session unknown session_tabs snapshot | session.updated
thread.created | session thread unknown session_tabs snapshot | session.opened
thread.deleted | session thread archived session_tabs archive | session.closed
thread.forked | session thread unknown session_tabs snapshot | session.opened
message.created | session message submitted conversation transcript | session.updated
item.created | session message unknown conversation transcript | session.updated
item.updated | session message unknown conversation transcript | session.updated
runner.online | runtime application unknown runtime_status diagnostics_log | run.status
runner.offline | runtime application unknown runtime_status diagnostics_log | run.status
run.persistence_error | diagnostics run failed diagnostics diagnostics_log | diagnostic.changed
preview.ready | artifact run producing artifact_workspace snapshot | run.status
preview.stopped | artifact run archived artifact_workspace snapshot | run.status
""")


UI_CLASSES: Final[dict[str, ClassRow]] = read_rows("""
session.opened | session session unknown session_tabs snapshot
session.hydrated | session session hydrating session_tabs snapshot
session.updated | session session unknown session_tabs snapshot
session.closed | session session archived session_tabs archive
run.started | runtime run accepted runtime_status transcript
run.status | runtime run unknown runtime_status ephemeral_live
run.finished | runtime run unknown runtime_status transcript
run.failed | runtime run failed runtime_status transcript
plan.delta | model turn planning inline_process ephemeral_live
plan.final | model turn planning inline_process transcript
text.delta | model part producing conversation ephemeral_live
text.final | model part completed conversation transcript
reasoning.delta | model part reasoning inline_process ephemeral_live
reasoning.summary | model part reasoning inline_process transcript
tool.started | tool tool_call acting tool_ui transcript
tool.args | tool tool_call acting tool_ui transcript
tool.args.delta | tool tool_call acting tool_ui ephemeral_live
tool.progress | tool tool_call acting tool_ui ephemeral_live
tool.output.delta | tool tool_call acting tool_ui ephemeral_live
tool.result | tool tool_call completed tool_ui transcript
tool.failed | tool tool_call failed tool_ui transcript
action.required | action action_request waiting hitl transcript
action.resolved | action action_request unknown hitl transcript
queue.changed | runtime thread unknown task_capsule snapshot
task.changed | task task unknown task_capsule snapshot
agent.changed | agent agent unknown team_roster snapshot
agent.spawned | agent agent preparing team_roster snapshot
agent.completed | agent agent unknown team_roster snapshot
agent.handoff | team task unknown handoff_lane transcript
context.changed | context turn unknown runtime_status snapshot
context.compaction.started | context thread preparing inline_process transcript
context.compaction.completed | context thread completed inline_process transcript
permission.changed | policy turn unknown runtime_status transcript
artifact.created | artifact artifact producing artifact_workspace artifact_store
artifact.updated | artifact artifact producing artifact_workspace artifact_store
artifact.preview.ready | artifact artifact producing artifact_workspace artifact_store
artifact.version.created | artifact artifact producing artifact_workspace artifact_store
artifact.diff.ready | artifact artifact producing artifact_workspace artifact_store
artifact.export.started | artifact artifact producing artifact_workspace artifact_store
artifact.export.completed | artifact artifact completed artifact_workspace artifact_store
artifact.failed | artifact artifact failed artifact_workspace artifact_store
artifact.deleted | artifact artifact archived artifact_workspace artifact_store
artifact.changed | artifact artifact producing artifact_workspace artifact_store
evidence.changed | evidence evidence unknown timeline_evidence evidence_pack
state.snapshot | session thread reconciling session_tabs snapshot
state.delta | runtime thread unknown unknown snapshot
messages.snapshot | session thread reconciling conversation snapshot
diagnostic.changed | diagnostics run unknown diagnostics diagnostics_log
metric.changed | diagnostics run unknown diagnostics diagnostics_log
team.changed | team team unknown team_roster snapshot
worker.notification | agent task unknown worker_notifications transcript
review.requested | evidence evidence reviewing review_lane evidence_pack
review.completed | evidence evidence completed review_lane evidence_pack
""")


_CLASSIFICATION: Final = ("owner", "scope", "phase", "surface", "persistence")
_UNKNOWN_ROW: Final = ClassRow("", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

KNOWN_CLASSES: Final[dict[str, ClassRow]] = {**UI_CLASSES, **EDGE_CLASSES, **RUNTIME_CLASSES}
"""Every class with a row; a name that two tables have is the runtime's."""


def classify(fact: Fact) -> Fact:
    """The fact with its five classification fields filled."""
    row = KNOWN_CLASSES.get(fact.event_class or "", _UNKNOWN_ROW)
    return fill_from_row(fact, row)


def fill_from_row(fact: Fact, row: ClassRow) -> Fact:
    """The fact with the classification fields it leaves open taken from `row`."""
    missing = {name: getattr(row, name) for name in _CLASSIFICATION if getattr(fact, name) is None}
    return msgspec.structs.replace(fact, **missing) if missing else fact
