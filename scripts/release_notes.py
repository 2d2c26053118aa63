"""Print what CHANGELOG.md says of a version: `python scripts/release_notes.py 0.1.0`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"


def notes_of(version: str, changelog: str) -> str | None:
    """The text below the heading of a version; None if there is none."""
    heading = rf"^## {re.escape(version)}(?: [^\n]*)?$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else None


def main() -> None:
    """Print them, or say that there are none."""
    version = sys.argv[1].removeprefix("v")
    notes = notes_of(version, CHANGELOG.read_text(encoding="utf-8"))
    if notes is None:
        sys.exit(f"CHANGELOG.md has no section {version}")
    sys.stdout.write(notes + "\n")


if __name__ == "__main__":
    main()
