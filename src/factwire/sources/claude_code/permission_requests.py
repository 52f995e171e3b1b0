"""Calls of Claude Code's tools as Factwire's policy and people see them, and the lines that
answer.

The policy is asked before each call, because Claude Code's own settings allow things without
asking, and a rule that denies has to hold whatever they say. What a rule decides is recorded
with the rule and asked of nobody.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from factwire.facts.json_values import list_at, object_at, text_at
from factwire.runtime.action_cards import bind_place
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    assess_risk,
    evaluate,
    follow_links,
    hash_request,
    is_readable,
    show_request,
)
from factwire.runtime.provider import Decision
from factwire.sources.claude_code.convert import QUESTIONS
from factwire.sources.claude_code.transcript import ClaudeSession
from factwire.sources.kit.live_agent import LiveTurn
from factwire.sources.kit.policy_check import check_policy, resolve_paths
from factwire.sources.kit.turn_inputs import ImagePrompt

BACKGROUND_SECONDS: Final = 600.0
"""Seconds that a command in the background may outlive the answer: as long as Claude Code itself
waits for one before it gives up."""

FOLDERS_KEPT: Final = 1_000
"""Calls whose folder is remembered until somebody is asked about them; far more than are open."""


InputLine = dict[str, Any]

POLICY: Final = "factwire-policy"
"""The name under which the policy is asked about each call."""

_NO_ANSWER: Final = "No answer was given."


def initialize_line() -> InputLine:
    """Before every call the policy is asked; without its word nothing is done."""
    hook = {"matcher": None, "hookCallbackIds": [POLICY], "onFailure": "block"}
    return request_line("initialize", hooks={"PreToolUse": [hook]})


def request_line(subtype: str, **more: Any) -> InputLine:
    """Something that is asked of Claude Code."""
    question = {"subtype": subtype, **more}
    return {"type": "control_request", "request_id": f"factwire-{uuid4()}", "request": question}


def prompt_line(value: str | Sequence[str | ImagePrompt]) -> InputLine:
    """What a person says; its uuid is by what Claude Code says that it has taken it up."""
    content = value if isinstance(value, str) else [_to_block(part) for part in value]
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": str(uuid4())}


def _to_block(part: str | ImagePrompt) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = b64encode(part.data).decode()
    source = {"type": "base64", "media_type": part.media_type, "data": data}
    return {"type": "image", "source": source}


def response_line(request_id: str, payload: dict[str, Any]) -> InputLine:
    answer = {"subtype": "success", "request_id": request_id, "response": payload}
    return {"type": "control_response", "response": answer}


def refusal_line(request_id: str, why: str) -> InputLine:
    answer = {"subtype": "error", "request_id": request_id, "error": why}
    return {"type": "control_response", "response": answer}


def hook_output(decision: str | None, why: str) -> dict[str, Any]:
    """What the policy says before a call; None leaves it to Claude Code's own settings."""
    if decision is None:
        return {}
    payload = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **payload}}


def allow_output(question: dict[str, Any]) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": object_at(question.get("input")) or {}}


