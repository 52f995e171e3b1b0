"""What the runtime promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_POLICY: Final = requirements(
    "edge.md Runs; guarantees.md S8",
    {
        "runtime.policy.syntax": "A rule is a tool and maybe a pattern; anything else is refused.",
        "runtime.policy.rules": "Deny beats ask beats allow, and what decided is said.",
        "runtime.policy.modes": "A mode decides where no rule does; none asks where none may.",
        "runtime.policy.effects": "A tool does the worst of what name, caller and content say.",
        "runtime.policy.paths": "Paths match in normal form; a relative rule allows none outside.",
        "runtime.policy.hosts": "A URL has a host only where every reader of URLs would agree.",
        "runtime.policy.commands": "A command is allowed only when every command in it is.",
        "runtime.policy.laws": "No rule that forbids widens, none that allows overrides one.",
        "runtime.policy.proposals": "A proposed rule is the narrowest that allows the request.",
        "runtime.policy.risk": "The risk of a request is that of its worst part, by a table.",
        "runtime.policy.shown": "What a person is shown hides nothing of what runs.",
        "runtime.policy.args-hash": "The hash of an approval changes with anything shown.",
        "runtime.policy.facts": "Evaluations and denials are valid facts without secrets.",
    },
)

_CONFIGURATION: Final = requirements(
    "design.md",
    {
        "runtime.configuration.precedence": "Flags, variables, project, user, defaults, in order.",
        "runtime.configuration.gathered": "Rules that ask or deny add up over all sources.",
        "runtime.configuration.agents": "An agent is put together field by field.",
        "runtime.configuration.files": "The nearest project file and the user's file are found.",
        "runtime.configuration.errors": "Every problem is told with place, expected and got.",
        "runtime.configuration.secrets": "No secret is shown, not even where it is wrong.",
        "cli.config": "Every setting is shown with its value and its source.",
    },
)

RUNTIME_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_POLICY, *_CONFIGURATION)
