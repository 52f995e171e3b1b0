"""The Edge's own classes: what a server on one machine does that no agent does.

Projects, conversations, threads, messages and previews are made by its routes, runners come and go
with it. One line a class, as for the runtime classes: owner, scope, phase, surface and persistence,
then the Agent UI classes that it becomes. `thread.updated` is a runtime class, and the Edge's too.
"""

from typing import Final

from factwire.facts.class_rows import ClassRow, read_rows

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
