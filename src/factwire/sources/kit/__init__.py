"""What the agents' folders share: framing, the fact builder, scaffolds of live agents, policy.

Nothing is imported here, so that a converter loads no runtime and a live agent no SDK.
"""

__all__: list[str] = []
