#!/bin/sh
# What Factwire does with a recorded turn: validate it, see what is wrong with a broken one, convert.
set -e
cd "$(dirname "$0")"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say 'A turn of a coding agent, as facts: it asked, read, was approved, patched, answered.'
show factwire validate first_turn.ndjson

say 'The same turn with four things wrong: an id missing, a secret, a gap, an open approval.'
show factwire validate broken_turn.ndjson || true

say 'What a UI hears of the first three facts.'
head -n 3 first_turn.ndjson | factwire convert - --to ui

say 'Facts in your own code:'
show python recorded_turn.py
