"""Any program that prints JSON lines, live, by a mapping file and a command line.

What it does, it does with the rights of whoever runs it, and Factwire's policy judges none of it:
a mapping says what happened, not what is about to.
"""

from pathlib import Path
from typing import Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.capabilities import Answer
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import Agent
from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.mapped_turn import PROMPT, SESSION, MappedTurn, Setup
from factwire.sources.live.programs import Program
from factwire.sources.live.settings import names_of, options_of
from factwire.sources.live.turn import LiveTurn
from factwire.sources.mapped import Mapping, MappingError, read_mapping
from factwire.sources.mapped.converter import source_by

MANIFEST: Final = CapabilityManifest(
    agent_id="mapped",
    title="A program, by a mapping file",
    version="1",
    inputs=("text", "document", "workspace"),
    controls=("send", "queue", "stop", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    evidence="no",
    sandbox="no",
)
"""What holds for every program; a mapping adds the rest."""

_ENDS: Final = frozenset({"turn.canceled", "turn.completed", "turn.failed"})
_ASKS: Final = "action.required"


class MappedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command` is the program and its arguments, `resume` the same for a thread that the program
    knows; `mapping` is the file that says what its lines mean.
    """

    command: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    mapping: str = ""
    env: tuple[str, ...] = ()
    raw: bool = False


class MappedAgent(LiveAgent):
    """Runs one program; each turn is a process of it."""

    def __init__(self, mapping: Mapping, setup: Setup, *, keep_raw: bool = False) -> None:
        super().__init__(source_by(mapping), manifest_of(mapping), keep_raw=keep_raw)
        self._setup = setup

    def work(self, live: LiveTurn) -> Work:
        return MappedTurn(live, self._setup)


def agent(settings: Agent) -> MappedAgent:
    """The program that a configuration names; raises `AgentError`."""
    options = options_of(settings, MappedOptions)
    if settings.model is not None:
        raise InvalidAgent("a mapped program takes no model; name it in the option command")
    mapping = _mapping(options.mapping)
    _check_lines(options, mapping)
    setup = Setup(
        title=mapping.title,
        command=_found(options.command),
        resume=_found(options.resume),
        own_names=names_of(settings, *options.env),
        inputs=mapping.inputs,
        tells_ends=any(rule.becomes in _ENDS for rule in mapping.rules),
    )
    return MappedAgent(mapping, setup, keep_raw=options.raw)


def manifest_of(mapping: Mapping) -> CapabilityManifest:
    """What a program can do, as far as its mapping has rules for it."""
    told = {rule.becomes for rule in mapping.rules}

    def has(*classes: str) -> Answer:
        return "yes" if told & set(classes) else "no"

    asks = _ASKS in told and mapping.inputs.answer is not None
    decisions = ("approve", "reject", "answer") if asks else ()
    team = ("coordinator_team",) if "subagent.started" in told else ()
    return msgspec.structs.replace(
        MANIFEST,
        agent_id=mapping.name,
        title=mapping.title,
        streaming=Streaming(
            text=has("model.delta"),
            reasoning=has("reasoning.delta"),
            tool_args=has("tool.args.delta"),
            tool_output=has("tool.output.delta"),
        ),
        approvals="inline" if asks else "none",
        controls=(*MANIFEST.controls, *decisions),
        topologies=(*MANIFEST.topologies, *team),
        subagents=has("subagent.started"),
        artifacts=has("artifact.changed", "artifact.diff.ready", "file.changed"),
        cost=has("usage"),
    )


def _mapping(name: str) -> Mapping:
    if not name:
        raise InvalidAgent("mapped needs the option mapping, a file such as tidy.toml")
    try:
        mapping = read_mapping(Path(name).read_bytes(), name)
    except OSError as error:
        raise InvalidAgent(f"the mapping {name} cannot be read: {error.strerror}") from error
    except MappingError as error:
        raise InvalidAgent(str(error)) from error
    if mapping.framing != "lines":
        raise InvalidAgent(f"{name}: a program is heard by lines, got framing {mapping.framing!r}")
    return mapping


def _check_lines(options: MappedOptions, mapping: Mapping) -> None:
    """Whether the prompt arrives, and the session where there is one."""
    if not options.command:
        raise InvalidAgent('mapped needs the option command, such as ["tidy", "--json"]')
    if SESSION in options.command or (options.resume and SESSION not in options.resume):
        raise InvalidAgent(f"{SESSION} stands in the option resume, and not in command")
    for line in filter(None, (options.command, options.resume)):
        given = (PROMPT in line) + (mapping.inputs.prompt is not None)
        if given == 2:  # noqa: PLR2004 - both
            raise InvalidAgent(f"the prompt is given twice: by {PROMPT} and by stdin.prompt")
        if not given and mapping.inputs.stays_open:
            raise InvalidAgent(
                f"the prompt needs {PROMPT} in the command or stdin.prompt in the mapping: an input"
                " that stays open for answers cannot end with it"
            )
        for word in line:
            if word not in (PROMPT, SESSION) and (PROMPT in word or SESSION in word):
                raise InvalidAgent(f"{PROMPT} and {SESSION} are whole arguments, got {word!r}")


def _found(line: tuple[str, ...]) -> tuple[str, ...]:
    if not line:
        return ()
    name, *rest = line
    program = Program(title=name, name=name, install=f"see how {name} is installed")
    return (program.found(), *rest)
