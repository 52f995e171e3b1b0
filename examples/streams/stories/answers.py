"""Answers: text as it streams, ends, is cut, fails or is stopped; reasoning and plans beside it."""

from .recorder import Recorder, story


@story(
    "A question and its finished answer.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "conversation": [
            "user: Which Python versions does the parser support?",
            "assistant: Python 3.11 and later; CI also runs 3.13.",
        ],
    },
)
def text_turn(told: Recorder) -> None:
    told.ask("trn_versions", "Which Python versions does the parser support?")
    told.answer("msg_versions", "Python 3.11 ", "and later; ", "CI also runs 3.13.")
    told.done()


@story(
    "An answer in the middle of a sentence, still streaming.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["text:trn_one_test:msg_one_test:msg_one_test%3Atext", "turn:trn_one_test"],
        "counts": {"messages": 2, "parts": 2, "timeline": 2, "nodes": 1},
        "conversation": [
            "user: How do I run one test?",
            "assistant (streaming): Pass its name with `-k`, for",
        ],
    },
)
def answer_streaming(told: Recorder) -> None:
    told.ask("trn_one_test", "How do I run one test?")
    told.stream("msg_one_test", "Pass its name ", "with `-k`,", " for")


@story(
    "No answer yet: status line, model and stage are known before the first text.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["run:run_import", "turn:trn_import"],
        "counts": {"messages": 1, "parts": 1, "timeline": 6, "nodes": 2, "edges": 1},
        "title": "Slow import",
        "says": "Reading the import graph",
        "model": "large-2",
        "conversation": ["user: Why does importing the package take two seconds?"],
    },
)
def status_before_text(told: Recorder) -> None:
    told.tell("session.created", "Session created", {"title": "Untitled"})
    told.tell("thread.started", "Thread started")
    told.tell("session.updated", "Session renamed", {"title": "Slow import"})
    told.ask("trn_import", "Why does importing the package take two seconds?")
    told.tell(
        "run.status",
        "Reading the import graph",
        {"status": "running", "phase": "preparing", "message": "Reading the import graph"},
        run_id="run_import",
    )
    told.tell("model.requested", "Model asked", {"model": "large-2", "provider": "house"})


@story(
    "A folded thought with its summary above the answer; the raw thought is only counted.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 3, "nodes": 1},
        "conversation": [
            "user: Is the cache safe with two writers?",
            (
                "assistant: thought Compared the two code paths that take the lock. (47 unseen) | "
                "No. The second writer skips the lock when the file is new."
            ),
        ],
    },
)
def reasoning_summary(told: Recorder) -> None:
    told.ask("trn_cache", "Is the cache safe with two writers?")
    said = {"message_id": "msg_cache"}
    told.tell("reasoning.started", "Thinking", **said)
    told.tell("reasoning.delta", "Thinking", {"delta": "Writer one locks; "}, **said)
    told.tell("reasoning.delta", "Thinking", {"delta": "what of a file that is new?  "}, **said)
    told.tell(
        "reasoning.summary",
        "Thought",
        {"summary": "Compared the two code paths that take the lock."},
        **said,
    )
    told.tell("reasoning.completed", "Thought", **said)
    told.answer("msg_cache", "No. The second writer ", "skips the lock when the file is new.")
    told.done()


