"""The Agent UI classes: what each is about and where it shows.

One line a class: its owner, scope, phase, surface and persistence. A UI event that was made from a
runtime fact keeps what the runtime class knew; this table serves events that arrive as UI events.
"""

from typing import Final

from factwire.facts.class_rows import ClassRow, read_rows

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
