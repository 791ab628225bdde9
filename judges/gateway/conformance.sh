#!/usr/bin/env bash
# The official suites of both eras against a server behind the gateway: the same scores as in front of
# it. BEHIND_PROGRAM is `tidings`, BEHIND_SERVER the server; see behind.mjs. Further options are those of
# the suites' judge, such as --only.
set -euo pipefail
cd "$(dirname "$0")/../.."
node judges/conformance/run.mjs --server judges/gateway/behind.mjs \
    --suite 2025-11-25 --suite 2026-07-28 "$@"
