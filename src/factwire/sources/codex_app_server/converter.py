"""The converter: which line goes where."""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.sources.codex_app_server import notices
from factwire.sources.codex_app_server.items import item_event
from factwire.sources.codex_app_server.requests import (
    answer,
    client_request,
    is_asked,
    resolved,
    server_request,
)
from factwire.sources.codex_app_server.session import Session
from factwire.sources.telling import Telling


class CodexAppServer:
    """Converts the lines of one connection, of both sides or of the server alone."""

    def __init__(self, telling: Telling) -> None:
        self.session = Session(telling)

    def take(self, item: dict[str, Any]) -> None:
        session, method = self.session, word(item, "method")
        session.tick(item)
        if method is None:
            _answer(session, item)
        elif "id" not in item:
            _notification(session, item, method)
        elif is_asked(method):
            server_request(session, item, method)
        elif method.startswith(_CLIENT):
            client_request(session, item, method)
        else:
            session.tell.unknown(f"request {method}", item)

    def finish(self) -> None:
        """A turn that was announced last has begun, whatever came of it."""
        self.session.settle()


def _answer(session: Session, item: dict[str, Any]) -> None:
    if "id" in item:
        answer(session, item)
    else:
        session.tell.unknown("line without a method", item)


def _notification(session: Session, item: dict[str, Any], method: str) -> None:
    params = table(item.get("params")) or {}
    handle = _NOTICES.get(method)
    if handle is not None:
        handle(session, params)
    elif method in _ITEMS:
        item_event(session, method, params)
    elif not method.startswith(_QUIET):
        session.tell.unknown(f"notification {method}", item)


_CLIENT: Final = (
    "account/",
    "app/",
    "command/",
    "config/",
    "configRequirements/",
    "experimentalFeature/",
    "externalAgentConfig/",
    "feedback/",
    "fs/",
    "fuzzyFileSearch",
    "hooks/",
    "initialize",
    "marketplace/",
    "mcpServer",
    "model",
    "permissionProfile/",
    "plugin/",
    "review/",
    "skills/",
    "thread",
    "turn/",
    "windowsSandbox/",
)
"""How the methods of a client's requests begin."""

_QUIET: Final = (
    "account/",
    "app/",
    "command/exec/",
    "externalAgentConfig/",
    "fs/",
    "fuzzyFileSearch/",
    "initialized",
    "item/reasoning/summaryPartAdded",
    "mcpServer/",
    "model/safetyBuffering/",
    "model/verification",
    "modelProvider/",
    "process/",
    "project/",
    "remoteControl/",
    "skills/",
    "thread/",
    "turn/moderationMetadata",
    "windows",
)
"""What is about the server, the account or the client's screen, and not about the work."""

_ITEMS: Final = frozenset({"item/started", "item/completed"})

_NOTICES: Final = {
    "thread/started": notices.thread_started,
    "thread/name/updated": notices.thread_name,
    "thread/tokenUsage/updated": notices.token_usage,
    "thread/compacted": notices.compacted,
    "turn/started": notices.turn_started,
    "turn/completed": notices.turn_completed,
    "turn/diff/updated": notices.diff_updated,
    "turn/plan/updated": notices.plan_updated,
    "item/agentMessage/delta": notices.message_delta,
    "item/plan/delta": notices.plan_delta,
    "item/reasoning/textDelta": notices.reasoning_delta,
    "item/reasoning/summaryTextDelta": notices.reasoning_delta,
    "item/commandExecution/outputDelta": notices.output_delta,
    "item/commandExecution/terminalInteraction": notices.terminal_input,
    "item/fileChange/outputDelta": notices.output_delta,
    "item/fileChange/patchUpdated": notices.patch_updated,
    "item/mcpToolCall/progress": notices.mcp_progress,
    "item/autoApprovalReview/started": notices.auto_review,
    "item/autoApprovalReview/completed": notices.auto_review,
    "serverRequest/resolved": resolved,
    "hook/started": notices.hook,
    "hook/completed": notices.hook,
    "model/rerouted": notices.rerouted,
    "account/rateLimits/updated": notices.rate_limits,
    "error": notices.failed,
    "warning": notices.warning,
    "guardianWarning": notices.warning,
    "deprecationNotice": notices.warning,
    "configWarning": notices.warning,
    "autoApprovalReview/strictReviewRequired": notices.warning,
}
