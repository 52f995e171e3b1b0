"""The contracts of comparisons for readers in other languages."""

from factwire.evidence.comparison.benchmarks import BenchmarkComparison
from factwire.evidence.comparison.comparison import Comparison
from factwire.facts.schemas.files import document_text
from factwire.facts.schemas.json_schema import Schema, schema_documents, struct_schema


def comparison_schemas() -> dict[str, Schema]:
    """Every JSON Schema document about comparisons, by its file name."""
    return schema_documents(
        {
            "comparison": struct_schema(Comparison),
            "benchmark-comparison": struct_schema(BenchmarkComparison),
        }
    )


def comparison_files() -> dict[str, str]:
    """The same as texts of files."""
    return {name: document_text(document) for name, document in comparison_schemas().items()}
