"""One turn of a program that a mapping describes: a process that is asked, heard, and ends.

How the prompt arrives, the command line and the mapping say: as an argument, as a line of JSON, or
else as the text of the standard input. A program that ends without having said how its turn ended
has failed if its exit code says so; if its mapping knows of no end, exit code 0 is one.
"""

import asyncio
from contextlib import suppress
from typing import Any, Final

import msgspec

from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision
from factwire.sources.framing import Item
from factwire.sources.live.agent import Work
from factwire.sources.live.attachments import Words, given_to, words_of
from factwire.sources.live.limits import FAREWELL_SECONDS
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.turn import LiveTurn
from factwire.sources.mapped.inputs import Inputs

PROMPT: Final = "{prompt}"
SESSION: Final = "{session}"

_HINT: Final = "Look at what the program said, then retry the turn."


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is run; `resume` is its command line where a session is known."""

    title: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    own_names: frozenset[str]
    inputs: Inputs
    tells_ends: bool


class MappedTurn(Work):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: Setup) -> None:
        super().__init__(live)
        self._setup = setup
        self._pipe: JsonPipe | None = None
        self._session = live.known_session
        self._asked: dict[str, Item] = {}

    async def run(self) -> None:
        turn, host, setup = self.live.turn, self.live.host, self._setup
        given = await given_to(turn.prompt, turn.input, host.means.blobs, images=False)
        prompt = "\n\n".join(words_of(each) for each in given if isinstance(each, Words))
        line = setup.resume if setup.resume and self._session else setup.command
        argv = [self._argument(word, prompt) for word in line]
        async with opened_pipe(host, argv, env={}, own_env_names=setup.own_names) as pipe:
            self._pipe = pipe
            # Beside the reading: a program may speak before it listens.
            telling = asyncio.create_task(self._ask(pipe, prompt, by_argument=PROMPT in line))
            try:
                await self._follow(pipe)
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
            await self._end(pipe)

    async def answer(self, question: str, decision: Decision) -> None:
        line, pipe = self._setup.inputs.answer, self._pipe
        if line is None or pipe is None:
            message = "the mapping does not say how this program is answered (stdin.answer)"
            raise TurnFailed("decision_not_delivered", message)
        said = {
            "actionId": question,
            "allowed": decision.allowed,
            "decision": decision.decision,
            "reason": decision.reason,
            "response": decision.response,
            "item": self._asked.pop(question, None),
        }
        self.live.tell.answered(question, decision.decision)
        await pipe.send(line(said, None))

    async def stop(self) -> None:
        """The program's own way, if it has one; else as any program is stopped."""
        line, pipe = self._setup.inputs.stop, self._pipe
        if pipe is None:
            return
        if line is None:
            await pipe.stop()
            return
        with suppress(InputClosed):
            await pipe.send(line({"session": self._session}, None))

    def _argument(self, word: str, prompt: str) -> str:
        if word == PROMPT:
            # What a person says is never an option of the program's.
            return f" {prompt}" if prompt.startswith("-") else prompt
        return (self._session or "") if word == SESSION else word

    async def _ask(self, pipe: JsonPipe, prompt: str, *, by_argument: bool) -> None:
        inputs = self._setup.inputs
        with suppress(InputClosed):
            # A program that does not listen may still answer; how it ends tells more.
            if inputs.prompt is not None:
                turn = self.live.turn
                said = {"prompt": prompt, "session": self._session, "turnId": turn.turn_id}
                await pipe.send(inputs.prompt(said, None))
            elif not by_argument:
                await pipe.write(prompt.encode("utf-8", "replace"))
            if not inputs.stays_open:
                await pipe.close_input()

    async def _follow(self, pipe: JsonPipe) -> None:
        async for item in pipe.items():
            before = set(self.live.tell.actions)
            await self.live.hear(item)
            self._note(item, before)
            if self.live.tell.terminal is not None and self._setup.inputs.stays_open:
                # It waits for more, of which there is none.
                await self._part(pipe)
                return

    def _note(self, item: Item, before: set[str]) -> None:
        """Which item asked what, and what the program calls this thread."""
        tell = self.live.tell
        for question in tell.actions.keys() - before:
            self._asked[question] = item
        session: Any = tell.own_ids.get("session_id")
        if session and session != self._session:
            self._session = session
            tell.session(session)
            self.live.pass_on()

    async def _part(self, pipe: JsonPipe) -> None:
        """Let the program end by itself for a moment: it may have something to save."""
        await pipe.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await pipe.ended()

    async def _end(self, pipe: JsonPipe) -> None:
        live, setup = self.live, self._setup
        if live.tell.terminal is not None or live.is_stopping:
            return
        code = await pipe.ended()
        if code.exit_code == 0 and not setup.tells_ends:
            live.tell.complete()
            return
        category = "stream_interrupted" if code.exit_code == 0 else "nonzero_exit"
        message = f"{setup.title} ended before the turn did: {pipe.why(code)}"
        raise TurnFailed(category, message, _HINT)
