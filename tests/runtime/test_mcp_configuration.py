"""MCP servers in the configuration: what can be set, and what is refused."""

from pathlib import Path

import pytest

from factwire.cli import doctor_command
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime.configuration import (
    Configuration,
    ConfigurationError,
    McpServer,
    ResolvedConfiguration,
    list_setting_rows,
    load_configuration,
)
from factwire.runtime.turn_resources import build_turn_resources
from tests.runtime.trusted_files import write_trusted

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

FILE = """\
[mcp.files]
command = ["files-server", "--root", "."]
env = { LOG_LEVEL = "warn", FILES_TOKEN = "${MY_TOKEN}" }
readable = ["tools"]
network = true

[mcp.search-2]
url = "https://search.example/mcp"
headers = { Authorization = "Bearer ${SEARCH_TOKEN}", X-Team = "red" }
allow_tools = ["find_*"]
deny_tools = ["find_people"]
seconds = 5
start_seconds = 2.5
"""


def load_content(folder: Path, content: str, *flags: tuple[str, str]) -> ResolvedConfiguration:
    write_trusted(folder / "factwire.toml", content, {"HOME": str(folder)})
    return load_configuration(folder, flags=flags, environment={"HOME": str(folder)})


@pytest.mark.requirement("runtime.mcp.configuration")
def test_servers_are_read_and_lent_to_agents(tmp_path: Path):
    resolved = load_content(tmp_path, FILE, ("mcp.files.deny_tools", '["delete*"]'))

    assert resolved.configuration.mcp == {
        "files": McpServer(
            command=("files-server", "--root", "."),
            env={"LOG_LEVEL": "warn", "FILES_TOKEN": "${MY_TOKEN}"},
            readable=(str(tmp_path / "tools"),),
            network=True,
            deny_tools=("delete*",),
        ),
        "search-2": McpServer(
            url="https://search.example/mcp",
            headers={"Authorization": "Bearer ${SEARCH_TOKEN}", "X-Team": "red"},
            allow_tools=("find_*",),
            deny_tools=("find_people",),
            seconds=5.0,
            start_seconds=2.5,
        ),
    }
    assert (
        build_turn_resources(resolved.configuration, MemoryBlobs()).mcp
        == resolved.configuration.mcp
    )
    shown = {row.key: row for row in list_setting_rows(resolved)}
    assert shown["mcp.files.command"].value == ("files-server", "--root", ".")
    assert shown["mcp.files.command"].where == f"{tmp_path / 'factwire.toml'}:2"
    assert shown["mcp.files.deny_tools"].source == "flag"
    assert "mcp.files.url" not in shown


@pytest.mark.requirement("runtime.mcp.configuration")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("mcp = 1", "mcp expected a table"),
        ("mcp.x = 1", "mcp.x expected a table"),
        ("mcp.x.seconds = 1", "mcp.x.command expected a command or a url, got neither"),
        ('mcp.x.command = ["a"]\nmcp.x.url = "http://b"', "a command or a url, got both"),
        ('mcp.x.command = "a b"', "mcp.x.command expected a list of a program and its arguments"),
        ("mcp.x.command = []", "mcp.x.command expected a program, followed by its arguments"),
        ('mcp.x.url = "ftp://x"', "mcp.x.url expected an http or https URL"),
        ('mcp.x.url = "https://me:pw@x/"', "mcp.x.url expected an http or https URL"),
        ('mcp.x.comand = ["a"]', "did you mean mcp.x.command?"),
        (
            'mcp.A_b.command = ["a"]',
            "use at most 32 lowercase letters, digits and hyphens for the name of a server",
        ),
        ('mcp.x.url = "http://b"\nmcp.x.headers = { "a b" = "c" }', "names of headers"),
        ('mcp.x.command = ["a"]\nmcp.x.env = { "a-b" = "c" }', "names of variables"),
        ('mcp.x.command = ["a"]\nmcp.x.env = { A = 1 }', "mcp.x.env expected text"),
        ('mcp.x.command = ["a"]\nmcp.x.allow_tools = "a"', "a list of names of tools"),
        ('mcp.x.command = ["a"]\nmcp.x.seconds = 0', "a number of seconds above 0"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(tmp_path: Path, content: str, message: str):
    with pytest.raises(ConfigurationError) as caught:
        load_content(tmp_path, content)

    assert message in str(caught.value)


@pytest.mark.requirement("runtime.mcp.configuration")
@pytest.mark.parametrize(
    "value",
    [
        f'command = ["a", "--key={SECRET}"]',
        f'command = ["a"]\nenv = {{ PLAIN = "{SECRET}" }}',
        'command = ["a"]\nenv = { MY_TOKEN = "correcthorse" }',
        'url = "https://x"\nheaders = { Authorization = "Bearer correcthorse" }',
        f'url = "https://x"\nheaders = {{ X-Plain = "${{A}} {SECRET}" }}',
    ],
)
def test_a_secret_in_a_file_is_refused_and_not_repeated(tmp_path: Path, value: str):
    with pytest.raises(ConfigurationError) as caught:
        load_content(tmp_path, f"[mcp.x]\n{value}\n")

    message = str(caught.value)
    assert "put it into an environment variable, and refer to it as ${NAME}" in message
    assert SECRET not in message
    assert "correcthorse" not in message


@pytest.mark.requirement("runtime.mcp.doctor")
def test_the_doctor_says_what_each_server_needs_and_starts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    headers = {"Authorization": "Bearer ${TOKEN}"}
    configuration = Configuration(
        journal="memory:",
        data=str(tmp_path),
        mcp={
            "shell": McpServer(command=("sh", "-c", "touch started")),
            "gone": McpServer(command=("no-such-program",)),
            "far": McpServer(url="https://far.example/mcp", headers=headers),
            "plain": McpServer(url="http://far.example/mcp", headers=headers),
            "near": McpServer(url="http://localhost:1/mcp", headers=headers),
            "poor": McpServer(url="https://far.example/mcp", headers={"X": "${MISSING}"}),
        },
    )
    found = list(
        doctor_command.check_servers(configuration, {"TOKEN": "made-up", "PATH": "/usr/bin:/bin"})
    )

    assert [(each.name, each.status) for each in found] == [
        ("mcp shell", "ok"),
        ("mcp gone", "warn"),
        ("mcp far", "ok"),
        ("mcp plain", "warn"),
        ("mcp near", "ok"),
        ("mcp poor", "warn"),
    ]
    assert found[0].message.endswith("bin/sh; not started")
    assert found[3].message == "at far.example; its secrets are sent unencrypted"
    assert found[5].message == "not set: MISSING"
    monkeypatch.setattr(doctor_command, "is_installed", lambda: False)
    [missing] = doctor_command.check_servers(configuration, {})
    assert missing.fix == "pip install 'factwire[mcp]'"
