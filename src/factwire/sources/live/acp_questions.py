"""What an agent of the Agent Client Protocol asks a person, and how an answer is written.

An option means what its kind says. A yes is the option for this once unless another was chosen, and
an option that contradicts the decision is never taken: without one that fits, the question is
answered as cancelled, which is no yes.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word, words
from factwire.runtime.policy import Request
from factwire.runtime.provider import Decision
from factwire.sources.live.judging import real_paths
from factwire.sources.telling import Telling

Params = dict[str, Any]

PERMISSION: Final = "session/request_permission"
ELICITATION: Final = "elicitation/create"
CANCELLED: Final[Params] = {"outcome": {"outcome": "cancelled"}}

_OF_A_COMMAND: Final = frozenset({"command", "cwd", "description", "timeout"})
"""What the input of a call may hold without doing anything but run its command."""

_YES: Final = ("allow_once", "allow_always")
_NO: Final = ("reject_once", "reject_always")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the agent's: its id, and what it is about; `kind` and `args` are those of the
    call as it was told before, where the request does not repeat them.
    """

    number: Any
    method: str
    params: Params
    kind: str
    args: Params
    workspace: str

    @property
    def call_id(self) -> str | None:
        call = table(self.params.get("toolCall")) or self.params
        return word(call, "toolCallId")

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the call names, where they really are."""
        call = table(self.params.get("toolCall")) or {}
        rows = [*(listed(call.get("content")) or ()), *(listed(call.get("locations")) or ())]
        found = [path for row in map(table, rows) if row and (path := word(row, "path"))]
        return tuple(dict.fromkeys(real_paths(found, self.workspace)))

    @property
    def is_whole(self) -> bool:
        """Whether what a policy sees is all that is asked for: of an edit, the diff is more."""
        call = table(self.params.get("toolCall")) or {}
        return "command" in self.args and not listed(call.get("content"))

    def request(self) -> Request | None:
        """What a policy can judge."""
        if self.method != PERMISSION:
            return None
        line = self.args.get("command")
        command = line if isinstance(line, str) else tuple(words(line)) or None
        [cwd] = real_paths([word(self.args, "cwd") or "."], self.workspace)
        return Request(
            tool=self.kind,
            workspace=self.workspace,
            cwd=cwd,
            command=command or None,
            paths=() if command else self.paths,
            url=word(self.args, "url"),
            args={} if command and self.args.keys() <= _OF_A_COMMAND else self.args,
        )

    def result(self, decision: Decision) -> Params:
        """What the agent is told."""
        if self.method == ELICITATION:
            return _elicited(decision)
        return self._chosen(decision)

    def decided(self, *, allowed: bool) -> Params:
        """What the agent is told where a rule decides."""
        name = "approved" if allowed else "denied"
        return self.result(Decision(action_id="", allowed=allowed, decision=name))

    def _chosen(self, decision: Decision) -> Params:
        kinds: Sequence[str] = _YES if decision.allowed else _NO
        rows = [row for row in map(table, listed(self.params.get("options")) or ()) if row]
        fitting = {word(row, "optionId"): word(row, "kind") or "" for row in rows}
        fitting = {name: kind for name, kind in fitting.items() if name and kind in kinds}
        wanted = table(decision.response)
        chosen = word(wanted, "optionId", "id") if wanted else decision.response
        if not isinstance(chosen, str) or chosen not in fitting:
            # Not for ever, unless that was what somebody chose.
            once = [name for name, kind in fitting.items() if kind == kinds[0]]
            chosen = next(iter(once if decision.allowed else [*once, *fitting]), None)
        if chosen is None:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": chosen}}


def question_of(item: Params, telling: Telling, workspace: str) -> Question:
    params = table(item.get("params")) or {}
    call = table(params.get("toolCall")) or {}
    known = telling.tools.get(word(call, "toolCallId") or "")
    before = table(known.args) if known is not None else None
    return Question(
        number=item.get("id"),
        method=word(item, "method") or "",
        params=params,
        kind=word(call, "kind") or (known.name if known is not None else None) or "other",
        args={**(before or {}), **(table(call.get("rawInput")) or {})},
        workspace=workspace,
    )


def _elicited(decision: Decision) -> Params:
    if not decision.allowed:
        return {"action": "decline"}
    return {"action": "accept", "content": table(decision.response) or {}}
