"""Promises of the repository itself: exact exports, listed verbs, pins without hosts."""

import importlib
import os
import pkgutil
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import factwire
from tools import check_hosts

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = [
    "factwire",
    *(found.name for found in pkgutil.walk_packages(factwire.__path__, "factwire.") if found.ispkg),
]
PIN = re.compile(
    r"#.*"
    r"|[a-z0-9][a-z0-9.-]*(\[[a-z,-]+\])?==[^ ]+( ; [^\\]+)?( \\)?"
    r"| +--hash=sha256:[0-9a-f]{64}( \\)?"
    r"| +# .*"
)


def constants_then_classes_then_the_rest(name: str) -> tuple[bool, bool, str]:
    return (not name.isupper(), not name[0].isupper(), name)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_exactly_its_public_names_in_order(name: str):
    package = importlib.import_module(name)
    public = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_") and not isinstance(value, ModuleType)
    }
    if name == "factwire":
        public.add("__version__")
    assert list(package.__all__) == sorted(public, key=constants_then_classes_then_the_rest)


def test_help_lists_every_verb():
    verbs = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert verbs
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    listing = subprocess.run(
        ["make", "help"], cwd=ROOT, env=clean, check=True, capture_output=True, text=True
    )
    listed = [line.split()[0] for line in listing.stdout.splitlines()]
    assert sorted(listed) == sorted(verbs[1].split())


def test_the_changelog_has_a_place_for_what_comes_next():
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["dev.txt", "uv.txt"])
def test_pins_are_versions_and_hashes_alone(name: str):
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert sum("==" in line for line in lines) <= sum("--hash=" in line for line in lines)


def test_the_pinned_uv_is_the_one_that_installs_the_rest():
    pins = [
        re.search(r"^uv==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
        for name in ("dev.txt", "uv.txt")
    ]
    assert pins[0]
    assert pins[1]
    assert pins[0][1] == pins[1][1]


def test_there_is_no_lock_file_that_names_hosts():
    assert not (ROOT / "uv.lock").exists()


@pytest.mark.parametrize("text", ["python" + "hosted.org", "PyPI" + ".org", str(ROOT / "src")])
def test_a_host_or_a_machine_folder_is_found_with_its_line(text: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"fine\nsee {text}\n")
    found = list(check_hosts.findings(page, check_hosts.forbidden()))
    assert [finding.split(": ")[0] for finding in found] == [f"{page}:2"]


def test_ordinary_text_names_no_host():
    text = "PyPI, npm, example.org and the folder framework/"
    assert check_hosts.forbidden().search(text) is None
