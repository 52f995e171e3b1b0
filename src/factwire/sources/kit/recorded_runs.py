"""Runs of SDKs whose streams say neither where they begin nor where they end.

Whoever records such a stream writes a line of its own before and after each run: `run.started`, and
`run.completed`, `run.failed`, `run.cancelled` or `run.interrupted`. A recording that stops before
its closing line was cut off. A run that was interrupted for a decision waits: the next
`run.started` without an input goes on with the same turn, and says what was decided.
"""

from collections.abc import Callable
from typing import Any, Final

from factwire.facts import UnreadableInput, decode_json
from factwire.facts.json_values import list_at, object_at, text_at
from factwire.sources.kit.fact_builder import FactBuilder

_USERS: Final = ("human", "user")
"""What SDKs call the role of a person."""

_PLACES: Final = 1_000_000
"""More parts than any response has; a greater number is no place."""

_COUNTS: Final = (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))

_HINTS: Final = {
    "agent_error": "Check the message; it was raised by the agent, its model or one of its tools.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Check the key that the agent uses, then retry the turn.",
    "provider_unavailable": "Retry the turn later; the problem is at the model's server.",
    "stream_interrupted": "Retry the turn; what it did so far is kept.",
    "step_limit_reached": "Ask it to continue, or allow more steps.",
    "invalid_output": "Retry the turn, or use another model.",
    "guardrail_tripped": "Rephrase the request, or check the guardrails of the agent.",
}
"""What helps when a run fails in one of the ways that a recorder can tell apart."""


class RecordedRun:
    """Begins and ends the turns of a recording; `ask` tells one interruption as an action, and
    `close` is told before a turn ends whether it `completed` or `failed`.
    """

    def __init__(
        self,
        builder: FactBuilder,
        ask: Callable[[dict[str, Any]], None],
        close: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.builder = builder
        self.ask = ask
        self.close = close
        self.is_waiting = False
        self.denied: set[str] = set()

    def take(self, item: dict[str, Any]) -> bool:
        """Whether the item is a line of the recorder; then it is told."""
        handle = _LINES.get(text_at(item, "type") or "")
        if handle is None:
            return False
        if self.builder.is_open:
            note_usage(self.builder, item.get("usage"))
        handle(self, item)
        return True

    def finish(self) -> None:
        """Nobody decided in this recording: the run ended where it asked, or it was cut off."""
        self.close("failed")
        if self.is_waiting:
            self.is_waiting = False
            self.builder.complete_turn(stopReason="interrupt")


def read_text(content: object) -> str:
    """The text of a message, which is a text or a list of blocks that have some."""
    if isinstance(content, str):
        return content
    blocks = [
        block
        if isinstance(block, str)
        else text_at(object_at(block) or {}, "text", "refusal") or ""
        for block in list_at(content) or ()
    ]
    return "".join(blocks)


def note_usage(builder: FactBuilder, usage: object) -> None:
    """What was used; it adds up over a turn."""
    counts = object_at(usage) or {}
    for name, ours in _COUNTS:
        count = counts.get(name)
        if type(count) is int:
            builder.usage[ours] = builder.usage.get(ours, 0) + count


def read_index(item: dict[str, Any], name: str) -> int:
    """Where something stands in a list; a number that is no place there is the first."""
    place = item.get(name)
    return place if type(place) is int and 0 <= place < _PLACES else 0


def parse_arguments(value: object) -> Any:
    """Arguments of a call, which may come as JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        return decode_json(value.encode("utf-8", "replace")) if value else None
    except UnreadableInput:
        return value


def _on_started(run: RecordedRun, item: dict[str, Any]) -> None:
    value = item.get("input")
    if run.is_waiting and value is None:
        run.is_waiting = False
        _resolve_actions(run, list_at(item.get("decisions")) or [])
        run.builder.add_fact("run.status", {"status": "running"})
        return
    run.finish()
    run.denied.clear()
    prompt = _find_prompt(value)
    run.builder.begin_turn(prompt, **({} if prompt or value is None else {"request": value}))


def _resolve_actions(run: RecordedRun, decisions: list[Any]) -> None:
    """What was decided; what the recorder says nothing of is closed as unknown."""
    for decision in map(object_at, decisions):
        if decision:
            _resolve_action(run, decision)
    for action_id in list(run.builder.actions):
        run.builder.resolve_action(action_id, "unknown")


def _resolve_action(run: RecordedRun, decision: dict[str, Any]) -> None:
    action_id, approved = text_at(decision, "id") or "", decision.get("approved")
    if approved is False:
        run.denied.add(action_id)
    verdict = {True: "approved", False: "denied"}[approved] if type(approved) is bool else None
    run.builder.resolve_action(
        action_id,
        verdict or "answered",
        reason=text_at(decision, "reason"),
        answer=decision.get("answer"),
    )


def _on_completed(run: RecordedRun, item: dict[str, Any]) -> None:
    output = item.get("final_output")
    run.close("completed")
    run.builder.complete_turn(structuredOutput=None if isinstance(output, str) else output)
    run.is_waiting = False


def _on_failed(run: RecordedRun, item: dict[str, Any]) -> None:
    message = text_at(item, "message", "error") or "the run failed"
    if not run.builder.is_open:
        run.builder.begin_turn()
    category = _failure_category(run, text_at(item, "category"))
    run.close("failed")
    run.builder.fail_turn(category, message, _HINTS.get(category), code=text_at(item, "error"))
    run.is_waiting = False


def _failure_category(run: RecordedRun, text: str | None) -> str:
    """A connection that is lost cuts off an answer, or there was none to cut off."""
    if text != "connection_lost":
        return text or "provider_error"
    return "stream_interrupted" if run.builder.messages else "provider_unavailable"


def _on_cancelled(run: RecordedRun, item: dict[str, Any]) -> None:
    run.close("failed")
    run.builder.cancel_turn(text_at(item, "reason") or "requested")
    run.is_waiting = False


def _on_interrupted(run: RecordedRun, item: dict[str, Any]) -> None:
    for interruption in map(object_at, list_at(item.get("interruptions")) or ()):
        run.ask(interruption or {})
    if run.builder.is_open:
        run.builder.add_fact("run.status", {"status": "waiting"})
        run.is_waiting = True


def _find_prompt(value: object) -> str | None:
    """What a person asked: the input itself, or the last message of a person in it."""
    if isinstance(value, str):
        return value or None
    messages = list_at(value) or list_at((object_at(value) or {}).get("messages")) or []
    for message in map(object_at, reversed(messages)):
        if message and text_at(message, "role", "type") in _USERS:
            return read_text(message.get("content")) or None
    return None


_LINES: Final = {
    "run.started": _on_started,
    "run.completed": _on_completed,
    "run.failed": _on_failed,
    "run.cancelled": _on_cancelled,
    "run.interrupted": _on_interrupted,
}

LINES: Final = {
    "run.started": "turn.submitted, turn.started; or action.resolved, if it continues",
    "run.completed, run.failed, run.cancelled": "turn.completed, turn.failed, turn.canceled",
    "run.interrupted": "action.required",
}
"""What the recorder's lines become."""
