"""The Edge that browser tests talk to."""

from tests.client.edge_processes import EdgeProcess


class WorkbenchEdge(EdgeProcess):
    """It logs next to nothing: nobody reads what it says, and a full pipe would stop it."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "FACTWIRE_LOG_LEVEL": "error"}
