"""The configuration, typed, and every setting by its key: what it means, how it is read from a
file and from text, and its default.
"""

import json
import os
import posixpath
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts.own_secrets import MOST_PATTERNS, OwnPattern, PatternError, compile_pattern
from factwire.facts.secret_key_names import secret_name
from factwire.facts.secret_shapes import find_secrets
from factwire.journal import JOURNAL_SCHEMES
from factwire.runtime.limits import ACTIVE_TURNS, APPROVAL_SECONDS, RETRY_ATTEMPTS, TURN_SECONDS
from factwire.runtime.policy import MODES, Mode, Policy, RuleError, parse_rule
from factwire.runtime.retry_policy import RetryPolicy

SandboxMode = Literal["off", "prefer", "require"]

SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = ("off", "prefer", "require")

OUTPUT_BYTES: Final = 1024 * 1024
"""Output of one run that stays in facts; the rest goes to a blob."""

MCP_SECONDS: Final = 120.0
"""How long one call of a server's tool may take, if nobody says otherwise."""

MCP_START_SECONDS: Final = 30.0
"""How long a server may take until it can be used; some are fetched when they are started."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. `kind` is a kind that Factwire knows, or an entry point `module:name`; the key to
    a model stands in the environment variable `api_key_env`, never in a file.
    """

    kind: str
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    retry: RetryPolicy | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server of tools: a program by its `command`, or a `url`. Values of `env` and `headers`
    refer to variables as `${NAME}`. `network`, `readable` and `writable` are what the sandbox
    leaves to the program beside what it leaves to all.
    """

    command: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    allow_tools: tuple[str, ...] = ("*",)
    deny_tools: tuple[str, ...] = ()
    seconds: float = MCP_SECONDS
    start_seconds: float = MCP_START_SECONDS
    network: bool | None = None
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The mode, and rules as text; `policy()` is what evaluates them."""

    mode: Mode = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def policy(self) -> Policy:
        return Policy.of(self.mode, allow=self.allow, ask=self.ask, deny=self.deny)


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`prefer` uses a sandbox where there is one, `require` refuses to run without."""

    mode: SandboxMode = "prefer"
    network: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    turn_seconds: float = TURN_SECONDS
    output_bytes: int = OUTPUT_BYTES
    approval_seconds: float = APPROVAL_SECONDS
    concurrent_runs: int = ACTIVE_TURNS


RETENTION_SECONDS: Final = 3_600.0
"""How often an Edge looks for what its retention removes, if nobody says otherwise."""


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a running Edge removes by itself; nothing unless somebody says so."""

    keep_days: float | None = None
    keep_facts: int | None = None
    compact: bool = False
    every_seconds: float = RETENTION_SECONDS


class RedactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is a secret here, beside what the rules find. `never_store` has names of variables,
    globs of such names, and absolute paths of files with lines `NAME=VALUE`; never a value.
    """

    patterns: tuple[OwnPattern, ...] = ()
    never_store: tuple[str, ...] = ()


ProviderAccounts = Literal["create", "link"]

PROVIDER_ACCOUNTS: Final[tuple[ProviderAccounts, ...]] = ("create", "link")

ProviderRole = Literal["member", "viewer"]

PROVIDER_ROLES: Final[tuple[ProviderRole, ...]] = ("member", "viewer")
"""What somebody may become by having an account elsewhere: never an admin."""


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An identity provider, by OpenID Connect. With `accounts` "create", whoever it knows gets an
    account of the `role`; with "link", people connect it to the account that they have. The secret
    of the client stands in the environment variable `client_secret_env`, never in a file.
    """

    issuer: str
    client_id: str
    client_secret_env: str | None = None
    title: str | None = None
    scopes: tuple[str, ...] = ("profile", "email")
    accounts: ProviderAccounts = "link"
    role: ProviderRole = "member"
    domains: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    groups_claim: str = "groups"
    private_network: bool = False


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The mail server of a Hub, and the address that it sends from. The password stands in the
    environment variable `password_env`, never in a file.
    """

    host: str
    sender: str
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_env: str | None = None


class HubSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a Hub listens and keeps its records. `url` is the address that people open, `proxies`
    are the addresses of reverse proxies that report where a request came from, `oidc` are the
    identity providers that people may sign in with. `token_in_url` lets a socket have an access
    token in its address, and events can be resumed for `event_days`. What has ended is kept for
    `record_days`, and `approvals_required` people must allow what an agent asks, at least.
    `push_hosts` and `webhook_hosts` may be sent to although nothing else of their kind may.
    `runners` is how many Edges the Hub may start for people, by `runner_command`, which gets the
    variables that `runner_env` names.
    """

    host: str = "127.0.0.1"
    port: int = 8788
    url: str | None = None
    database: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    oidc: dict[str, ProviderSettings] = msgspec.field(default_factory=dict[str, ProviderSettings])
    token_in_url: bool = False
    event_days: float = 30.0
    record_days: float = 90.0
    approvals_required: int = 1
    push_hosts: tuple[str, ...] = ()
    webhook_hosts: tuple[str, ...] = ()
    mail: MailSettings | None = None
    runners: int = 0
    runners_per_person: int = 1
    runner_idle_seconds: float = 900.0
    runner_command: tuple[str, ...] = ()
    runner_env: tuple[str, ...] = ()


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. Paths are absolute; an empty list of workspaces allows none."""

    journal: str
    data: str
    workspaces: tuple[str, ...] = ()
    worktree: bool = False
    agent: str | None = None
    user: str | None = None
    agents: dict[str, AgentSettings] = msgspec.field(default_factory=dict[str, AgentSettings])
    mcp: dict[str, McpServer] = msgspec.field(default_factory=dict[str, McpServer])
    policy: PolicySettings = PolicySettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    retention: RetentionSettings = RetentionSettings()
    redaction: RedactionSettings = RedactionSettings()
    hub: HubSettings = HubSettings()


_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off")
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]*|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LARGEST_FACTOR: Final = 100
_HTTP: Final = re.compile(r"https?://[^\s/@]+(/\S*)?")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_MOST: Final = 10**9
_MOST_DAYS: Final = 36_500
_LAST_PORT: Final = 65_535
USER_CHARACTERS: Final = 80


class InvalidValue(Exception):
    """A value that cannot be read, or the `member` of a table that cannot, by name and value."""

    def __init__(self, expected: str, *, hint: str | None = None, is_type: bool = False) -> None:
        self.member: tuple[str, Any] | None = None
        self.expected = expected
        self.hint = hint
        self.is_type = is_type
        super().__init__(expected)


class ValueBase(msgspec.Struct, frozen=True):
    """What a value may be relative to; `textual` marks variables and flags, which have no types."""

    folder: str
    home: str
    textual: bool = False


ValueReader = Callable[[Any, ValueBase], Any]


def read_text(value: Any, base: ValueBase) -> str:
    del base
    if not isinstance(value, str):
        raise InvalidValue("text", is_type=True)
    if not value.strip() or not value.isprintable():
        raise InvalidValue("non-empty text of printable characters")
    return value


def read_user(value: Any, base: ValueBase) -> str:
    """A name that facts may show to everybody."""
    name = read_text(value, base).strip()
    if len(name) > USER_CHARACTERS or find_secrets(name):
        raise InvalidValue(f"a name of at most {USER_CHARACTERS} characters")
    return name


def read_path(value: Any, base: ValueBase) -> str:
    """An absolute path; a relative one starts where the value was written down."""
    path_text = read_text(value, base)
    if path_text == "~" or path_text.startswith("~/"):
        path_text = base.home + path_text[1:]
    return posixpath.normpath(posixpath.join(base.folder, path_text))


def read_paths(value: Any, base: ValueBase) -> tuple[str, ...]:
    items = value.split(os.pathsep) if base.textual and isinstance(value, str) else value
    return tuple(read_path(item, base) for item in _to_list(items, "a list of folders"))


def read_journal(value: Any, base: ValueBase) -> str:
    url = read_text(value, base)
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in JOURNAL_SCHEMES:
        known = ", ".join(f"{name}:" for name in JOURNAL_SCHEMES)
        raise InvalidValue(f"a URL that begins with one of {known}")
    if scheme != "sqlite":
        return url
    file, mark, options = rest.partition("?")
    return f"sqlite:{read_path(file, base)}{mark}{options}"


def read_database(value: Any, base: ValueBase) -> str:
    """Where a Hub keeps its records."""
    url = read_text(value, base)
    scheme, colon, path = url.partition(":")
    if colon and scheme == "sqlite" and path:
        return f"sqlite:{read_path(path, base)}"
    if not url.startswith(("postgres://", "postgresql://")):
        raise InvalidValue("sqlite:PATH or postgres://HOST/NAME")
    return url


def read_port(value: Any, base: ValueBase) -> int:
    number = _to_number(value, base)
    if isinstance(number, float) or not 0 <= number <= _LAST_PORT:
        raise InvalidValue(f"a port from 0 to {_LAST_PORT}", is_type=isinstance(number, float))
    return number


def read_texts(value: Any, base: ValueBase) -> tuple[str, ...]:
    """Texts; a variable holds one, or a JSON list of them."""
    return tuple(read_text(item, base) for item in read_list(value, base, "a list of texts"))


def read_rules(value: Any, base: ValueBase) -> tuple[str, ...]:
    """Rules as text; a variable holds one rule, or a JSON list of them."""
    found = read_list(value, base, "a list of rules")
    for item in found:
        try:
            parse_rule(read_text(item, base))
        except RuleError as error:
            raise InvalidValue("rules such as 'Bash(git status *)'", hint=str(error)) from error
    return tuple(found)


def read_list(value: Any, base: ValueBase, expected: str) -> list[Any]:
    """A list; a variable or a flag holds one item, or a JSON list of them."""
    items = value
    if base.textual and isinstance(value, str):
        items = _parse_json_list(value) if value.lstrip().startswith("[") else [value]
    return _to_list(items, expected)


def read_boolean(value: Any, base: ValueBase) -> bool:
    if isinstance(value, bool):
        return value
    if base.textual and isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    raise InvalidValue("true or false", is_type=True)


def read_whole_number(value: Any, base: ValueBase) -> int:
    """A whole number of at least 1."""
    number = _to_number(value, base)
    if isinstance(number, float) or not 1 <= number <= _MOST:
        raise InvalidValue(f"a whole number from 1 to {_MOST}", is_type=isinstance(number, float))
    return number


def read_count(value: Any, base: ValueBase) -> int:
    """A whole number, or none of something."""
    return 0 if _to_number(value, base) == 0 else read_whole_number(value, base)


def read_variables(value: Any, base: ValueBase) -> tuple[str, ...]:
    return tuple(
        read_variable(item, base) for item in read_list(value, base, "a list of variables' names")
    )


def seconds(value: Any, base: ValueBase) -> float:
    number = _to_number(value, base)
    if not 0 < number <= _MOST:
        raise InvalidValue(f"a number of seconds above 0, at most {_MOST}")
    return float(number)


def read_days(value: Any, base: ValueBase) -> float:
    number = _to_number(value, base)
    if not 0 < number <= _MOST_DAYS:
        raise InvalidValue(f"a number of days above 0, at most {_MOST_DAYS}")
    return float(number)


def read_attempts(value: Any, base: ValueBase) -> int:
    number = _to_number(value, base)
    if isinstance(number, float) or not 1 <= number <= RETRY_ATTEMPTS:
        wanted = f"a whole number from 1 to {RETRY_ATTEMPTS}"
        raise InvalidValue(wanted, is_type=isinstance(number, float))
    return number


def factor(value: Any, base: ValueBase) -> float:
    number = _to_number(value, base)
    if not 1 <= number <= _LARGEST_FACTOR:
        raise InvalidValue(f"a number from 1 to {_LARGEST_FACTOR}")
    return float(number)


def categories(value: Any, base: ValueBase) -> tuple[str, ...]:
    """Failure categories; a variable holds them with commas in between."""
    values = value.split(",") if base.textual and isinstance(value, str) else value
    found = _to_list(values, "a list of failure categories")
    names = tuple(read_text(item, base).strip() for item in found)
    if not all(map(_CATEGORY.fullmatch, names)):
        raise InvalidValue("failure categories such as 'rate_limited'")
    return names


def read_retry(value: Any, base: ValueBase) -> RetryPolicy:
    """A table with the keys that `retry` has."""
    return RetryPolicy(**_read_members(options(value, base), _RETRY, base))


def read_kind(value: Any, base: ValueBase) -> str:
    if not _KIND.fullmatch(read_text(value, base)):
        raise InvalidValue("a kind such as 'claude-code', or an entry point 'module:name'")
    return value


def read_variable(value: Any, base: ValueBase) -> str:
    """The name of a variable; what looks like a key itself is refused without being repeated."""
    if not _VARIABLE.fullmatch(read_text(value, base)):
        raise InvalidValue("the name of an environment variable, in capitals; not the key itself")
    return value


def read_http_url(value: Any, base: ValueBase) -> str:
    if not _HTTP.fullmatch(read_text(value, base)):
        raise InvalidValue("an http or https URL without a password in it")
    return value


def read_issuer(value: Any, base: ValueBase) -> str:
    """The address of an issuer, as it must stand in every token."""
    issuer = read_http_url(value, base)
    if "?" in issuer or "#" in issuer:
        raise InvalidValue("an http or https URL without a query and a fragment")
    return issuer


def read_scopes(value: Any, base: ValueBase) -> tuple[str, ...]:
    scopes = read_texts(value, base)
    if not all(map(_SCOPE.fullmatch, scopes)):
        raise InvalidValue("a list of scopes, each without spaces")
    return scopes


def options(value: Any, base: ValueBase) -> dict[str, Any]:
    found = _parse_json(value, "a table") if base.textual and isinstance(value, str) else value
    if not isinstance(found, dict):
        raise InvalidValue("a table", is_type=True)
    return cast("dict[str, Any]", found)


def one_of(*choices: str) -> ValueReader:
    """A reader of a word among some."""

    def read(value: Any, base: ValueBase) -> str:
        if read_text(value, base) not in choices:
            raise InvalidValue(f"one of {', '.join(choices)}")
        return value

    return read


def read_mail(value: Any, base: ValueBase) -> MailSettings:
    """A table with the keys of `MailSettings`."""
    table = options(value, base)
    is_complete = {"host", "sender"} <= set(table) <= set(_MAIL)
    if not is_complete or ("user" in table) != ("password_env" in table):
        raise InvalidValue(
            f"a table of {', '.join(_MAIL)}, with host and sender, user and password_env together",
            hint="put the password into an environment variable and its name into password_env",
        )
    return MailSettings(**_read_members(table, _MAIL, base))


def _read_members(table: Any, readers: dict[str, ValueReader], base: ValueBase) -> dict[str, Any]:
    if unknown := sorted(set(table) - set(readers)):
        raise InvalidValue(f"a table of {', '.join(readers)}; not {', '.join(unknown)}")
    typed = msgspec.structs.replace(base, textual=False)
    found: dict[str, Any] = {}
    for name, value in table.items():
        try:
            found[name] = readers[name](value, typed)
        except InvalidValue as wrong:
            wrong.member = name, value
            raise
    return found


_RETRY: Final[dict[str, ValueReader]] = {
    "attempts": read_attempts,
    "delay_seconds": seconds,
    "factor": factor,
    "categories": categories,
    "repeat_effects": read_boolean,
}
"""What a policy of retries is made of."""

_MAIL: Final[dict[str, ValueReader]] = {
    "host": read_text,
    "sender": read_text,
    "port": read_port,
    "security": one_of("starttls", "tls", "none"),
    "user": read_text,
    "password_env": read_variable,
}
"""What a mail server is described by."""

read_mode = one_of(*MODES)
read_sandbox_mode = one_of(*SANDBOX_MODES)


def _to_number(value: Any, base: ValueBase) -> int | float:
    if base.textual and isinstance(value, str):
        for convert in (int, float):
            try:
                return convert(value)
            except ValueError:
                continue
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue("a number", is_type=True)
    return value


def _to_list(value: Any, expected: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue(expected, is_type=True)
    return cast("list[Any]", value)


def _parse_json_list(value: str) -> list[Any]:
    return _to_list(_parse_json(value, "a JSON list"), "a JSON list")


def _parse_json(value: str, expected: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{expected} as JSON") from error


_PATTERN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_VARIABLE_GLOB: Final = re.compile(r"[A-Za-z0-9_*?]{1,100}")
_LEAST_OF_GLOB: Final = 3


def read_patterns(value: Any, base: ValueBase) -> tuple[OwnPattern, ...]:
    """A table of names and regular expressions, each of which can be used."""
    table = options(value, base)
    typed = msgspec.structs.replace(base, textual=False)
    if len(table) > MOST_PATTERNS or not all(map(_PATTERN_NAME.fullmatch, table)):
        raise InvalidValue(f"a table of at most {MOST_PATTERNS} names and regular expressions")
    found = tuple(OwnPattern(name, read_text(each, typed)) for name, each in table.items())
    for own in found:
        try:
            compile_pattern(own)
        except PatternError as error:
            raise InvalidValue(f"for {own.name!r} {error}") from error
    return found


def read_never_store(value: Any, base: ValueBase) -> tuple[str, ...]:
    """Names and globs as they are, files as absolute paths."""
    wanted = "a list of names of variables, globs of them, and .env files"
    return tuple(
        _read_never_store_entry(read_text(item, base), base)
        for item in read_list(value, base, wanted)
    )


def _read_never_store_entry(entry: str, base: ValueBase) -> str:
    if "/" in entry or entry.startswith(".") or entry.endswith(".env"):
        return read_path(entry, base)
    letters = entry.replace("*", "").replace("?", "")
    if not _VARIABLE_GLOB.fullmatch(entry) or len(letters) < _LEAST_OF_GLOB:
        raise InvalidValue(
            f"names of variables, globs with at least {_LEAST_OF_GLOB} characters that are no "
            "wildcards, and .env files; not a value itself"
        )
    return entry


SERVER_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
"""What a server may be called: its name is part of its tools' names."""

