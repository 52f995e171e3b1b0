"""The runtime: runs agents' turns and writes what they do as facts."""

from factwire.runtime.minting import Mint, Scope, new_id, utc_now

__all__ = ["Mint", "Scope", "new_id", "utc_now"]
