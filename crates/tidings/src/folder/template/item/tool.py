#!/usr/bin/env python3
# The arguments come as one JSON object on standard input, and in MCP_TOOL_ARGS_JSON. What is
# printed is the result; an exit code other than 0 says that it failed. On standard error,
# `::progress 1/3 text` tells how far it is, and `::log info text` is a line of the log.
import json
import sys

arguments = json.load(sys.stdin)
print(f"@NAME@ was called with the text: {arguments['text']}")
