"""One turn, from its prompt to its exit code."""

import msgspec

from factwire.cli.run.opening import ensure_agent, opened
from factwire.cli.run.place import Place
from factwire.cli.run.questions import Always
from factwire.cli.run.showing import Watched, watch
from factwire.cli.run.transcript import Transcript
from factwire.cli.run.work import LocalWork
from factwire.runtime import new_id
from factwire.runtime.recovery import recover


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be done by whom; without a thread, on a new one."""

    agent: str
    prompt: str
    thread: str | None = None


async def run_turn(place: Place, asked: Asked, *, as_json: bool) -> int:
    """Submit a turn and watch it to its end."""
    thread_id = asked.thread or new_id("thr")
    turn_id = new_id("trn")
    async with opened(place) as runtime:
        ensure_agent(runtime, place, asked.agent)
        thread = await runtime.thread(thread_id)

        async def begin() -> None:
            await recover(runtime, (thread_id,))
            await runtime.submit(thread_id, asked.agent, asked.prompt, turn_id=turn_id)

        transcript = Transcript(thread.projection.state, turn_id)
        watched = Watched(
            work=LocalWork(runtime, thread),
            turn_id=turn_id,
            begin=begin,
            always=Always(runtime.means.policy, runtime.workspace),
            flags=place.journal_flag,
        )
        return await watch(watched, transcript, as_json=as_json)
