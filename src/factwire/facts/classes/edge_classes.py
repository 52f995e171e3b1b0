"""Classes that an Edge adds to those of a runtime: its projects, conversations, threads and runners."""

from typing import Final

from factwire.facts.classes.payloads import (
    ConversationPayload,
    HistoryRemovalPayload,
    ItemPayload,
    MemberPayload,
    PersistenceFailurePayload,
    PreviewPayload,
    ProjectPayload,
    RetentionPayload,
    RunnerPayload,
    ThreadForkPayload,
    ThreadPayload,
)
from factwire.facts.classes.required_fields import (
    CONVERSATION,
    ITEM,
    MEMBER,
    PARENT_THREAD,
    PREVIEW,
    PROJECT,
    RUN,
    RUNNER,
    THREAD,
)
from factwire.facts.classes.specification import Family, row

FAMILIES: Final = (
    Family("project", payload=ProjectPayload, requires=(PROJECT,)),
    Family("conversation", payload=ConversationPayload, requires=(CONVERSATION,)),
    Family("message", kind="model", payload=ItemPayload, requires=(ITEM,)),
    Family("item", payload=ItemPayload, requires=(ITEM,)),
    Family("runner", payload=RunnerPayload, requires=(RUNNER,)),
    Family("preview", payload=PreviewPayload, requires=(PREVIEW,)),
    Family("retention", payload=RetentionPayload),
)  # fmt: skip

CLASSES: Final = (
    row("project.created", "session workspace unknown session_tabs snapshot", "session.updated"),
    row("project.updated", "session workspace unknown session_tabs snapshot", "session.updated"),
    row("project.deleted", "session workspace archived session_tabs archive", "session.updated"),
    row("conversation.created", "session session unknown session_tabs snapshot", "session.updated"),
    row("conversation.member.added", "session session unknown session_tabs snapshot", "session.updated",
        payload=MemberPayload, requires=(MEMBER,)),
    row("thread.created", "session thread unknown session_tabs snapshot", "session.opened",
        payload=ThreadPayload, requires=(THREAD,)),
    row("thread.deleted", "session thread archived session_tabs archive", "session.closed",
        payload=ThreadPayload, requires=(THREAD,)),
    row("thread.forked", "session thread unknown session_tabs snapshot", "session.opened",
        payload=ThreadForkPayload, requires=(THREAD, PARENT_THREAD)),
    row("message.created", "session message submitted conversation transcript", "session.updated"),
    row("item.created", "session message unknown conversation transcript", "session.updated"),
    row("item.updated", "session message unknown conversation transcript", "session.updated"),
    row("runner.online", "runtime application unknown runtime_status diagnostics_log", "run.status"),
    row("runner.offline", "runtime application unknown runtime_status diagnostics_log", "run.status"),
    row("run.persistence_error", "diagnostics run failed diagnostics diagnostics_log", "diagnostic.changed",
        payload=PersistenceFailurePayload, requires=(RUN,)),
    row("preview.ready", "artifact run producing artifact_workspace snapshot", "run.status"),
    row("preview.stopped", "artifact run archived artifact_workspace snapshot", "run.status"),
    row("history.removed", "session application archived diagnostics archive", "session.updated",
        payload=HistoryRemovalPayload),
    row("retention.completed", "diagnostics application completed diagnostics diagnostics_log", "diagnostic.changed"),
)  # fmt: skip
