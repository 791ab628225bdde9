#!/usr/bin/env bash
# The official suites of both eras against a server behind the gateway. BEHIND_PROGRAM is `tidings`,
# BEHIND_SERVER the server; see behind.mjs.
#
# Known to fail, and noted by the judge:
# - logging: log lines of an upstream call do not reach the client of that call.
# - sse-polling: an upstream cannot make the gateway close a stream; how answers are sent is ours.
# - stateless, capability-check: the gateway declares what it can pass on, so that a server does not
#   see what the client of one call left out. It asks, and is refused, later than it would be.
set -euo pipefail
cd "$(dirname "$0")/../.."
known=(
    2025-11-25/tools-call-with-logging
    2025-11-25/server-sse-polling
    2026-07-28/server-stateless
    2026-07-28/input-required-result-capability-check
)
options=()
for scenario in "${known[@]}"; do options+=(--known "$scenario"); done
node judges/conformance/run.mjs --server judges/gateway/behind.mjs \
    --suite 2025-11-25 --suite 2026-07-28 "${options[@]}"
