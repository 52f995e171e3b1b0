"""A program that speaks Claude Code's protocol and does what its prompt says, mostly wrong.

It is run by itself, and knows nothing of Factwire. The last word of a prompt names what it does.
"""

import json
import os
import sys
import time
from typing import Any

SESSION = "5e551011-0000-4000-8000-000000000000"
INIT = {"type": "system", "subtype": "init", "session_id": SESSION, "cwd": os.getcwd()}  # noqa: PTH109
DONE: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "ok",
    "usage": {},
}


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    """The next line; at the end of the input, so does the program."""
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def state(name: str) -> None:
    say(type="system", subtype="session_state_changed", state=name, sdk_host_only=True)


def text(words: str, name: str = "msg_1") -> None:
    block = {"type": "text", "text": words}
    say(type="assistant", message={"id": name, "content": [block]}, uuid=f"uuid-{name}")


def ask(**request: Any) -> dict[str, Any]:
    """Ask the host, and give its answer."""
    say(type="control_request", request_id="ask-1", request=request)
    return hear()["response"]


def leave(**more: Any) -> dict[str, Any]:
    settings = {"command": "make deploy"}
    return ask(
        subtype="can_use_tool", tool_name="Bash", tool_use_id="call-1", input=settings, **more
    )


def answer(words: str) -> None:
    say(**INIT)
    text(words)
    say(**DONE)
    state("idle")


def dies() -> None:
    say(**INIT)
    delta = {"type": "text_delta", "text": "Half an ans"}
    start = {"type": "message_start", "message": {"id": "msg_1"}}
    for event in (start, {"type": "content_block_delta", "index": 0, "delta": delta}):
        say(type="stream_event", event=event)
    sys.exit("out of memory")


def dies_answering_again() -> None:
    state("running")
    say(**INIT)
    text("First.")
    say(**DONE)
    say(**INIT)
    text("Second, but", "msg_2")
    sys.exit("out of luck")


def babbles() -> None:
    sys.stdout.write("Debugger listening\n")
    say(type="odd_thing", about="nothing")
    answer("Done.")


def hangs() -> None:
    state("running")
    say(**INIT)
    text("Let me think.")
    time.sleep(600)


def leaves_a_command_running() -> None:
    state("running")
    say(**INIT)
    about = {"task_id": "shell-1", "task_type": "local_bash", "description": "serve"}
    say(type="system", subtype="task_started", **about)
    text("It runs.")
    say(**DONE)
    state("idle")


def waits_for_a_command() -> None:
    leaves_a_command_running()
    say(type="system", subtype="task_notification", task_id="shell-1", status="completed")
    state("running")
    say(**INIT)
    text("It has ended.", "msg_2")
    say(**DONE)
    state("idle")


def tells_no_states() -> None:
    say(**INIT)
    text("Done.")
    say(**DONE)


def asks_what_nobody_offers() -> None:
    answer(json.dumps(ask(subtype="open_a_door")))


def elicits() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = ask(subtype="elicitation", message="Your name?", requested_schema=schema)
    answer(json.dumps(question["response"]))


def asks_leave() -> None:
    rule = {"type": "addRules", "rules": [{"toolName": "Bash"}], "destination": "session"}
    answer(json.dumps(leave(permission_suggestions=[rule])["response"]))


def asks_leave_twice() -> None:
    first = leave()["response"]["behavior"]
    answer(f"{first} {leave()['response']['behavior']}")


def listens() -> None:
    state("running")
    say(**INIT)
    text("Go on.")
    payloads = hear()
    say(**DONE)
    state("idle")
    say(type="command_lifecycle", command_uuid=payloads["uuid"], state="queued")
    state("running")
    say(type="command_lifecycle", command_uuid=payloads["uuid"], state="started")
    say(**INIT)
    text(f"You said: {payloads['message']['content']}", "msg_2")
    say(**DONE)
    state("idle")


def asks_a_question() -> None:
    settings = {"questions": [{"question": "Which?", "header": "One", "options": [{"label": "A"}]}]}
    question = ask(
        subtype="can_use_tool", tool_name="AskUserQuestion", tool_use_id="call-1", input=settings
    )
    answer(json.dumps(question["response"]))


def shows_itself() -> None:
    own = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "OTHER_SECRET")
    shown = {"argv": sys.argv[1:], **{name: os.environ.get(name) for name in own}}
    answer(json.dumps(shown))


def main() -> None:
    if "--bad-option" in sys.argv:
        sys.exit("error: unknown option '--bad-option'")
    if "--mute" in sys.argv:
        time.sleep(600)
    first, prompt = hear(), hear()
    able = dict.fromkeys(("hooks_applied", "hook_on_failure_supported"), "--old" not in sys.argv)
    payloads: dict[str, Any] = {
        "subtype": "success",
        "request_id": first["request_id"],
        "response": able,
    }
    if "--refuse" in sys.argv:
        payloads |= {"subtype": "error", "error": "hooks are not known"}
    say(type="control_response", response=payloads)
    say(type="command_lifecycle", command_uuid=prompt["uuid"], state="started")
    globals()[prompt["message"]["content"].split()[-1]]()
    while True:
        hear()


if __name__ == "__main__":
    main()
