"""The files that are committed: small, whole, and leading nowhere else."""

import re
from importlib.resources import files

import pytest

from factwire.edge.workbench import read_bundle

MOST_BYTES = 1_500_000
BUNDLE = read_bundle(files("factwire") / "workbench")


@pytest.mark.requirement("workbench.built")
def test_the_page_names_files_that_are_there_and_has_nothing_inline():
    page = BUNDLE["/"].body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert named
    assert set(named) <= set(BUNDLE)
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>|<style|\sstyle=|\son\w+=", page) == []


@pytest.mark.requirement("workbench.built")
def test_all_files_together_are_small_and_none_is_a_stranger():
    assert sum(len(file.body) for file in BUNDLE.values()) <= MOST_BYTES
    strange = [
        address for address, file in BUNDLE.items() if file.media_type == "application/octet-stream"
    ]
    assert strange == []
    for address, file in BUNDLE.items():
        assert address == "/" or not address.startswith("/assets/") or "immutable" in file.caching


@pytest.mark.requirement("workbench.built")
def test_styles_ask_for_nothing_from_elsewhere():
    for address, file in BUNDLE.items():
        if address.endswith(".css"):
            text = file.body.decode()
            assert re.findall(r"@import|url\(\s*[\"']?(?!/assets/|#)", text) == [], address
