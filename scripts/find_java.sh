#!/bin/sh
# Print the JAVA_HOME of a Java 17 or newer that Spark can use, or say what to install and fail.
# Looks at $JAVA_HOME, then PATH, then Debian's usual folder. With --install, on Debian as root, a
# missing Java is installed from Debian's packages.
set -eu

home_of() { # java binary -> its home, if it is 17 or newer and has the module that PySpark asks for
    [ -x "$1" ] || return 1
    version=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge 17 ] || return 1
    "$1" --list-modules 2>/dev/null | grep -q '^jdk.incubator.vector' || return 1
    dirname "$(dirname "$(readlink -f "$1")")"
}

find_java() {
    if [ -n "${JAVA_HOME:-}" ] && home_of "$JAVA_HOME/bin/java"; then return 0; fi
    if command -v java >/dev/null 2>&1 && home_of "$(command -v java)"; then return 0; fi
    for binary in /usr/lib/jvm/*/bin/java; do
        if home_of "$binary"; then return 0; fi
    done
    return 1
}

if find_java; then exit 0; fi

if [ "${1:-}" = "--install" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "No Java 17+ found: installing openjdk-17-jre-headless" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >&2
    if find_java; then exit 0; fi
fi

echo "Spark needs Java 17 or newer (a full runtime): install a JDK such as openjdk-17-jre-headless or set JAVA_HOME." >&2
exit 1