def deny_output(why: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": why}


def decision_output(question: dict[str, Any], decision: Decision) -> dict[str, Any]:
    """What Claude Code is told of a decision, in its own words."""
    if text_at(question, "subtype") == "elicitation":
        content = object_at(decision.response) or {}
        yes = {"action": "accept", "content": content}
        return yes if decision.allowed else {"action": "decline"}
    if not decision.allowed:
        return deny_output(decision.reason or f"The answer was no ({decision.decision}).")
    if QUESTIONS.get(text_at(question, "tool_name") or "") == "structured_input":
        return _answers_output(question, decision.response)
    lasting = _accepted_permissions(question, decision.response)
    return allow_output(question) | ({"updatedPermissions": lasting} if lasting else {})


def _answers_output(question: dict[str, Any], answer: Any) -> dict[str, Any]:
    """Answers under their questions; one question alone may be answered by a text."""
    rows = map(object_at, list_at((object_at(question.get("input")) or {}).get("questions")) or ())
    questions = [text for row in rows if (text := text_at(row or {}, "question"))]
    value = object_at(answer)
    if value is None and answer is not None and len(questions) == 1:
        value = {questions[0]: answer}
    inner = object_at((value or {}).get("answers")) or value or {}
    answers = {text: _answer_text(inner[text]) for text in questions if inner.get(text) is not None}
    if not answers:
        return deny_output(_NO_ANSWER)
    yes = allow_output(question)
    return {**yes, "updatedInput": {**yes["updatedInput"], "answers": answers}}


def _answer_text(value: Any) -> str:
    rows = list_at(value)
    return ", ".join(map(str, rows)) if rows is not None else str(value)


def _accepted_permissions(question: dict[str, Any], answer: Any) -> list[Any]:
    """Which of the changes that Claude Code offered to its own rules were taken; no others."""
    offered = list_at(question.get("permission_suggestions")) or []
    wanted = list_at((object_at(answer) or {}).get("updatedPermissions")) or []
    return [change for change in wanted if change in offered]


_PATHS: Final = ("file_path", "notebook_path", "path")
_OF_A_COMMAND: Final = frozenset({"command", "description", "timeout"})
"""What a command's call may hold without doing anything but run that command."""

_DENIES: Final = frozenset({"rule_deny", "plan_mode"})
_ASKS: Final = frozenset({"rule_ask", "may_reach_forbidden"})


def make_request(name: str, args: Any, *, workspace: str, cwd: str) -> PolicyRequest:
    """One call. Whoever brings a command runs something, whatever the tool is called."""
    fields = object_at(args) or {}
    command, [folder] = text_at(fields, "command"), resolve_paths([cwd], workspace)
    paths = [path for field in _PATHS if (path := text_at(fields, field))]
    of_command = command is not None and fields.keys() <= _OF_A_COMMAND
    request = PolicyRequest(
        tool=name,
        workspace=workspace,
        cwd=folder,
        command=command,
        paths=resolve_paths(paths, folder),
        url=text_at(fields, "url"),
        args={} if of_command else fields,
    )
    return follow_links(request)


def check_before_call(policy: Policy, request: PolicyRequest) -> str | None:
    """What a rule says of a call that may never be asked about: `deny`, `ask`, or nothing.

    What no rule speaks of is left to Claude Code's own settings, but not a command that cannot be
    read where a rule could speak of it.
    """
    evaluation = evaluate(policy, request)
    by_rule = evaluation.reason_code == "dont_ask" and evaluation.rule is not None
    if request.tool in QUESTIONS:
        return "deny" if evaluation.reason_code == "rule_deny" else None
    if evaluation.decision == "deny" and (evaluation.reason_code in _DENIES or by_rule):
        return "deny"
    if evaluation.reason_code in _ASKS:
        return "ask"
    if not policy.restricts_commands or is_readable(request):
        return None
    return "deny" if evaluation.decision == "deny" else "ask"


def make_question_details(request: PolicyRequest) -> dict[str, Any]:
    """What a question shows beside its words, and what an answer is bound to."""
    request = bind_place(request)
    return {
        "cwd": request.cwd,
        "place": request.place,
        "path": request.paths[0] if request.paths else None,
        "severity": assess_risk(request),
        "shown": show_request(request),
        "argsHash": hash_request(request),
    }


_NOBODY: Final = "Asking a person is turned off."


class ToolCallPolicy:
    """Answers by rule what can be; the folder of each call is known from before it is asked about,
    because commands of Claude Code's move about.
    """

    def __init__(self, live: LiveTurn, session: ClaudeSession) -> None:
        self._live = live
        self._session = session
        self._policy = live.host.resources.policy
        self._workspace = str(live.host.workspace.resolve())
        self._folders: dict[str, str] = {}
        session.question_details = self._question_details

    @property
    def needs_hook(self) -> bool:
        """Whether there are rules that Claude Code's own settings must not get round."""
        policy = self._policy
        return bool(policy.deny or policy.ask) or policy.mode == "plan"

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """What a rule says to a request of Claude Code's; None where none does."""
        subtype = text_at(request, "subtype")
        if subtype == "hook_callback" and text_at(request, "callback_id") == POLICY:
            return self._check_before_call(object_at(request.get("input")) or {})
        return self._check_question(request) if subtype == "can_use_tool" else None

    def _check_before_call(self, call: dict[str, Any]) -> dict[str, Any]:
        call_id, name = text_at(call, "tool_use_id") or "", text_at(call, "tool_name") or ""
        self._remember_folder(call_id, text_at(call, "cwd"))
        request = self._make_request(name, call.get("tool_input"), call_id)
        decision = check_before_call(self._policy, request)
        if decision == "deny":
            self._check_call(call, request, call.get("tool_input"))
        return hook_output(decision, evaluate(self._policy, request).message)

    def _check_question(self, question: dict[str, Any]) -> dict[str, Any] | None:
        name, call_id = text_at(question, "tool_name") or "", text_at(question, "tool_use_id") or ""
        if name in QUESTIONS:
            return deny_output(_NOBODY) if self._policy.mode == "dontAsk" else None
        request = self._make_request(name, question.get("input"), call_id)
        answer = self._check_call(question, request, question.get("input"))
        if answer is None:
            return None
        return (
            allow_output(question)
            if answer
            else deny_output(evaluate(self._policy, request).message)
        )

    def _check_call(self, call: dict[str, Any], request: PolicyRequest, args: Any) -> bool | None:
        builder, call_id = self._live.builder, text_at(call, "tool_use_id") or ""
        agent = text_at(call, "agent_id")
        speaker = agent if agent in builder.subagents else None
        if call_id not in builder.tools:
            builder.start_tool(call_id, request.tool, args, subagent_id=speaker)
        answer = check_policy(self._live, request, call_id=call_id, subagent_id=speaker)
        if answer is False:
            # Claude Code will say so as well; it is told once, with the rule.
            self._session.denied.add(call_id)
        return answer

    def _question_details(self, request: dict[str, Any]) -> dict[str, Any]:
        name = text_at(request, "tool_name") or ""
        if name in QUESTIONS:
            return {}
        call_id = text_at(request, "tool_use_id") or ""
        return make_question_details(self._make_request(name, request.get("input"), call_id))

    def _make_request(self, name: str, args: Any, call_id: str) -> PolicyRequest:
        cwd = self._folders.get(call_id) or self._workspace
        return make_request(name, args, workspace=self._workspace, cwd=cwd)

    def _remember_folder(self, call_id: str, cwd: str | None) -> None:
        if cwd is not None:
            self._folders[call_id] = cwd
        while len(self._folders) > FOLDERS_KEPT:
            del self._folders[next(iter(self._folders))]
