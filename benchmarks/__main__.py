"""Run all benchmarks, store results.json, and make tables and pictures of the pages from it.

    python -m benchmarks [--size small|medium|large] [--only NAME ...] [--pages]

Each benchmark is a process. Sections that are not run keep the figures of the run before: each has
its own date, commit and load of the machine. A complete run adds our own medians to
benchmarks/history.jsonl, a line a run. `--pages` only writes the pages anew.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.check import git
from benchmarks.page import RESULTS, read_results, write_pages
from benchmarks.report import Section, timed

HISTORY = RESULTS.with_name("history.jsonl")
EVENTS = {"small": 10_000, "medium": 500_000, "large": 2_000_000}
ROUNDS = {"small": 2, "medium": 3, "large": 3}


def commands(size: str) -> dict[str, list[str]]:
    """The module and options of each section."""
    events, rounds = EVENTS[size], str(ROUNDS[size])
    files = str(min(640, events // 100))

    def sized(module: str, count: int, *more: str) -> list[str]:
        return [module, "--events", str(max(count, 20)), "--rounds", rounds, *more]

    return {
        "load": sized("ingest", events),
        "hard": sized("ingest", events, "--hard"),
        "queries": sized("queries", events),
        "rule": sized("queries", events, "--rule"),
        "local-queries": sized("local_queries", events),
        "compaction": sized("optimize", min(200, events // 2500), "--files", files),
        "growth": sized("growth", min(events // 2, 500_000)),
        "memory": sized("memory", events // 5, "--copies", "8" if size == "small" else "50"),
    }


def settings() -> dict[str, str]:
    """The settings of the other engines."""
    from benchmarks.engines import SETTINGS

    return {
        "Delta Spark": ", ".join(f"{key}={value}" for key, value in SETTINGS.items()),
        "DuckDB": "threads=2, Parquet with zstd, VARIANT shredded by itself",
        "Sail": "TOKIO_WORKER_THREADS=2, delta.enableVariantShredding=true",
        "Polars": "plain columns, extracted before",
        "chDB": "JSONBench's own table, OPTIMIZE FINAL; and a table of JSON alone",
    }


def machine() -> dict[str, Any]:
    """The machine that all engines ran on."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Versions of ourselves, Python, and the other engines."""
    from interop.engines import ENGINES

    from benchmarks.engines import DELTA_PACKAGE

    packages = ("variantlake", "pyarrow", "pyspark", "duckdb", "polars")
    pinned = {engine.name: engine.title for engine in ENGINES}
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "delta-spark": DELTA_PACKAGE.rpartition(":")[2],
        "sail": pinned["pysail"].rpartition(" ")[2],
        "chdb": pinned["chdb"].rpartition(" ")[2],
    }


def run(name: str, command: list[str], size: str) -> dict[str, Any] | None:
    """The figures of one section; None if it failed, with a message."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "section.json"
        load = [os.getloadavg()[0]]
        module, *options = command
        done: list[int] = []
        seconds = timed(
            lambda: done.append(
                subprocess.call(
                    [sys.executable, "-m", f"benchmarks.{module}", *options, "--json", str(file)]
                )
            )
        )
        load.append(os.getloadavg()[0])
        if done != [0]:
            print(f"{name}: the benchmark ended with {done[0]}", file=sys.stderr)
            return None
        figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {
        "size": size,
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="minutes"),
        "commit": git("rev-parse", "--short", "HEAD"),
        "seconds": round(seconds),
        "load_average": [round(each, 1) for each in load],
        "command": f"python -m benchmarks.{' '.join(command)}",
        **figures,
    }


def history_line(results: dict[str, Any], size: str) -> dict[str, Any]:
    """Our own medians of a run."""
    figures = {}
    for name, section in results["sections"].items():
        made = Section.from_dict(section)
        for row, cells in made.rows.items():
            ours = cells.get(made.columns[0])
            if ours is not None and ours.values:
                figures[f"{name}: {row}"] = float(f"{ours.median:.4g}")
    machine_ = results["machine"]
    return {
        "commit": git("rev-parse", "HEAD"),
        "subject": git("log", "-1", "--format=%s"),
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": f"{machine_['cpu']}, {machine_['cores']} cores",
        "load_average": max(max(each["load_average"]) for each in results["sections"].values()),
        "size": size,
        "figures": figures,
    }


def text_of(results: dict[str, Any]) -> str:
    """JSON with one line per row, so that a later run changes few lines."""

    def lines(value: Any, depth: int) -> str:
        if not isinstance(value, dict) or depth == 4 or not value:
            return json.dumps(value, ensure_ascii=False)
        pad = " " * (depth + 1)
        inner = ",\n".join(
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {lines(each, depth + 1)}"
            for key, each in value.items()
        )
        return f"{{\n{inner}\n{' ' * depth}}}"

    return lines(results, 0) + "\n"


def keep(name: str, figures: dict[str, Any]) -> None:
    """Add a section's figures to those of the others, in the order of the commands."""
    results = read_results() if RESULTS.exists() else {}
    sections = results.get("sections", {}) | {name: figures}
    results = {
        "machine": machine(),
        "versions": versions(),
        "settings": settings(),
        "sections": {each: sections[each] for each in commands("small") if each in sections},
    }
    RESULTS.write_text(text_of(results), encoding="utf-8")


def main() -> int:
    """The exit code: 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=list(EVENTS), default="medium")
    parser.add_argument("--only", nargs="+", choices=list(commands("small")), metavar="NAME")
    parser.add_argument("--pages", action="store_true", help="run nothing, write the pages")
    asked = parser.parse_args()
    failed = []
    if not asked.pages:
        started = time.monotonic()
        for name, command in commands(asked.size).items():
            if asked.only and name not in asked.only:
                continue
            print(f"\n== {name}", flush=True)
            figures = run(name, command, asked.size)
            if figures is None:
                failed.append(name)
            else:
                keep(name, figures)
        if not asked.only and not failed:
            with HISTORY.open("a", encoding="utf-8") as file:
                file.write(json.dumps(history_line(read_results(), asked.size)) + "\n")
        print(f"\n{time.monotonic() - started:.0f} s", *failed, sep="; failed: ")
    write_pages()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
