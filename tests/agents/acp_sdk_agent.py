"""An agent made with the Python SDK of the Agent Client Protocol, which does what it is told.

It is run by itself. The last word of a prompt names what it does.
"""

import asyncio
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    Client,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    plan_entry,
    run_agent,
    start_tool_call,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.schema import AgentCapabilities, PermissionOption, ToolCallUpdate

OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class Obedient:
    """One session, whose turns are methods by the name of what is asked for."""

    def __init__(self) -> None:
        self.client: Client
        self.stopped = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = AgentCapabilities(load_session=True)
        version = min(protocol_version, PROTOCOL_VERSION)
        return InitializeResponse(protocol_version=version, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=f"of:{cwd}")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        del cwd
        await self.say(session_id, "What was said before.")
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        del session_id
        self.stopped.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        work = getattr(self, prompt[0].text.split()[-1])
        return PromptResponse(stop_reason=await work(session_id) or "end_turn")

    async def say(self, session_id: str, words: str) -> None:
        await self.client.session_update(session_id, update_agent_message_text(words))

    async def think(self, session_id: str) -> None:
        thought = update_agent_thought_text("It is known.")
        await self.client.session_update(session_id, thought)
        entry = plan_entry("Say it", status="completed")
        await self.client.session_update(session_id, update_plan([entry]))
        await self.say(session_id, "It is 42.")

    async def edit(self, session_id: str) -> None:
        """Change a file through the client, if a person lets it."""
        path = f"{session_id.removeprefix('of:')}/notes.md"
        diff = tool_diff_content(path, "two\n", "one\n")
        call = start_tool_call("call-1", "notes.md", kind="edit", content=[diff])
        await self.client.session_update(session_id, call)
        question = ToolCallUpdate(tool_call_id="call-1", title="notes.md", content=[diff])
        answer = await self.client.request_permission(session_id, question, OPTIONS)
        if getattr(answer.outcome, "option_id", None) != "yes":
            return
        await self.client.write_text_file(session_id, path, "two\n")
        read = await self.client.read_text_file(session_id, path)
        done = update_tool_call("call-1", status="completed", content=[diff])
        await self.client.session_update(session_id, done)
        await self.say(session_id, f"It is {read.content.strip()} now.")

    async def wait(self, session_id: str) -> str:
        await self.say(session_id, "Waiting.")
        await self.stopped.wait()
        return "cancelled"


if __name__ == "__main__":
    agent: Any = Obedient()
    asyncio.run(run_agent(agent))
