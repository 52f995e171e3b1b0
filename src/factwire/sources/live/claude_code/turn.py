"""One turn of Claude Code: its process is started, spoken to, and heard while it has to say.

The turn goes on for as long as answers may follow, then the input is closed and the process ends by
itself. A command that runs in the background holds the turn open for a while, since Claude Code
comes back to it.
"""

import asyncio
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from factwire.projection.reading import table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision, SteerTaken
from factwire.sources.claude_code.converter import ClaudeCode
from factwire.sources.framing import Item
from factwire.sources.live.agent import Work
from factwire.sources.live.claude_code import messages
from factwire.sources.live.claude_code.calls import Calls
from factwire.sources.live.claude_code.options import Setup
from factwire.sources.live.claude_code.progress import Progress
from factwire.sources.live.limits import FAREWELL_SECONDS
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.sdk_inputs import given
from factwire.sources.live.turn import LiveTurn

_HINT: Final = "Look at what it said, or run `claude doctor`; then retry the turn."
_ASKS_PEOPLE: Final = frozenset({"can_use_tool", "elicitation"})


class ClaudeCodeTurn(Work):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: Setup) -> None:
        super().__init__(live)
        self._setup = setup
        self._session = cast("ClaudeCode", live.converter).session
        self._calls = Calls(live, self._session)
        self._progress = Progress(self._session)
        self._pipe: JsonPipe | None = None
        self._saying = asyncio.Lock()
        self._is_parting = False
        self._known_as = live.known_session

    async def run(self) -> None:
        prompt = messages.prompt(await given(self.live.turn))
        if self._known_as is None or not await self._held(prompt, self._known_as):
            await self._held(prompt, None)

    async def answer(self, question: str, decision: Decision) -> None:
        asked, pipe = self._session.asked.get(question), self._pipe
        if asked is None or pipe is None:
            message = "Claude Code waits for this decision no more"
            raise TurnFailed("decision_not_delivered", message)
        line = messages.response(question, messages.decided(asked, decision))
        # Before it is written: what comes of it must not be heard first.
        self.live.take(line)
        await pipe.send(line)

    async def stop(self) -> None:
        """Claude Code's own interrupt; where there is no answer to interrupt, it is ended."""
        pipe = self._pipe
        if pipe is None:
            return
        if not self._progress.is_ready or self.live.tell.terminal is not None:
            await pipe.stop()
            return
        line = messages.request("interrupt")
        self.live.take(line)
        with suppress(InputClosed):
            await pipe.send(line)

    # The process

    async def _held(self, prompt: messages.Line, session: str | None) -> bool:
        """Hold the turn, as a part of a conversation if one is named; False where that one is
        not there any more.
        """
        setup, host = self._setup, self.live.host
        model = self.live.turn.options.get("model")
        argv = setup.argv(model=model if isinstance(model, str) else None, session=session)
        names = setup.own_names
        async with opened_pipe(host, argv, env=setup.env, own_env_names=names) as pipe:
            self._pipe = pipe
            await self._greet(pipe, prompt)
            steering = asyncio.create_task(self._steer(pipe))
            try:
                if not await self._listened(pipe, resumed=session is not None):
                    self._warn("session_not_continued", "the conversation before is lost to Claude")
                    return False
            finally:
                await _over(steering)
        return True

    async def _greet(self, pipe: JsonPipe, prompt: messages.Line) -> None:
        first = messages.initialize()
        self._progress.greeted(first)
        self._progress.said(prompt)
        with suppress(InputClosed):
            # A program that hears nothing has ended, or soon will; that tells more.
            await pipe.send(first)
            await pipe.send(prompt)

    async def _listened(self, pipe: JsonPipe, *, resumed: bool) -> bool:
        """Hear all that it says; False where it has no such conversation."""
        phase = "starting"
        try:
            async with asyncio.timeout(self._setup.options.start_seconds) as deadline:
                async for item in pipe.items():
                    if resumed and self._progress.is_lost(item):
                        return False
                    await self._hear(pipe, item)
                    if phase != (phase := self._phase()):
                        deadline.reschedule(self._until(phase))
                code = await pipe.ended()
        except TimeoutError:
            self._waited_in_vain(phase)
            return True
        if self.live.tell.terminal is None and not self.live.is_stopping:
            message = f"Claude Code ended before the turn did: {pipe.why(code)}"
            raise TurnFailed("stream_interrupted", message, _HINT)
        return True

    def _phase(self) -> str:
        if self._is_parting:
            return "parting"
        if not self._progress.is_ready:
            return "starting"
        return "background" if self._progress.is_idle else "working"

    def _until(self, phase: str) -> float | None:
        """When a phase has to be over; an answer takes the time that a turn may take."""
        options = self._setup.options
        seconds = {"background": options.background_seconds, "parting": FAREWELL_SECONDS}.get(phase)
        return None if seconds is None else asyncio.get_running_loop().time() + seconds

    def _waited_in_vain(self, phase: str) -> None:
        """Time is up: what is not over is ended with the process."""
        if phase == "starting":
            seconds = self._setup.options.start_seconds
            message = f"Claude Code was not ready for the turn in {seconds:g} s"
            raise TurnFailed("agent_silent", message, _HINT)
        for task_id in sorted(self._session.shells):
            said = {"reason": "timeout", "message": "the turn waited for it no longer"}
            self.live.tell.fact("task.cancelled", said, task_id=task_id)
        self._session.shells.clear()
        self.live.pass_on()

    # What it says

    async def _hear(self, pipe: JsonPipe, item: Item) -> None:
        if not isinstance(item, dict):
            await self.live.hear(item)
            return
        self._progress.note(item)
        self._check()
        if word(item, "type") == "control_request":
            await self._asked(pipe, item)
        elif item.get("sdk_host_only") is not True:
            self._remember_session()
            await self.live.hear(item)
        if self._is_done():
            await self._part(pipe)

    def _check(self) -> None:
        """Nothing is begun with a process that would not listen, or not to the policy."""
        progress = self._progress
        if progress.refused is not None:
            raise TurnFailed("provider_error", progress.refused, _HINT)
        if progress.is_ready and not progress.is_held and self._calls.needs_hook:
            message = "this Claude Code does not ask before each call, so no rule would hold"
            raise TurnFailed("policy_not_enforced", message, "Update Claude Code.")

    async def _asked(self, pipe: JsonPipe, item: dict[str, Any]) -> None:
        """A question is answered by a rule, or else told; what is no question is refused."""
        asked, request_id = table(item.get("request")) or {}, word(item, "request_id") or ""
        answer = self._calls.answer(asked)
        if answer is not None:
            await pipe.send(messages.response(request_id, answer))
            return
        await self.live.hear(item)
        if word(asked, "subtype") not in _ASKS_PEOPLE:
            refused = f"{word(asked, 'subtype')} is not offered"
            await pipe.send(messages.refusal(request_id, refused))

    def _remember_session(self) -> None:
        name = self._progress.session_id
        if name is not None and name != self._known_as:
            self._known_as = name
            self.live.tell.session(name)

    def _is_done(self) -> bool:
        stopped = self.live.is_stopping and self._progress.has_answered
        return not self._is_parting and (stopped or self._progress.is_over)

    async def _part(self, pipe: JsonPipe) -> None:
        """Say that nothing more comes, unless a person has said something just now."""
        async with self._saying:
            if self._is_done():
                self._is_parting = True
                await pipe.close_input()

    # What people say meanwhile

    async def _steer(self, pipe: JsonPipe) -> None:
        while True:
            await self.live.host.steered()
            async with self._saying:
                if self._is_parting:
                    # What is not taken becomes the next turn.
                    return
                for said in await self.live.host.take_steers():
                    await self._say(pipe, said)

    async def _say(self, pipe: JsonPipe, said: SteerTaken) -> None:
        turn = msgspec.structs.replace(self.live.turn, prompt=said.text, input=said.input)
        try:
            line = messages.prompt(await given(turn))
        except TurnFailed as failed:
            self._warn(failed.code, f"not said to Claude Code: {failed}")
            return
        self._progress.said(line)
        with suppress(InputClosed):
            # It has ended, and so does the turn, with the reason.
            await pipe.send(line)

    def _warn(self, code: str, message: str) -> None:
        self.live.tell.fact("runtime.warning", {"code": code, "message": message})
        self.live.pass_on()


async def _over(task: "asyncio.Task[None]") -> None:
    """End a task; what it raised by itself is raised here."""
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
