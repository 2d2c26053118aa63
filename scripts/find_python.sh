#!/bin/sh
# Print the first Python of 3.11 or newer that runs, or say what to install and fail.
# A name on PATH is not enough: version managers put names there that do not start.
set -eu

for name in python3 python3.13 python3.12 python3.11 python3.14; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$name"
        exit 0
    fi
done

echo "Variantlake needs Python 3.11 or newer: install it, or call make with PYTHON=/path/to/python3." >&2
exit 1
