"""Whether a rule is about a part: for certain, or only possibly.

What allows has to be certain, and is read narrowly: letters as they are, a program by the name that
it is called by, variables that could change it named in the rule. What forbids is read widely: case
and forms of letters aside, a program by its last name, whatever wraps it taken off or put on.
"""

from factwire.runtime.policy.commands import Simple, Word
from factwire.runtime.policy.hosts import host_matches
from factwire.runtime.policy.parts import Part
from factwire.runtime.policy.paths import path_forbids, path_matches, path_may_forbid
from factwire.runtime.policy.programs import HARMLESS_VARIABLES
from factwire.runtime.policy.requests import lowered
from factwire.runtime.policy.rules import FAMILIES, Rule, command_steps, name_matches
from factwire.runtime.policy.steps import Steps, matches, may_match


def allows(rule: Rule, tool: str, part: Part) -> bool:
    """Whether a rule of the allow list covers the part for certain."""
    if part.unclear or not _may_speak_for(rule, tool, part):
        return False
    if rule.pattern is None:
        return True
    if part.command is not None:
        return rule.kind == "command" and _command_allowed(rule.pattern, part.command)
    if part.place is not None:
        return rule.kind == "path" and path_matches(rule, part.place, below=part.below)
    return part.host is not None and rule.kind == "domain" and host_matches(rule, part.host)


def forbids(rule: Rule, tool: str, part: Part) -> bool:
    """Whether a rule of the ask or deny list is about the part for certain."""
    if not _is_about(rule, tool, part):
        return False
    if rule.pattern is None:
        return True
    if part.command is not None and rule.kind == "command":
        steps = command_steps(rule.pattern)
        return any(matches(steps, words) for words in _ways_to_say(part.command))
    if part.place is not None and rule.kind == "path":
        return path_forbids(rule, part.place)
    return part.host is not None and rule.kind == "domain" and host_matches(rule, part.host)


def may_forbid(rule: Rule, tool: str, part: Part) -> bool:
    """Whether such a rule could be about the part, about something below it, or about a file that
    a command names.
    """
    if rule.kind == "path" and FAMILIES.get(lowered(rule.tool)) is not None and part.touched:
        return any(path_forbids(rule, place) for place in part.touched)
    if rule.pattern is None or not _is_about(rule, tool, part):
        return False
    if part.command is not None and rule.kind == "command":
        return _command_may_be(command_steps(rule.pattern), part.command)
    if part.place is not None and rule.kind == "path":
        return part.below and path_may_forbid(rule, part.place)
    return False


def _may_speak_for(rule: Rule, tool: str, part: Part) -> bool:
    """A family's name allows that effect alone, whatever a tool calls itself."""
    family = FAMILIES.get(lowered(rule.tool))
    if family is None or (family == "run" and part.redirected):
        return _is_about(rule, tool, part)
    return family == part.effect


def _is_about(rule: Rule, tool: str, part: Part) -> bool:
    """By the tool's name, or by the name of a whole family. A redirected file is the tool's own
    doing, but a pattern for commands says nothing about it.
    """
    if FAMILIES.get(lowered(rule.tool)) == part.effect:
        return True
    return name_matches(rule, tool) and not (part.redirected and rule.pattern is not None)


def _command_allowed(pattern: str, command: Simple) -> bool:
    risky = tuple(word for word in command.assignments if not _is_harmless(word))
    return matches(command_steps(pattern), (*risky, *command.words))


def _is_harmless(assignment: Word) -> bool:
    return assignment is not None and assignment.partition("=")[0] in HARMLESS_VARIABLES


def _ways_to_say(command: Simple) -> list[tuple[Word, ...]]:
    said: list[tuple[Word, ...]] = []
    for each in (command, *command.also):
        base = (each.words[0] or "").rpartition("/")[2] if each.words else ""
        said += each.words, (*each.assignments, *each.words), (base, *each.words[1:])
    return said


def _command_may_be(steps: Steps, command: Simple) -> bool:
    return any(None in words and may_match(steps, words) for words in _ways_to_say(command))
