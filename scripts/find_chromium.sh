#!/bin/sh
# Print the path of a Chromium that tests can drive, or say what to install and fail.
# Looks at $CHROMIUM, then PATH. With --install, on Debian as root, a missing one is installed from
# Debian's packages.
set -eu

find_chromium() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
        if [ -n "$name" ] && command -v "$name" 2>/dev/null; then return 0; fi
    done
    return 1
}

if find_chromium; then exit 0; fi

if [ "${1:-}" = "--install" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "No Chromium found: installing chromium, which tests of the report look at it with" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
    if find_chromium; then exit 0; fi
fi

echo "No Chromium: tests of the report in a browser are skipped. Install the package chromium or set CHROMIUM." >&2
exit 1
