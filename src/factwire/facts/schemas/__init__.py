"""The contract for readers in other languages, derived from the types and tables of the facts.

Nothing is stated here that Python does not enforce: a schema accepts what `factwire.facts` finds
well-typed and refuses what it does not.
"""

from factwire.facts.schemas.json_schema import json_schemas
from factwire.facts.schemas.schema_files import asyncapi_document, schema_files
from factwire.facts.schemas.typescript import typescript
from factwire.facts.schemas.wire_types import IssueReport, ReportError

__all__ = [
    "IssueReport",
    "ReportError",
    "asyncapi_document",
    "json_schemas",
    "schema_files",
    "typescript",
]