@story(
    "Two messages of two parts each, whose pieces arrived in turns; no part is doubled.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 3, "parts": 5, "timeline": 5, "nodes": 1},
        "conversation": [
            "user: Compare the two parsers.",
            "assistant: The old parser builds a tree. | It is slow on long lines.",
            "assistant: The new parser streams. | It keeps one line in memory.",
        ],
    },
)
def interleaved_parts(told: Recorder) -> None:
    told.ask("trn_parsers", "Compare the two parsers.")
    pieces = [
        ("msg_old", "part_what", "The old parser "),
        ("msg_new", "part_what", "The new parser "),
        ("msg_old", "part_how", "It is slow "),
        ("msg_old", "part_what", "builds a tree."),
        ("msg_new", "part_how", "It keeps one line "),
        ("msg_new", "part_what", "streams."),
        ("msg_old", "part_how", "on long lines."),
        ("msg_new", "part_how", "in memory."),
    ]
    whole: dict[tuple[str, str], str] = {}
    for message, part, piece in pieces:
        whole[message, part] = whole.get((message, part), "") + piece
        told.tell("model.delta", "Answer", {"delta": piece}, message_id=message, part_id=part)
    for (message, part), text in whole.items():
        told.tell("model.completed", "Answer", {"text": text}, message_id=message, part_id=part)
    told.done()


@story(
    "A failed turn: its category, a hint what to do, and half an answer marked as cut off.",
    {
        "status": "failed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 3, "nodes": 1},
        "failure": "provider_unavailable Try again in a few minutes, or choose another model.",
        "conversation": [
            "user: Summarise the changelog.",
            "assistant (interrupted): Three things changed: ",
        ],
        "diagnostics": ["error provider_unavailable"],
    },
)
def turn_failed(told: Recorder) -> None:
    told.ask("trn_changelog", "Summarise the changelog.")
    told.stream("msg_changelog", "Three things ", "changed: ")
    broken = {
        "failureCategory": "provider_unavailable",
        "message": "The model's provider closed the connection.",
    }
    told.tell("model.failed", "Model failed", broken)
    hint = "Try again in a few minutes, or choose another model."
    told.tell("turn.failed", "Turn failed", {**broken, "recoveryHint": hint})
    told.turn_id = None


@story(
    "A turn that its user stopped while a tool ran: tool and answer are shown as stopped.",
    {
        "status": "canceled",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 3, "nodes": 2, "edges": 1},
        "conversation": [
            "user: Run the whole suite.",
            "assistant (interrupted): Running all of it. | tool call_suite cancelled",
        ],
        "tools": {"call_suite": "cancelled"},
    },
    issues=("tool_unclosed_at_turn_end",),
)
def turn_canceled(told: Recorder) -> None:
    told.ask("trn_suite", "Run the whole suite.")
    told.stream("msg_suite", "Running all of it.")
    call = {"tool_call_id": "call_suite"}
    told.tell("tool.started", "Run the tests", {"toolName": "run_tests"}, **call)
    told.tell("tool.progress", "Run the tests", {"progress": 120, "total": 900}, **call)
    told.tell("turn.canceled", "Stopped by the user", {"reason": "user_request"})
    told.turn_id = None


_PLAN = "1. Find every caller.\n2. Rename.\n3. Run the tests."


def _plan(told: Recorder, name: str) -> None:
    told.ask(f"trn_{name}", "Rename `load` to `read` everywhere.")
    for piece in ("1. Find every caller.\n", "2. Rename.\n"):
        told.tell("plan.delta", "Planning", {"delta": piece})


def _plan_asked(told: Recorder, name: str) -> None:
    _plan(told, name)
    told.tell("plan.delta", "Planning", {"delta": "3. Run the tests."})
    steps = ["Find every caller", "Rename", "Run the tests"]
    told.tell("plan.final", "Plan", {"text": _PLAN, "steps": steps})
    told.tell(
        "action.required",
        "May I go on with this plan?",
        {"actionType": "plan_decision", "prompt": "Go on with this plan?"},
        action_id=f"act_{name}",
    )


@story(
    "A plan that is being written; nothing to decide yet.",
    {
        "status": "running",
        "hydration": "live",
        "unfinished": ["plan:trn_plan_streaming", "turn:trn_plan_streaming"],
        "counts": {"messages": 1, "parts": 1, "timeline": 2, "nodes": 1},
        "conversation": ["user: Rename `load` to `read` everywhere."],
        "plans": {
            "trn_plan_streaming:plan": "streaming 1. Find every caller.\n2. Rename.\n",
        },
    },
)
def plan_streaming(told: Recorder) -> None:
    _plan(told, "plan_streaming")


