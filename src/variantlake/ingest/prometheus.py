"""Figures in the text form of Prometheus, in a file for its textfile collector.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/, "Text-based format".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

from variantlake.storage.unreachable import disk_failure


def head(name: str, kind: str, meaning: str) -> list[str]:
    """The lines that come before a metric's samples; `kind` is `counter` or `gauge`."""
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """One line with a value."""
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def write_whole(file: Path, text: str) -> None:
    """Put the figures into the file, all of them or none. Raises StoreFailed."""
    # The collector reads files that end with .prom; it must not see half of one.
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise disk_failure(error, str(file), "the metrics cannot be written") from error