_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HINT: Final = "put it into an environment variable, and refer to it as ${NAME}"


def read_command_line(value: Any, base: ValueBase) -> tuple[str, ...]:
    """A program and its arguments; which all the world can see while it runs."""
    words = tuple(
        read_text(item, base)
        for item in read_list(value, base, "a list of a program and its arguments")
    )
    if not words:
        raise InvalidValue("a program, followed by its arguments")
    if any(map(find_secrets, words)):
        raise InvalidValue("a command without a secret in it", hint=f"{_HINT} in env")
    return words


def read_globs(value: Any, base: ValueBase) -> tuple[str, ...]:
    """Names of tools as their server writes them; `*` is any characters."""
    return tuple(
        read_text(item, base) for item in read_list(value, base, "a list of names of tools")
    )


def read_environment(value: Any, base: ValueBase) -> dict[str, str]:
    return _read_variables(value, base, _VARIABLE_NAME.fullmatch, "names of variables")


def read_headers(value: Any, base: ValueBase) -> dict[str, str]:
    return _read_variables(value, base, _HEADER.fullmatch, "names of headers")


def _read_variables(
    value: Any, base: ValueBase, is_name: Callable[[str], object], names: str
) -> dict[str, str]:
    table = options(value, base)
    typed = msgspec.structs.replace(base, textual=False)
    if not all(map(is_name, table)):
        raise InvalidValue(f"a table of {names} and texts")
    variables = {name: read_text(each, typed) for name, each in table.items()}
    for name, each in variables.items():
        if _is_plain_secret(name, each):
            raise InvalidValue(f"a reference as {name}, not the secret itself", hint=_HINT)
    return variables


