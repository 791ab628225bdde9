#!/usr/bin/env bash
# Installs a Debian package below an empty folder, uses what it holds, and removes it again:
# judges/package.sh DEB
# The machine's own packages stay as they are, and nobody need be root.
set -euo pipefail
package=$(readlink -f "$1")
root=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$root"' EXIT
fail() { echo "package: $1" >&2; exit 1; }

mkdir -p "$root"/var/lib/dpkg/{info,updates}
touch "$root"/var/lib/dpkg/{status,available}
# The C library is that of the machine, of which an empty folder knows nothing.
debian() { PATH=$PATH:/usr/sbin:/sbin dpkg --root="$root" --force-not-root --force-depends "$@" >"$root/said" 2>&1 ||
    { cat "$root/said" >&2; fail "dpkg $1 failed"; }; }
debian -i "$package"

"$root/usr/bin/tidings" --version | grep -q '^protocol: .*2026-07-28' || fail "--version is incomplete"
bash -n "$root/usr/share/bash-completion/completions/tidings" || fail "the completions are no script"
gzip -cd "$root/usr/share/man/man1/tidings-serve.1.gz" | grep -q workspace || fail "no manual page"
if command -v systemd-analyze >/dev/null 2>&1; then
    sed "s|=/usr/bin|=$root/usr/bin|" "$root/usr/lib/systemd/system/tidings.service" >"$root/tidings.service"
    complaints=$(systemd-analyze verify --man=no "$root/tidings.service" 2>&1 | grep -F tidings.service || true)
    [ -z "$complaints" ] || fail "the unit is not in order: $complaints"
fi

# As the unit starts it, but for the places.
sed -i "s|/var/lib/tidings|$root/data|" "$root/etc/tidings/tidings.toml"
"$root/usr/bin/tidings" serve --config "$root/etc/tidings/tidings.toml" \
    --workspace "$root/data/workspace" --http 127.0.0.1:0 >"$root/out" &
server=$!
for _ in $(seq 300); do
    grep -q '^listening on' "$root/out" && break
    kill -0 "$server" 2>/dev/null || fail "the server did not start"
    sleep 0.1
done
address=$(sed -n 's/^listening on //p' "$root/out")
[ -n "$address" ] || fail "the server is not there after 30 s"
"$root/usr/bin/tidings" call "$address" create_artifact title=one text=hello >/dev/null
"$root/usr/bin/tidings" read "$address" artifacts://recent | grep -q '"one"' || fail "it does not serve"
kill "$server"
wait "$server" || fail "the server did not end well"
server=

debian --purge tidings
[ -z "$(find "$root" -path "$root/data" -prune -o -path "$root/*/tidings*" -type f -print)" ] || fail "something is left"
echo "the package installs, serves and goes"
