"""Resolution: flags before environment before project file before user file before defaults.

Finds and reads the files, resolves each key, and shows the outcome as rows that never hold a
secret.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import redact_value
from factwire.facts.own_secrets import MOST_VALUES, OWN_SECRETS, is_usable_value
from factwire.journal.atomic_files import read_regular_file
from factwire.runtime.configuration.configuration import (
    NAMED,
    SETTINGS,
    AgentSettings,
    Configuration,
    HubSettings,
    Limits,
    McpServer,
    PolicySettings,
    ProviderSettings,
    RedactionSettings,
    RetentionSettings,
    SandboxSettings,
    ValueBase,
    find_setting,
    split_named,
)
from factwire.runtime.configuration.layers import (
    PRECEDENCE,
    ConfigurationError,
    ConfigurationProblem,
    Layer,
    LayerValue,
    Origin,
    SourceKind,
    environment_layer,
    file_layer,
    flag_layer,
)
from factwire.runtime.configuration.project_trust import (
    LARGEST_FILE,
    PROJECT_FILE,
    ProjectTrust,
    UntrustedProject,
    find_xdg_folder,
    read_project_file,
)
from factwire.runtime.retry_policy import RetryPolicy

_GROUPS: Final[dict[str, type[msgspec.Struct]]] = {
    "policy": PolicySettings,
    "sandbox": SandboxSettings,
    "limits": Limits,
    "retry": RetryPolicy,
    "retention": RetentionSettings,
    "redaction": RedactionSettings,
}


class ResolvedConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, and where each of its values came from, by key."""

    configuration: Configuration
    origins: dict[str, Origin]
    untrusted: UntrustedProject | None = None
    """A project's file that was found and does not count."""


def resolve(layers: tuple[Layer, ...], state_folder: str) -> ResolvedConfiguration:
    """One configuration out of all layers, in any order; raises `ConfigurationError`.

    `state_folder` is where Factwire keeps things when nobody says otherwise.
    """
    values = sorted(
        (each for layer in layers for each in layer.values),
        key=lambda each: PRECEDENCE.index(each.origin.source),
    )
    chosen = _choose_values(values)
    problems = [problem for layer in layers for problem in layer.problems]
    problems += [*_find_incomplete(chosen), *_find_unclear_servers(chosen)]
    if problems:
        raise ConfigurationError(tuple(problems))
    configuration = _build_configuration(chosen, state_folder)
    origins = {key: Origin("default") for key in SETTINGS}
    origins |= {key: each.origin for key, each in chosen.items()}
    return ResolvedConfiguration(configuration=configuration, origins=origins)


def _choose_values(values: list[LayerValue]) -> dict[str, LayerValue]:
    chosen: dict[str, LayerValue] = {}
    for each in values:
        setting = find_setting(each.key)
        if each.key not in chosen:
            chosen[each.key] = each
        elif setting is not None and setting.gathers:
            chosen[each.key] = _gather_lists(chosen[each.key], each)
    return chosen


def _gather_lists(stronger: LayerValue, weaker: LayerValue) -> LayerValue:
    value = tuple(dict.fromkeys((*stronger.value, *weaker.value)))
    places = filter(None, (stronger.origin.where, weaker.origin.where))
    return LayerValue(stronger.key, value, Origin(stronger.origin.source, ", ".join(places)))


_NEEDED: Final = {
    ("agents", "kind"): "a kind such as 'claude-code', or an entry point 'module:name'",
    ("hub.oidc", "issuer"): "the issuer of the identity provider",
    ("hub.oidc", "client_id"): "the id of the Hub at the identity provider",
}
"""What each thing of a table must have → what is expected there."""


def _find_incomplete(chosen: dict[str, LayerValue]) -> list[ConfigurationProblem]:
    return [
        ConfigurationProblem(
            code="missing_key",
            where=each.origin.where or each.origin.source,
            key=f"{table}.{name}.{field}",
            expected=expected,
            got="nothing",
        )
        for (table, field), expected in _NEEDED.items()
        for name, each in _first_of_each(table, chosen).items()
        if f"{table}.{name}.{field}" not in chosen
    ]


