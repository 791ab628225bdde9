#!/bin/sh
# Greets someone. The arguments come as one JSON object on standard input, and in
# MCP_TOOL_ARGS_JSON. `tool.meta.json` allows no quotes, backslashes or control characters in a
# name, so this finds the whole of it without a JSON parser.
set -eu

name=$(sed -n 's/^.*"name" *: *"\([^"\\]*\)".*$/\1/p')
echo "::log info greeting $name" >&2
printf 'Hello, %s.\n' "$name"
