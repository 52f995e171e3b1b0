"""The facts' files of `schemas/`: what they are called and what is in them, to the byte."""

from typing import Any

import msgspec

from factwire.facts.schemas.asyncapi import asyncapi
from factwire.facts.schemas.json_schema import json_schemas
from factwire.facts.schemas.typescript import typescript


def schema_files() -> dict[str, str]:
    """Every file about facts: its name and its text."""
    documents = json_schemas() | {"asyncapi.json": asyncapi()}
    files = {name: document_text(document) for name, document in documents.items()}
    return files | {"factwire.d.ts": typescript()}


def document_text(document: dict[str, Any]) -> str:
    """A document as it stands in its file."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
