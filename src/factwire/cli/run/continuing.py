"""Going on with a thread: what waits on it first, then what is asked for."""

import msgspec
from rich.console import Console

from factwire.cli.failures import CliError
from factwire.cli.project import summary
from factwire.cli.run.opening import ensure_agent, opened
from factwire.cli.run.place import Place
from factwire.cli.run.questions import Always
from factwire.cli.run.showing import Watched, watch
from factwire.cli.run.transcript import Transcript
from factwire.cli.run.work import LocalWork
from factwire.cli.terminal_text import harmless
from factwire.runtime import LiveThread, Runtime, new_id
from factwire.runtime.recovery import recover


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What shall happen on a thread, beside what waits there."""

    thread: str
    prompt: str | None = None
    agent: str | None = None
    retry: bool = False
    force: bool = False


async def carry_on(place: Place, wanted: Next, *, as_json: bool) -> int:
    """Go on with a thread and watch it."""
    async with opened(place, create=False) as runtime:
        if await runtime.journal.thread(wanted.thread) is None:
            raise CliError(f"unknown_thread: there is no thread {harmless(wanted.thread)}")
        thread = await runtime.thread(wanted.thread)
        if not as_json:
            Console(highlight=False).print(summary(thread.projection.state))
        turn_id = _asked(runtime, place, thread, wanted)

        async def begin() -> None:
            await recover(runtime, (wanted.thread,), take_over=wanted.force)
            await _begin(runtime, place, thread, wanted, turn_id)

        transcript = Transcript(thread.projection.state, turn_id)
        watched = Watched(
            work=LocalWork(runtime, thread),
            turn_id=turn_id if wanted.prompt is not None else None,
            begin=begin,
            always=Always(runtime.means.policy, runtime.workspace),
            flags=place.journal_flag,
        )
        return await watch(watched, transcript, as_json=as_json)


def _asked(runtime: Runtime, place: Place, thread: LiveThread, wanted: Next) -> str | None:
    """The turn that is new, or that is to be run again; None where only what waits goes on."""
    state = thread.projection.state.runtime
    if wanted.prompt is not None:
        ensure_agent(runtime, place, _agent(thread, wanted, place))
        return new_id("trn")
    if not wanted.retry:
        return None
    if state.latest_turn_id is None or state.latest_turn_status == "completed":
        raise CliError("nothing_to_retry: the last turn of the thread is completed")
    return state.latest_turn_id


async def _begin(
    runtime: Runtime, place: Place, thread: LiveThread, wanted: Next, turn_id: str | None
) -> None:
    if turn_id is None:
        return
    if wanted.prompt is None:
        if thread.outcome(turn_id) is not None:
            await runtime.retry(wanted.thread, turn_id)
        return
    agent = _agent(thread, wanted, place)
    await runtime.submit(wanted.thread, agent, wanted.prompt, turn_id=turn_id)


def _agent(thread: LiveThread, wanted: Next, place: Place) -> str:
    last = thread.projection.state.runtime.agent_id
    return wanted.agent or last or place.configuration.agent or ""
