#!/bin/sh
# What Factwire does with a recorded turn: validates, shows, records, keeps and proves it.
set -e
cd "$(dirname "$0")"
journal=$(mktemp -d)/facts.db
trap 'rm -rf "$(dirname "$journal")"' EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say 'A turn of a coding agent, as facts: it asked, read, was approved, patched, answered.'
show factwire validate first_turn.ndjson

say 'The same turn with four things wrong: an id missing, a secret, a gap, an open approval.'
show factwire validate broken_turn.ndjson || true

say 'What a UI hears of the first three facts.'
head -n 3 first_turn.ndjson | factwire convert - --to ui

say 'What those facts come to on a screen.'
show factwire project first_turn.ndjson

say 'Facts in your own code:'
show python recorded_turn.py

say 'A loop of your own, recorded: a tool, an approval, a subagent, an artifact.'
show python own_loop.py "$(dirname "$journal")/loop.db"
show factwire project "$(dirname "$journal")/loop.db"

say 'Kept in a journal: durable, ordered, and read on from any fact (here: the tools after evt_011).'
show python kept_turn.py "$journal"
show factwire journal info "$journal"
show factwire journal verify "$journal"

say 'One byte changed behind its back:'
python - "$journal" <<'CHANGE'
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_bytes(path.read_bytes().replace(b"2 lines changed", b"9 lines changed"))
CHANGE
show factwire journal verify "$journal" || true

say 'A command through the runtime: judged by the policy, held in the sandbox, told by facts.'
show factwire run shell 'echo facts, not prose' --allow 'Bash(echo *)' \
    --workspace "$(dirname "$journal")" --journal "$(dirname "$journal")/run.db"

say 'Next, in a terminal of your own: factwire run demo "hello"'
