"""A program that prints JSON lines of its own, and does what its prompt says.

It is run by itself, and knows nothing of Factwire. The last word of a prompt names what it does;
its first argument says how the prompt comes.
"""

import json
import os
import sys
import time
from typing import Any


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def answers(prompt: str) -> None:
    say("say", text=f"You said: {prompt}")
    say("bye", why="done")


def repeats(prompt: str) -> None:
    names = sorted(name for name in os.environ if "TEST_" in name)
    say("say", text=json.dumps({"given": prompt, "argv": sys.argv[1:], "names": names}))
    say("bye", why="done")


def ends(prompt: str) -> None:
    """Without a word about it."""
    say("say", text=prompt)


def dies(prompt: str) -> None:
    say("say", text="Half an ans")
    sys.exit(f"out of memory after {prompt}")


def gives_up(prompt: str) -> None:
    del prompt
    say("bye", why="no_idea", text="It is too hard")


def babbles(prompt: str) -> None:
    sys.stdout.write("Loading...\n")
    say("unheard of")
    answers(prompt)


def hangs(prompt: str) -> None:
    say("say", text=prompt)
    time.sleep(600)


def stops(prompt: str) -> None:
    """It goes on until it is told to stop."""
    say("say", text=prompt)
    say("said", text=json.dumps(hear()))
    say("bye", why="stopped")
    time.sleep(600)


def asks(prompt: str) -> None:
    del prompt
    say("run", call="call-1", tool="rm")
    say("may-i", question=7, call="call-1", text="Remove it?", tag="blue")
    heard = hear() if sys.argv[1] == "lines" else None
    if heard and heard["yes"]:
        say("ran", call="call-1")
    say("say", text=json.dumps(heard))
    say("bye", why="done")


def read_prompt() -> str:
    if sys.argv[1] == "argument":
        return sys.argv[-1]
    return hear()["text"] if sys.argv[1] == "lines" else sys.stdin.read()


if "deaf" in sys.argv:
    os.close(0)
    sys.exit("error: no licence")
words = read_prompt()
say("hello", session="s-1")
works = {
    each.__name__: each
    for each in (answers, asks, babbles, dies, ends, gives_up, hangs, repeats, stops)
}
works[words.split()[-1]](words)
