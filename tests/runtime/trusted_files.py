"""Projects' files that a person trusted."""

from collections.abc import Mapping
from pathlib import Path

from factwire.runtime.configuration import ProjectTrust, read_project_file


def write_trusted(path: Path, text: str, environment: Mapping[str, str] | None = None) -> Path:
    """Write a project's file, and trust it in the home that the environment names."""
    path.write_text(text)
    ProjectTrust(environment).add(read_project_file(path))
    return path
