"""Print what CHANGELOG.md says of a version: `python scripts/release_notes.py 0.1.0`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CHANGELOG = REPOSITORY / "CHANGELOG.md"
FRAGMENTS = REPOSITORY / "changes"
MARKER = "<!-- towncrier release notes start -->"


def notes_of(version: str, changelog: str) -> str | None:
    """The text below the heading of a version; None if there is none."""
    heading = rf"^## {re.escape(version)}(?: [^\n]*)?$"
    match = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if match is None:
        return None
    return re.sub(rf"\n*{MARKER}\n*", "\n\n", match[1]).strip()


def main() -> None:
    """Print them, or say that there are none, or that fragments wait to be put into them."""
    version = sys.argv[1].removeprefix("v")
    notes = notes_of(version, CHANGELOG.read_text(encoding="utf-8"))
    if notes is None:
        sys.exit(f"CHANGELOG.md has no section {version}")
    waiting = sorted(each.name for each in FRAGMENTS.glob("*.*.md"))
    if waiting:
        sys.exit(f"run `make changelog`: changes/ still has {', '.join(waiting)}")
    sys.stdout.write(notes + "\n")


if __name__ == "__main__":
    main()