def _is_plain_secret(name: str, value: str) -> bool:
    rest = _REFERENCE.sub("", value)
    if find_secrets(rest):
        return True
    return secret_name(name) is not None and rest == value


PREFIX: Final = "FACTWIRE_"

OTHER_VARIABLES: Final = frozenset(
    {
        "FACTWIRE_DEVICE_SECONDS",
        "FACTWIRE_EDGE",
        "FACTWIRE_HUB",
        "FACTWIRE_LOG_LEVEL",
        "FACTWIRE_PROCESS",
        "FACTWIRE_RUNNER_ID",
        "FACTWIRE_RUNNER_SECRET",
        "FACTWIRE_TOKEN",
    }
)
"""Variables that are no settings: whom to ask, with what token and how long, logs, and children."""


class Setting(msgspec.Struct, frozen=True):
    """One setting. `gathers` is whether lists of all sources add up: nobody can take back what
    somebody else forbids.
    """

    key: str
    read: ValueReader
    sentence: str
    gathers: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper().replace(".", "_")


_ROWS: Final = (
    Setting("journal", read_journal, "URL of the journal."),
    Setting("data", read_path, "Folder for stored data."),
    Setting("workspaces", read_paths, "Folders that agents may work in; none by default."),
    Setting("worktree", read_boolean, "Whether each run of an Edge gets a git worktree."),
    Setting("agent", read_text, "The agent to use when none is named."),
    Setting("user", read_user, "Your name, shown with what you do; the system user by default."),
    Setting("policy.mode", read_mode, "The decision when no rule applies."),
    Setting("policy.allow", read_rules, "Rules that allow."),
    Setting("policy.ask", read_rules, "Rules that ask; combined from all sources.", gathers=True),
    Setting("policy.deny", read_rules, "Rules that deny; combined from all sources.", gathers=True),
    Setting("sandbox.mode", read_sandbox_mode, "Whether commands run in a sandbox."),
    Setting("sandbox.network", read_boolean, "Whether the sandbox has network access."),
    Setting("limits.turn_seconds", seconds, "The time limit of a turn."),
    Setting("limits.output_bytes", read_whole_number, "How much output of a run stays in facts."),
    Setting(
        "limits.approval_seconds", seconds, "How long an approval stays open before it is denied."
    ),
    Setting("limits.concurrent_runs", read_whole_number, "The maximum number of concurrent runs."),
    Setting("retry.attempts", read_attempts, "The total number of attempts for a turn."),
    Setting("retry.delay_seconds", seconds, "The wait before the first retry."),
    Setting("retry.factor", factor, "The factor by which each wait grows."),
    Setting("retry.categories", categories, "Failures after which a turn is retried."),
    Setting("retry.repeat_effects", read_boolean, "Retry even after possible side effects."),
    Setting("retention.keep_days", read_days, "Remove runs that ended more days ago."),
    Setting(
        "retention.keep_facts", read_whole_number, "Remove the oldest runs beyond this many facts."
    ),
    Setting("retention.compact", read_boolean, "Remove deltas of complete texts."),
    Setting("retention.every_seconds", seconds, "How often an Edge removes them."),
    Setting(
        "redaction.patterns",
        read_patterns,
        "Regular expressions of your own secrets, by name; combined from all sources.",
        gathers=True,
    ),
    Setting(
        "redaction.never_store",
        read_never_store,
        "Variables and .env files whose values are never stored; combined from all sources.",
        gathers=True,
    ),
    Setting("hub.host", read_text, "The address that a Hub listens on."),
    Setting("hub.port", read_port, "The port of a Hub."),
    Setting("hub.url", read_http_url, "The address at which people open a Hub."),
    Setting("hub.database", read_database, "The database of a Hub."),
    Setting("hub.hosts", read_texts, "Additional host names that a Hub accepts."),
    Setting("hub.origins", read_texts, "Origins whose pages may connect to a Hub."),
    Setting("hub.proxies", read_texts, "Addresses of reverse proxies in front of a Hub."),
    Setting("hub.runners", read_count, "How many runners a Hub starts; none by default."),
    Setting("hub.runners_per_person", read_whole_number, "How many of them one person may have."),
    Setting("hub.runner_idle_seconds", seconds, "After how long without a task a runner stops."),
    Setting("hub.runner_command", read_command_line, "The command that starts a runner."),
    Setting("hub.runner_env", read_variables, "Variables of the Hub that the command gets."),
    Setting("hub.token_in_url", read_boolean, "Let sockets have an access token in their address."),
    Setting("hub.event_days", read_days, "Remove a Hub's events that are more days old."),
    Setting("hub.record_days", read_days, "Remove what has ended more days ago from a Hub."),
    Setting(
        "hub.approvals_required",
        read_whole_number,
        "How many people must allow what an agent asks, at least.",
    ),
    Setting("hub.push_hosts", read_texts, "Hosts of further push services, as `host[:port]`."),
    Setting(
        "hub.webhook_hosts",
        read_texts,
        "Hosts that webhooks may reach although they are not on the public internet.",
    ),
    Setting("hub.mail", read_mail, "The mail server of a Hub, as a table."),
)

