"""What a Hub stores, on SQLite or PostgreSQL by one schema and one set of queries."""

__all__: list[str] = []
