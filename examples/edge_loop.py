"""Your own loop at a running Edge: it asks before it acts, and a person decides in the workbench.

Start one with `factwire edge`, open its page, then run
`python examples/edge_loop.py http://127.0.0.1:8787 TOKEN`.
"""

import asyncio
import sys

from factwire.runtime.recording import Recorder


async def restart(url: str, token: str, service: str) -> bool:
    """Restart a service, if somebody allows it."""
    args = {"service": service}
    async with Recorder(url, token=token) as recorder, recorder.turn(f"Restart {service}") as turn:
        async with turn.tool("restart", args) as call:
            decision = await recorder.ask(f"Restart {service}?", args=args, call=call)
            if decision.allowed:
                call.result("restarted")
            else:
                call.fail("permission_denied", decision.reason or "not allowed")
        turn.say("Done." if decision.allowed else "I left it alone.")
    return decision.allowed


if __name__ == "__main__":
    address, secret = sys.argv[1:3]
    print("restarted" if asyncio.run(restart(address, secret, "report")) else "left alone")
