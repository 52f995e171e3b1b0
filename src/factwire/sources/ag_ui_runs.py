"""What AG-UI says in several runs: questions that end one, and the next one that answers them.

Events and metadata of our own outlet, under `factwire`, say what the protocol has no word for.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.projection.reading import listed, table, word, words
from factwire.sources.own_notes import retell

if TYPE_CHECKING:
    from factwire.sources.ag_ui import AgUi


def goes_on(agui: "AgUi", item: dict[str, Any], given: dict[str, Any], waited: str | None) -> bool:
    """Whether a run goes on with the one that waits; its answers are told."""
    answers = [entry for entry in map(table, listed(given.get("resume")) or ()) if entry]
    for entry in answers:
        _answer(agui, entry)
    return bool(answers) or (waited is not None and word(item, "parentRunId") == waited)


def _answer(agui: "AgUi", entry: dict[str, Any]) -> None:
    action, payload = word(entry, "interruptId") or "interrupt", entry.get("payload")
    if word(entry, "status") == "cancelled":
        agui.tell.withdrawn(action, "cancelled")
        return
    said = table(payload) or {}
    approved = said.get("approved")
    plain = {True: "approved", False: "denied"}[approved] if isinstance(approved, bool) else None
    response = said.get("response") if word(said, "decision") else payload
    decision = word(said, "decision") or plain or "answered"
    if approved is False:
        agui.denied.add(agui.asked.pop(action, None))
    agui.tell.answered(action, decision, reason=word(said, "reason"), response=response)


def ask(agui: "AgUi", interrupt: dict[str, Any]) -> None:
    details = ours(interrupt)
    assumed = "tool_approval" if word(interrupt, "toolCallId") else "structured_input"
    said = {
        "actionType": word(details, "actionType") or assumed,
        "toolName": word(details, "toolName"),
        "args": details.get("args"),
        "options": listed(details.get("options")),
        "prompt": word(interrupt, "message") or word(interrupt, "reason"),
        "responseSchema": table(interrupt.get("responseSchema")),
        "expiresAt": word(interrupt, "expiresAt"),
    }
    action = word(interrupt, "id") or "interrupt"
    ids = {
        "tool_call_id": word(interrupt, "toolCallId"),
        "subagent_id": agui.speaker(interrupt),
    }
    agui.asked[action] = ids["tool_call_id"]
    agui.tell.ask(action, said, **ids)


def own_event(agui: "AgUi", item: dict[str, Any]) -> bool:
    """Tell a `CUSTOM` event if it is one of our outlet's."""
    name, value = word(item, "name") or "", table(item.get("value"))
    if value is None or not name.startswith(OURS):
        return False
    _CUSTOMS.get(name.removeprefix(OURS), _retold)(agui, value)
    return True


def _retold(agui: "AgUi", value: dict[str, Any]) -> None:
    retell(agui.tell, value)


def _retraction(agui: "AgUi", value: dict[str, Any]) -> None:
    gone = words(value.get("messageIds"))
    if gone:
        agui.tell.retract(*gone)


def _other_args(agui: "AgUi", value: dict[str, Any]) -> None:
    agui.tell.tool(_call_id(value), None, value.get("args"))


def _call_news(agui: "AgUi", value: dict[str, Any]) -> None:
    delta = word(value, "delta")
    if _call_id(value) in agui.tell.tools and delta is not None:
        agui.tell.tool_output(_call_id(value), delta, word(value, "stream"))


def ours(item: dict[str, Any]) -> dict[str, Any]:
    """What our outlet has said beside the protocol."""
    return table((table(item.get("metadata")) or {}).get("factwire")) or {}


def _call_id(value: dict[str, Any]) -> str:
    return word(value, "toolCallId") or "call"


OURS: Final = "factwire."
_CUSTOMS: Final = {
    "answer": _answer,
    "args": _other_args,
    "call-news": _call_news,
    "retraction": _retraction,
}
