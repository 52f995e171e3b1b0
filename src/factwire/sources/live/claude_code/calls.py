"""Calls of tools, as they are shown to Factwire's policy: before each, and when leave is asked.

Before each call, because Claude Code's own settings allow things without asking, and a rule that
denies has to hold whatever they say. What a rule decides is told with the rule and asked of nobody.
"""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.runtime.policy import Request, evaluate
from factwire.sources.claude_code.control import QUESTIONS
from factwire.sources.claude_code.session import Session
from factwire.sources.live.claude_code.judging import before_call, question_about, request_of
from factwire.sources.live.claude_code.limits import FOLDERS_KEPT
from factwire.sources.live.claude_code.messages import POLICY, allowed, denied, hooked
from factwire.sources.live.judging import ruled
from factwire.sources.live.turn import LiveTurn

_NOBODY: Final = "Nobody is to be asked."


class Calls:
    """Answers by rule what can be; the folder of each call is known from before it is asked about,
    because commands of Claude Code's move about.
    """

    def __init__(self, live: LiveTurn, session: Session) -> None:
        self._live = live
        self._session = session
        self._policy = live.host.means.policy
        self._workspace = str(live.host.workspace.resolve())
        self._folders: dict[str, str] = {}
        session.about = self._about

    @property
    def needs_hook(self) -> bool:
        """Whether there are rules that Claude Code's own settings must not get round."""
        policy = self._policy
        return bool(policy.deny or policy.ask) or policy.mode == "plan"

    def answer(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """What a rule says to a request of Claude Code's; None where none does."""
        subtype = word(asked, "subtype")
        if subtype == "hook_callback" and word(asked, "callback_id") == POLICY:
            return self._before(table(asked.get("input")) or {})
        return self._asked(asked) if subtype == "can_use_tool" else None

    def _before(self, call: dict[str, Any]) -> dict[str, Any]:
        call_id, name = word(call, "tool_use_id") or "", word(call, "tool_name") or ""
        self._remember(call_id, word(call, "cwd"))
        request = self._request(name, call.get("tool_input"), call_id)
        decision = before_call(self._policy, request)
        if decision == "deny":
            self._ruled(call, request, call.get("tool_input"))
        return hooked(decision, evaluate(self._policy, request).message)

    def _asked(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        name, call_id = word(asked, "tool_name") or "", word(asked, "tool_use_id") or ""
        if name in QUESTIONS:
            return denied(_NOBODY) if self._policy.mode == "dontAsk" else None
        request = self._request(name, asked.get("input"), call_id)
        answer = self._ruled(asked, request, asked.get("input"))
        if answer is None:
            return None
        return allowed(asked) if answer else denied(evaluate(self._policy, request).message)

    def _ruled(self, call: dict[str, Any], request: Request, given: Any) -> bool | None:
        tell, call_id = self._live.tell, word(call, "tool_use_id") or ""
        agent = word(call, "agent_id")
        speaker = agent if agent in tell.subagents else None
        if call_id not in tell.tools:
            tell.tool(call_id, request.tool, given, subagent_id=speaker)
        answer = ruled(self._live, request, call_id=call_id, subagent_id=speaker)
        if answer is False:
            # Claude Code will say so as well; it is told once, with the rule.
            self._session.denied.add(call_id)
        return answer

    def _about(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = word(asked, "tool_name") or ""
        if name in QUESTIONS:
            return {}
        call_id = word(asked, "tool_use_id") or ""
        return question_about(self._request(name, asked.get("input"), call_id))

    def _request(self, name: str, given: Any, call_id: str) -> Request:
        cwd = self._folders.get(call_id) or self._workspace
        return request_of(name, given, workspace=self._workspace, cwd=cwd)

    def _remember(self, call_id: str, cwd: str | None) -> None:
        if cwd is not None:
            self._folders[call_id] = cwd
        while len(self._folders) > FOLDERS_KEPT:
            del self._folders[next(iter(self._folders))]
