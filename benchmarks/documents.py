"""The data sets of the ingest benchmark, each of any size.

Every generator gives one JSON document a time, as bytes, the same ones for the same count.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from benchmarks.events import events

WEBHOOKS = Path(__file__).resolve().parents[1] / "tests" / "data" / "github_webhooks.ndjson.gz"
"""Real payloads, one per line."""


def event_documents(count: int) -> Iterator[bytes]:
    """Nested events of half a kilobyte, most of it strings: see benchmarks.events."""
    return map(orjson.dumps, events(count))


def wide_documents(count: int) -> Iterator[bytes]:
    """Rows of 64 fields, 1 KB, mostly decimals, with integers, doubles and short strings."""
    pick = random.Random(7)
    kinds = {f"sensor_{i}_value": pick.choice("ddddddiiisbe") for i in range(63)}
    for i in range(count):
        row: dict[str, object] = {"ts": 1732206349000 + 37 * i}
        for place, (key, kind) in enumerate(kinds.items()):
            match kind:
                case "d":
                    row[key] = round(pick.gauss(50, 30), 1 + place % 5)
                case "i":
                    row[key] = pick.randint(-10, 10 ** pick.randint(1, 12))
                case "s":
                    row[key] = pick.choice(["ok", "warn", 'crit é "q"'])
                case "b":
                    row[key] = pick.random() < 0.5
                case _:
                    row[key] = pick.random() * 10.0 ** pick.randint(-20, 20)
        yield json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


def webhook_documents(count: int) -> Iterator[bytes]:
    """GitHub's webhooks: 10 KB, deep, of 58 kinds. Beyond the real ones numbers and hashes vary."""
    with gzip.open(WEBHOOKS, "rb") as file:
        payloads = file.read().splitlines()
    pick = random.Random(11)

    def other_digits(match: re.Match[bytes]) -> bytes:
        size = len(match[0])
        return b"%0*d" % (size, pick.randrange(10 ** (size - 1), 10**size))

    for i in range(count):
        payload = payloads[i % len(payloads)]
        # Runs of digits within numbers, dates' fractions, hashes; what JSON means stays valid.
        yield payload if i < len(payloads) else re.sub(rb"[1-9]\d{3,}", other_digits, payload)


def tiny_documents(count: int) -> Iterator[bytes]:
    """Rows of two fields and 30 bytes."""
    pick = random.Random(13)
    for i in range(count):
        yield b'{"id":%d,"state":"%s"}' % (i, pick.choice([b"on", b"off", b"unknown"]))


def cut_documents(count: int) -> Iterator[bytes]:
    """An empty object, and one array of events that is cut near its end."""
    yield b"{}"
    yield b"[" + b",".join(event_documents(count))[:-10]


def short_bad_documents(count: int) -> Iterator[bytes]:
    """Lines of 100 bytes, each with one of five kinds of mistakes, after an empty object."""
    yield b"{}"
    for i in range(count):
        text = b'{"id": %7d, "kind": "push", "tags": ["a", "b"], "text": "%s"}' % (i, b"x" * 40)
        yield (
            text[:-8],
            text[:-1],
            text[:-1] + b",}",
            text.replace(b'"push"', b"push"),
            text[:-1] + b', "id": 1}',
        )[i % 5]


def distinct_key_documents(count: int) -> Iterator[bytes]:
    """Objects of one field each, whose key is a unique identifier."""
    for i in range(count):
        yield b'{"user-%09d": {"state": "on", "n": %d}}' % (i * 7919, i)


def tiny_key_documents(count: int) -> Iterator[bytes]:
    """Objects of 13 bytes with one field each, whose key is unique."""
    for i in range(count):
        yield b'{"k%d":1}' % i


def wide_key_documents(count: int) -> Iterator[bytes]:
    """Objects of a thousand fields each, whose keys are unique identifiers."""
    for row in range(count):
        fields = (
            b'"user-%09d": {"state": "on", "n": %d}' % ((1000 * row + i) * 7919, i)
            for i in range(1000)
        )
        yield b"{" + b", ".join(fields) + b"}"


SETS: dict[str, tuple[Callable[[int], Iterator[bytes]], float]] = {
    "events": (event_documents, 1),
    "wide rows": (wide_documents, 0.3),
    "webhooks": (webhook_documents, 0.03),
    "tiny rows": (tiny_documents, 4),
}
"""The generator of each set, and its number of documents per event of `scale`."""

HARD: dict[str, tuple[Callable[[int], Iterator[bytes]], float]] = {
    "cut at its end": (cut_documents, 0.04),
    "short bad lines": (short_bad_documents, 0.2),
    "distinct keys": (distinct_key_documents, 0.4),
    "tiny distinct keys": (tiny_key_documents, 0.8),
    "distinct keys, a thousand to an object": (wide_key_documents, 0.0004),
}
"""Sets that cost more than their size suggests: bad documents, and inference over ids as keys."""


def write(name: str, path: Path, scale: int) -> tuple[int, int]:
    """Write a set as NDJSON, sized for `scale` events; returns its documents and bytes."""
    generate, share = (SETS | HARD)[name]
    count = max(1, int(scale * share))
    with path.open("wb") as file:
        for document in generate(count):
            file.write(document)
            file.write(b"\n")
    return count, path.stat().st_size