@story(
    "A finished plan that waits for a person.",
    {
        "status": "waiting",
        "hydration": "live",
        "unfinished": ["action:act_plan_waiting", "turn:trn_plan_waiting"],
        "counts": {
            "messages": 1,
            "parts": 1,
            "timeline": 3,
            "nodes": 2,
            "edges": 1,
            "pending": 1,
        },
        "conversation": ["user: Rename `load` to `read` everywhere."],
        "plans": {"trn_plan_waiting:plan": f"final {_PLAN}"},
        "actions": {"act_plan_waiting": "pending"},
    },
)
def plan_waiting(told: Recorder) -> None:
    _plan_asked(told, "plan_waiting")


@story(
    "A plan that was approved and carried out.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 2, "timeline": 4, "nodes": 2, "edges": 1},
        "conversation": [
            "user: Rename `load` to `read` everywhere.",
            "assistant: Renamed in 7 files; the tests pass.",
        ],
        "plans": {"trn_plan_approved:plan": f"final approved {_PLAN}"},
        "actions": {"act_plan_approved": "resolved approved"},
    },
)
def plan_approved(told: Recorder) -> None:
    _plan_asked(told, "plan_approved")
    told.wait(40)
    told.tell(
        "action.resolved",
        "Plan approved",
        {"decision": "approved", "decidedBy": "user", "applied": True},
        action_id="act_plan_approved",
    )
    told.answer("msg_plan_approved", "Renamed in 7 files; ", "the tests pass.")
    told.done()


@story(
    "A plan that was refused, and the next one, which is being written in its place.",
    {
        "status": "running",
        "hydration": "live",
        "counts": {"messages": 1, "parts": 1, "timeline": 3, "nodes": 2, "edges": 1},
        "unfinished": ["plan:trn_plan_revised", "turn:trn_plan_revised"],
        "conversation": ["user: Rename `load` to `read` everywhere."],
        "plans": {"trn_plan_revised:plan": "streaming 1. Add `read` beside `load`.\n"},
        "actions": {"act_plan_revised": "resolved rejected"},
    },
)
def plan_revised(told: Recorder) -> None:
    _plan_asked(told, "plan_revised")
    told.wait(20)
    refused = {"decision": "rejected", "reason": "Keep the old name for a release."}
    told.tell("action.resolved", "Plan refused", refused, action_id="act_plan_revised")
    told.tell("plan.delta", "Planning", {"delta": "1. Add `read` beside `load`.\n"})


@story(
    "A question with a picture and a file; the screen has refs to them, not their bytes.",
    {
        "status": "completed",
        "hydration": "live",
        "counts": {"messages": 2, "parts": 3, "timeline": 2, "nodes": 1},
        "conversation": [
            (
                "user: What does this chart show? | Compare it with the table. [upload:chart-1, "
                "upload:table-1]"
            ),
            "assistant: Latency doubled in May; the table agrees.",
        ],
    },
)
def input_attached(told: Recorder) -> None:
    told.turn_id = "trn_chart"
    asked = [
        {"type": "text", "text": "What does this chart show?"},
        {"type": "image", "ref": "upload:chart-1"},
        {"type": "text", "text": "Compare it with the table."},
        {"type": "document", "ref": "upload:table-1"},
    ]
    told.tell("turn.submitted", "Question asked", {"input": asked})
    told.tell("turn.started", "Turn started")
    told.answer("msg_chart", "Latency doubled in May; ", "the table agrees.")
    told.done()


STORIES = (
    text_turn,
    input_attached,
    answer_streaming,
    status_before_text,
    reasoning_summary,
    interleaved_parts,
    turn_failed,
    turn_canceled,
    plan_streaming,
    plan_waiting,
    plan_approved,
    plan_revised,
)
