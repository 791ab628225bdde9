#!/bin/sh
# @describe Writes a note into resources/notes.jsonl; whoever watches that is told.
# @param text:string! What to write down
# @timeout 10s
set -eu

# The arguments are one JSON object on standard input: a line of the notes as it is.
cd "$(dirname "$0")/.."
note=$(tr -d '\r\n')
printf '%s\n' "$note" >>resources/notes.jsonl
echo "noted"
