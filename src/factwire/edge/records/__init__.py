"""Records: what an Edge lists of all its threads, derived from facts alone."""

from factwire.edge.records.keeping import KeptRecords, read_records
from factwire.edge.records.records import CLASSES, Records
from factwire.edge.records.table import Page, Table, rows_of

__all__ = ["CLASSES", "KeptRecords", "Page", "Records", "Table", "read_records", "rows_of"]
