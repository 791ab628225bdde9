#!/bin/sh
# The arguments come as one JSON object on standard input, and in MCP_TOOL_ARGS_JSON. What is
# printed is the result; an exit code other than 0 says that it failed. On standard error,
# `::progress 1/3 text` tells how far it is, and `::log info text` is a line of the log.
set -eu

arguments=$(cat)
printf '@NAME@ was called with %s\n' "$arguments"