def _first_of_each(table: str, chosen: dict[str, LayerValue]) -> dict[str, LayerValue]:
    """Name → something that is said of it."""
    return {
        split_named(key)[1]: each for key, each in chosen.items() if key.startswith(f"{table}.")
    }


def _find_unclear_servers(chosen: dict[str, LayerValue]) -> list[ConfigurationProblem]:
    """A server is a program or has a URL, and nobody guesses which."""
    names = {key.split(".")[1]: each for key, each in chosen.items() if key.startswith("mcp.")}
    return [
        ConfigurationProblem(
            code="missing_key" if not both else "wrong_value",
            where=each.origin.where or each.origin.source,
            key=f"mcp.{name}.command",
            expected="a command or a url",
            got="both" if both else "neither",
        )
        for name, each in names.items()
        if (both := f"mcp.{name}.command" in chosen) == (f"mcp.{name}.url" in chosen)
    ]


def _build_configuration(chosen: dict[str, LayerValue], state_folder: str) -> Configuration:
    values = {key: each.value for key, each in chosen.items()}
    data = values.get("data", state_folder)
    top: dict[str, Any] = {
        "data": data,
        "journal": values.get("journal", f"sqlite:{data}/journal.db"),
        "agents": {
            name: AgentSettings(**fields)
            for name, fields in _group_by_name("agents", values).items()
        },
        "mcp": {
            name: McpServer(**fields) for name, fields in _group_by_name("mcp", values).items()
        },
        **{
            key: values[key] for key in ("workspaces", "worktree", "agent", "user") if key in values
        },
        **{name: group(**_select_below(name, values)) for name, group in _GROUPS.items()},
        "hub": HubSettings(
            **{key: value for key, value in _select_below("hub", values).items() if "." not in key},
            oidc={
                name: ProviderSettings(**fields)
                for name, fields in _group_by_name("hub.oidc", values).items()
            },
        ),
    }
    return Configuration(**top)


