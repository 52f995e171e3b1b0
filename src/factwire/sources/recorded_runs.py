"""Runs of SDKs whose streams say neither where they begin nor where they end.

Whoever records such a stream writes a line of its own before and after each run: `run.started`, and
`run.completed`, `run.failed`, `run.cancelled` or `run.interrupted`. A recording that stops before
its closing line was cut off. A run that was interrupted for a decision waits: the next
`run.started` without an input goes on with the same turn, and says what was decided.
"""

from collections.abc import Callable
from typing import Any, Final

from factwire.facts import UnreadableInput, decode_json
from factwire.projection.reading import listed, table, word
from factwire.sources.telling import Telling

_USERS: Final = ("human", "user")
"""What SDKs call the role of a person."""

_PLACES: Final = 1_000_000
"""More parts than any response has; a greater number is no place."""

_COUNTS: Final = (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))

_HINTS: Final = {
    "agent_error": "Look at the message; the agent, its model or a tool of it raised it.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Check the key that the agent uses, then retry the turn.",
    "provider_unavailable": "Retry the turn later; the model's server did not do its part.",
    "stream_interrupted": "Retry the turn; what it had done until then is kept.",
    "step_limit_reached": "Ask it to go on, or let it take more steps.",
    "guardrail_tripped": "Ask in another way, or look at the guardrails of the agent.",
}
"""What helps when a run fails in one of the ways that a recorder can tell apart."""


class RecordedRun:
    """Begins and ends the turns of a recording; `ask` tells one interruption as an action, and
    `close` is told before a turn ends whether it `completed` or `failed`.
    """

    def __init__(
        self,
        telling: Telling,
        ask: Callable[[dict[str, Any]], None],
        close: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.tell = telling
        self.ask = ask
        self.close = close
        self.is_waiting = False
        self.denied: set[str] = set()

    def take(self, item: dict[str, Any]) -> bool:
        """Whether the item is a line of the recorder; then it is told."""
        handle = _LINES.get(word(item, "type") or "")
        if handle is None:
            return False
        if self.tell.is_open:
            note_usage(self.tell, item.get("usage"))
        handle(self, item)
        return True

    def finish(self) -> None:
        """Nobody decided in this recording: the run ended where it asked, or it was cut off."""
        self.close("failed")
        if self.is_waiting:
            self.is_waiting = False
            self.tell.complete(stopReason="interrupt")


def text_of(content: object) -> str:
    """The text of a message, which is a text or a list of blocks that have some."""
    if isinstance(content, str):
        return content
    blocks = [
        block if isinstance(block, str) else word(table(block) or {}, "text", "refusal") or ""
        for block in listed(content) or ()
    ]
    return "".join(blocks)


def note_usage(tell: Telling, usage: object) -> None:
    """What was used; it adds up over a turn."""
    counts = table(usage) or {}
    for name, ours in _COUNTS:
        count = counts.get(name)
        if type(count) is int:
            tell.usage[ours] = tell.usage.get(ours, 0) + count


def place_of(item: dict[str, Any], name: str) -> int:
    """Where something stands in a list; a number that is no place there is the first."""
    place = item.get(name)
    return place if type(place) is int and 0 <= place < _PLACES else 0


def parsed(given: object) -> Any:
    """Arguments of a call, which may come as JSON in a text."""
    if not isinstance(given, str):
        return given
    try:
        return decode_json(given.encode("utf-8", "replace")) if given else None
    except UnreadableInput:
        return given


def _started(run: RecordedRun, item: dict[str, Any]) -> None:
    given = item.get("input")
    if run.is_waiting and given is None:
        run.is_waiting = False
        _decide(run, listed(item.get("decisions")) or [])
        run.tell.fact("run.status", {"status": "running"})
        return
    run.finish()
    run.denied.clear()
    prompt = _prompt(given)
    run.tell.begin(prompt, **({} if prompt or given is None else {"request": given}))


def _decide(run: RecordedRun, decisions: list[Any]) -> None:
    """What was decided; what the recorder says nothing of is closed as unknown."""
    for decision in map(table, decisions):
        if decision:
            _resolve(run, decision)
    for action_id in list(run.tell.actions):
        run.tell.answered(action_id, "unknown")


def _resolve(run: RecordedRun, decision: dict[str, Any]) -> None:
    action_id, approved = word(decision, "id") or "", decision.get("approved")
    if approved is False:
        run.denied.add(action_id)
    verdict = {True: "approved", False: "denied"}[approved] if type(approved) is bool else None
    run.tell.answered(
        action_id,
        verdict or "answered",
        reason=word(decision, "reason"),
        answer=decision.get("answer"),
    )


def _completed(run: RecordedRun, item: dict[str, Any]) -> None:
    output = item.get("final_output")
    run.close("completed")
    run.tell.complete(structuredOutput=None if isinstance(output, str) else output)
    run.is_waiting = False


def _failed(run: RecordedRun, item: dict[str, Any]) -> None:
    message = word(item, "message", "error") or "the run failed"
    if not run.tell.is_open:
        run.tell.begin()
    category = _category(run, word(item, "category"))
    run.close("failed")
    run.tell.fail(category, message, _HINTS.get(category), code=word(item, "error"))
    run.is_waiting = False


def _category(run: RecordedRun, said: str | None) -> str:
    """A connection that is lost cuts off an answer, or there was none to cut off."""
    if said != "connection_lost":
        return said or "provider_error"
    return "stream_interrupted" if run.tell.messages else "provider_unavailable"


def _cancelled(run: RecordedRun, item: dict[str, Any]) -> None:
    run.close("failed")
    run.tell.cancel(word(item, "reason") or "requested")
    run.is_waiting = False


def _interrupted(run: RecordedRun, item: dict[str, Any]) -> None:
    for interruption in map(table, listed(item.get("interruptions")) or ()):
        run.ask(interruption or {})
    if run.tell.is_open:
        run.tell.fact("run.status", {"status": "waiting"})
        run.is_waiting = True


def _prompt(given: object) -> str | None:
    """What a person asked: the input itself, or the last message of a person in it."""
    if isinstance(given, str):
        return given or None
    messages = listed(given) or listed((table(given) or {}).get("messages")) or []
    for message in map(table, reversed(messages)):
        if message and word(message, "role", "type") in _USERS:
            return text_of(message.get("content")) or None
    return None


_LINES: Final = {
    "run.started": _started,
    "run.completed": _completed,
    "run.failed": _failed,
    "run.cancelled": _cancelled,
    "run.interrupted": _interrupted,
}

LINES: Final = {
    "run.started": "turn.submitted, turn.started; or action.resolved, where it goes on",
    "run.completed, run.failed, run.cancelled": "turn.completed, turn.failed, turn.canceled",
    "run.interrupted": "action.required",
}
"""What the recorder's lines become."""