SETTINGS: Final[dict[str, Setting]] = {row.key: row for row in _ROWS}

AGENT_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        Setting("kind", read_kind, "A known kind, or an entry point `module:name`."),
        Setting("model", read_text, "The model."),
        Setting("base_url", read_http_url, "The base URL of the model's API."),
        Setting("api_key_env", read_variable, "The variable that contains the key."),
        Setting("retry", read_retry, "Retry settings for this agent, as a table."),
        Setting("options", options, "Any other options of the agent."),
    )
}

MCP_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        Setting("command", read_command_line, "The program to run, and its arguments."),
        Setting("env", read_environment, "Variables for it; ${NAME} refers to yours."),
        Setting("url", read_http_url, "The URL of the server, instead of a command."),
        Setting("headers", read_headers, "Headers for it; ${NAME} refers to a variable."),
        Setting("allow_tools", read_globs, "Tools to offer; all by default."),
        Setting("deny_tools", read_globs, "Tools not to offer."),
        Setting("seconds", seconds, "The time limit of a call."),
        Setting("start_seconds", seconds, "The time limit for starting."),
        Setting("network", read_boolean, "Whether its sandbox has network access."),
        Setting("readable", read_paths, "Additional folders that its sandbox can read."),
        Setting("writable", read_paths, "Additional folders that it may write to."),
    )
}