def _group_by_name(table: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name → what is given of it, for the things of a table that have names."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in _select_below(table, values).items():
        name, _, field = key.partition(".")
        found.setdefault(name, {})[field] = value
    return found


def _select_below(name: str, values: dict[str, Any]) -> dict[str, Any]:
    start = f"{name}."
    return {key[len(start) :]: value for key, value in values.items() if key.startswith(start)}


def load_configuration(
    folder: Path | None = None,
    *,
    flags: Sequence[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
) -> ResolvedConfiguration:
    """The configuration that holds in a folder; raises `ConfigurationError`. A project's file that
    nobody has trusted is left out, and the answer names it.
    """
    variables = os.environ if environment is None else environment
    layers, untrusted = _read_layers(folder, flags, variables)
    state = find_xdg_folder(variables, "XDG_STATE_HOME", ".local", "state")
    resolved = resolve(layers, str(state))
    return msgspec.structs.replace(resolved, untrusted=untrusted)


def _read_layers(
    folder: Path | None, flags: Sequence[tuple[str, str]], variables: Mapping[str, str]
) -> tuple[tuple[Layer, ...], UntrustedProject | None]:
    place = (folder or Path.cwd()).absolute()
    home = variables.get("HOME") or str(Path.home())
    text_base = ValueBase(str(place), home, textual=True)
    user = find_xdg_folder(variables, "XDG_CONFIG_HOME", ".config") / "config.toml"
    project, untrusted = _project_layer(place, home, ProjectTrust(variables))
    layers = (
        flag_layer(flags, text_base),
        environment_layer(variables, text_base),
        project,
        _layer("user", user, home) if _exists(user) else Layer(),
    )
    return layers, untrusted


class DeclaredRedaction(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a secret by the operator's settings: how much, and never what. `ignored` are
    the names of values that cannot be hidden, `missing` the files that are not there.
    """

    patterns: int = 0
    values: int = 0
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def load_redaction(
    folder: Path | None = None, *, environment: Mapping[str, str] | None = None
) -> DeclaredRedaction:
    """Declare the operator's own secrets that hold in a folder, for whoever needs no other setting;
    raises `ConfigurationError` for what is wrong with these settings alone.
    """
    variables = os.environ if environment is None else environment
    layers, _ = _read_layers(folder, (), variables)
    own = tuple(Layer(*map(_keep_redaction, (layer.values, layer.problems))) for layer in layers)
    return declare_redaction(resolve(own, "").configuration.redaction, variables)


def _keep_redaction(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row for row in rows if (row.key or "").startswith("redaction"))


def declare_redaction(
    settings: RedactionSettings, environment: Mapping[str, str] | None = None
) -> DeclaredRedaction:
    """Have this process replace what the settings name, everywhere, from now on; raises
    `ConfigurationError` for a file that cannot be read.
    """
    variables = os.environ if environment is None else environment
    values: dict[str, str] = {}
    missing: list[str] = []
    for entry in settings.never_store:
        if not Path(entry).is_absolute():
            values |= {v: name for name, v in variables.items() if v and fnmatchcase(name, entry)}
        elif _exists(Path(entry)):
            values |= {value: name for name, value in _read_assignments(Path(entry)) if value}
        else:
            missing.append(entry)
    usable = {value: name for value, name in values.items() if is_usable_value(value)}
    if len(usable) > MOST_VALUES:
        raise _never_store_error(f"at most {MOST_VALUES} values", f"{len(usable)}")
    OWN_SECRETS.declare(settings.patterns, usable)
    return DeclaredRedaction(
        patterns=len(settings.patterns),
        values=len(usable),
        ignored=tuple(sorted({name for value, name in values.items() if value not in usable})),
        missing=tuple(missing),
    )


def _never_store_error(expected: str, got: str) -> ConfigurationError:
    key = "redaction.never_store"
    problem = ConfigurationProblem(
        code="wrong_value", where=key, key=key, expected=expected, got=got
    )
    return ConfigurationError((problem,))


_ASSIGNMENT: Final = re.compile(
    r"""^[ \t]*+(?:export[ \t]++)?+(?P<name>[A-Za-z_][A-Za-z0-9_.-]*+)[ \t]*+[=:][ \t]*+
    (?:'(?P<single>[^']*+)'|"(?P<double>(?:[^"\\]|\\.)*+)"|`(?P<back>[^`]*+)`|(?P<bare>[^\r\n]*+))""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_COMMENT: Final = re.compile(r"[ \t]++#.*+")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def _read_assignments(file: Path) -> Iterator[tuple[str, str]]:
    """Name and value of each line `NAME=VALUE`. Quotes and a comment behind a value are no part of
    it; an escaped text counts as it is written, too.
    """
    for found in _ASSIGNMENT.finditer(_decode_content(file, _read_file(file))):
        name, bare, double = found["name"], found["bare"], found["double"]
        if bare is not None:
            yield name, _COMMENT.sub("", bare).strip()
        elif double is None:
            yield name, found["single"] or found["back"] or ""
        else:
            yield name, double
            yield name, re.sub(r"(?s)\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[1]), double)


def _project_layer(
    place: Path, home: str, trust: ProjectTrust
) -> tuple[Layer, UntrustedProject | None]:
    path = find_project_file(place)
    if path is None:
        return Layer(), None
    try:
        file = read_project_file(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Layer(), UntrustedProject(path=str(path), reason="unreadable", detail=reason)
    untrusted = trust.check(file)
    return (Layer(), untrusted) if untrusted else (project_layer(path, file.data, home), None)


def project_layer(path: Path, data: bytes, home: str) -> Layer:
    """What the bytes of a project's file set; raises `ConfigurationError`."""
    content, table = _parse_content(path, data)
    return file_layer("project", str(path), content, table, ValueBase(str(path.parent), home))


def find_project_file(folder: Path) -> Path | None:
    """The nearest project file in a folder or above it; above, one of another user's is passed."""
    for place in (folder, *folder.parents):
        file = place / PROJECT_FILE
        if place == folder and _exists(file) and file.is_file():
            return file
        if place != folder and _is_own_file(file):
            return file
    return None


def _exists(file: Path) -> bool:
    """Whether a file is there; one that nobody can tell of is an error, and not none."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _unreadable_error(file, "a location that can be read", reason) from error
    return True


def _is_own_file(file: Path) -> bool:
    """Whether a file above the folder is there and counts; one that cannot be seen does not."""
    try:
        about = file.stat()
    except OSError:
        return False
    mine = not hasattr(os, "geteuid") or about.st_uid in (0, os.geteuid())
    return mine and stat.S_ISREG(about.st_mode)


def _layer(source: SourceKind, file: Path, home: str) -> Layer:
    content, table = _parse_file(file)
    return file_layer(source, str(file), content, table, ValueBase(str(file.parent), home))


def _parse_file(file: Path) -> tuple[str, dict[str, Any]]:
    return _parse_content(file, _read_file(file))


def _read_file(file: Path) -> bytes:
    try:
        return read_regular_file(file, LARGEST_FILE + 1)[0]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _unreadable_error(file, "a file that can be read", reason) from error


def _decode_content(file: Path, data: bytes) -> str:
    if len(data) > LARGEST_FILE:
        raise _unreadable_error(file, f"at most {LARGEST_FILE} bytes", "more")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable_error(file, "text in UTF-8", f"byte {error.start} that is not") from error


def _parse_content(file: Path, data: bytes) -> tuple[str, dict[str, Any]]:
    content = _decode_content(file, data)
    try:
        return content, tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable_error(file, "TOML", f"an error in it: {error}") from error
    except RecursionError as error:
        raise _unreadable_error(file, "TOML", "tables nested too deeply") from error


def _unreadable_error(file: Path, expected: str, got: str) -> ConfigurationError:
    problem = ConfigurationProblem(code="unreadable", where=str(file), expected=expected, got=got)
    return ConfigurationError((problem,))


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: its value without secrets, where it came from, and what it is for."""

    key: str
    value: Any
    source: SourceKind
    where: str | None
    sentence: str


def list_setting_rows(resolved: ResolvedConfiguration) -> list[SettingRow]:
    """Every setting in the order of the table, then every agent's and every server's."""
    return [_build_row(resolved, key, value, text) for key, value, text in _values(resolved)]


def list_layer_rows(layer: Layer) -> list[SettingRow]:
    """Every setting that one source gives, in its order."""
    return [
        SettingRow(
            key=each.key,
            value=_without_secrets(each.key, each.value),
            source=each.origin.source,
            where=each.origin.where,
            sentence=setting.sentence,
        )
        for each in layer.values
        if (setting := find_setting(each.key)) is not None
    ]


def _build_row(resolved: ResolvedConfiguration, key: str, value: Any, sentence: str) -> SettingRow:
    origin = resolved.origins[key]
    return SettingRow(
        key=key,
        value=_without_secrets(key, value),
        source=origin.source,
        where=origin.where,
        sentence=sentence,
    )


def _without_secrets(key: str, value: Any) -> Any:
    if key.endswith((".api_key_env", ".client_secret_env")):
        return value
    clean, _ = redact_value(msgspec.to_builtins(value))
    return clean


def _values(resolved: ResolvedConfiguration) -> Iterator[tuple[str, Any, str]]:
    settings: dict[str, Any] = msgspec.to_builtins(resolved.configuration)
    for key, setting in SETTINGS.items():
        group, dot, name = key.partition(".")
        yield key, settings[group][name] if dot else settings[group], setting.sentence
    for table, known in NAMED.items():
        group, _, below = table.partition(".")
        things = settings[group][below] if below else settings[group]
        for named, fields in sorted(things.items()):
            for name, setting in known.items():
                key = f"{table}.{named}.{name}"
                if key in resolved.origins:
                    yield key, fields[name], setting.sentence