PROVIDER_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        Setting("issuer", read_issuer, "The issuer, as the provider names itself."),
        Setting("client_id", read_text, "The id of the Hub at the provider."),
        Setting("client_secret_env", read_variable, "The variable that contains its secret."),
        Setting("title", read_text, "What people read on the button; the name by default."),
        Setting("scopes", read_scopes, "Scopes to ask for beside `openid`."),
        Setting("accounts", one_of(*PROVIDER_ACCOUNTS), "Whether accounts are created or linked."),
        Setting("role", one_of(*PROVIDER_ROLES), "The role of accounts that are created."),
        Setting("domains", read_texts, "Domains of verified e-mail addresses to let in."),
        Setting("groups", read_texts, "Groups to let in."),
        Setting("groups_claim", read_text, "The claim that lists somebody's groups."),
        Setting("private_network", read_boolean, "Whether it may have a private address."),
    )
}

NAMED: Final = {
    "agents": AGENT_SETTINGS,
    "mcp": MCP_SETTINGS,
    "hub.oidc": PROVIDER_SETTINGS,
}
"""Tables of things that have names → the settings of each of them."""

VARIABLES: Final[dict[str, str]] = {row.variable: row.key for row in _ROWS}
"""Variable → key."""

_HINTS: Final = {
    "api_key": "put the key into an environment variable and its name into api_key_env",
    "entry_point": "write it as kind = 'module:name'",
}

_NAME_HINT: Final = "use at most 32 lowercase letters, digits and hyphens for the name of a"
_STRICTLY_NAMED: Final = {"mcp": "server", "hub.oidc": "provider"}


def find_setting(key: str) -> Setting | None:
    """The setting that a key names; `agents.NAME.model` and its like included."""
    if key in SETTINGS:
        return SETTINGS[key]
    table, name, last = split_named(key)
    is_named = name and (table not in _STRICTLY_NAMED or is_server_name(name))
    return NAMED[table].get(last) if is_named else None


def split_named(key: str) -> tuple[str, str, str]:
    """The table of things with names that a key is about, the name and what is said of it; empty
    where it is about no such table.
    """
    table = next((each for each in NAMED if key == each or key.startswith(f"{each}.")), "")
    name, _, last = key[len(table) + 1 :].partition(".") if table else ("", "", "")
    return table, name, last


def is_server_name(name: str) -> bool:
    return SERVER_NAME.fullmatch(name) is not None and "--" not in name


def is_group(key: str) -> bool:
    """Whether a key names a table of settings."""
    table, _, last = split_named(key)
    if table:
        return not last
    return any(known.startswith(f"{key}.") for known in (*SETTINGS, *NAMED))


def hint_for(key: str) -> str:
    """What may have been meant by a key that there is not."""
    before, _, last = key.rpartition(".")
    if last in _HINTS and before.startswith("agents."):
        return _HINTS[last]
    table, name, _ = split_named(before)
    if table in _STRICTLY_NAMED and name and not is_server_name(name):
        return f"{_NAME_HINT} {_STRICTLY_NAMED[table]}"
    named = NAMED[table] if name and before == f"{table}.{name}" else {}
    known = [f"{before}.{each}" for each in named] if named else [*SETTINGS, *NAMED]
    close = get_close_matches(key, known, 1) or [
        each for each in known if each.rpartition(".")[2] == last
    ]
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


def variable_hint(name: str) -> str:
    close = get_close_matches(name, VARIABLES, 1)
    return f"did you mean {close[0]}?" if close else "`factwire config` lists all settings"
