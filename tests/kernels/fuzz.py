"""Random documents through all kernels, each result compared with its twin's.

Runs in a process of its own as well, for the modes that the environment chooses:
`VARIANTLAKE_PURE_PYTHON=1 python -m tests.kernels.fuzz 40 1` (documents, seed).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tests.kernels.batches import expected, read, same, trees
from variantlake.encoding.json import parse_json
from variantlake.encoding.json_text import to_json
from variantlake.errors import VariantLakeError
from variantlake.kernels.json.bad_document import json_error, mistakes_of, reasons
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.json_writer import write_json
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.log.column_chunks import column_chunks
from variantlake.kernels.log.compact_protocol import STACK
from variantlake.kernels.log.page_headers import SLOTS, check_page_headers
from variantlake.kernels.shredded.check_rows import find_problems
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.shredded.unshred import unshred
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.rules import problems
from variantlake.shredding.unshred import unshred_plain

SCHEMA = parse_ddl(
    "a BIGINT, b STRING,"
    " c STRUCT<d: SMALLINT, e: STRUCT<f: STRING, g: DECIMAL(18,3)>, k1: VARIANT>,"
    " h DECIMAL(38,2), k2 STRUCT<z: BOOLEAN>, x DOUBLE, l ARRAY<STRUCT<p: STRING, q: ARRAY<INT>>>"
)

_KEYS = [*(f"k{i}" for i in range(400)), "é", '"q"', "a" * 40, "", "\U0001f600z", "\uffff"]
_NOISE = '{}[]",:0129.eE+-tfn \\u\x01'


class Documents:
    """A source of documents: free ones, ones of the schema's shape, and damaged ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, count: int) -> list[bytes]:
        return [self._one() for _ in range(count)]

    def _one(self) -> bytes:
        pick = self.random
        value = self._shaped(SHAPE) if pick.random() < 0.5 else self._free(4)
        separators = pick.choice([(",", ":"), (", ", ": "), (" ,\t", " :\r\n")])
        text = json.dumps(value, ensure_ascii=pick.random() < 0.5, separators=separators)
        if pick.random() < 0.4:
            text = text.replace("null", self._number())
        if pick.random() < 0.25:
            text = self._damaged(text)
        data = bytearray(text.encode())
        if pick.random() < 0.05:
            data[pick.randrange(len(data)) : len(data)] = bytes([pick.randrange(256)])
        return bytes(data)

    def _number(self) -> str:
        pick = self.random
        digits = "".join(pick.choices("0123456789", k=pick.choice([1, 8, 9, 18, 19, 38, 39, 60])))
        edges = ["-0", "-0.0", "-0e0", "1e400", "1E-400", "9007199254740993e0", f"0.{'0' * 37}1"]
        long = [f"1.{digits}", f"0.{digits}", f"1{digits}", f"-3{digits}e{pick.randint(-330, 310)}"]
        return pick.choice([*edges, *long])

    def _scalar(self) -> Any:
        pick = self.random
        text = "".join(
            pick.choice('abc é"\\\n\t/😀€') for _ in range(pick.choice([0, 3, 30, 63, 64]))
        )
        edges = [None, True, False, 0, -5, 127, 128, 2**31, 2**63, 10**25, 1.25, 3.0, 1e9, text]
        large = [pick.randint(-(10**40), 10**40), pick.randint(-(10**17), 10**17) / 100]
        doubles = [pick.random(), pick.gauss(0, 1) * 10.0 ** pick.randint(-30, 300)]
        return pick.choice([*edges, *large, *doubles])

    def _free(self, depth: int) -> Any:
        pick = self.random
        kind = pick.random()
        if depth and kind < 0.25:
            count = pick.choice([0, 1, 2, 5, 20, 300 if pick.random() < 0.1 else 3])
            return {key: self._free(depth - 1) for key in pick.sample(_KEYS, count)}
        if depth and kind < 0.4:
            count = pick.choice([0, 1, 3, 300 if pick.random() < 0.05 else 2])
            return [self._free(depth - 1) for _ in range(count)]
        return self._scalar()

    def _shaped(self, shape: Any) -> Any:
        """A value as the schema has it, some of the time."""
        pick = self.random
        if pick.random() < 0.15:
            return self._free(1)
        if isinstance(shape, dict):
            fields = {key: self._shaped(s) for key, s in shape.items() if pick.random() < 0.8}
            for _ in range(pick.choice([0, 0, 1, 3])):
                fields[pick.choice(_KEYS)] = self._free(1)
            items = list(fields.items())
            pick.shuffle(items)
            return dict(items)
        if isinstance(shape, list):
            return [self._shaped(shape[0]) for _ in range(pick.choice([0, 1, 2, 5]))]
        return shape(pick)

    def _damaged(self, text: str) -> str:
        pick = self.random
        for _ in range(pick.randint(1, 3)):
            at = pick.randrange(len(text) + 1)
            match pick.randrange(3):
                case 0:
                    text = text[:at] + text[at + 1 :]
                case 1:
                    text = text[:at] or "["
                case _:
                    text = text[:at] + pick.choice(_NOISE) + text[at + pick.randrange(2) :]
        return text


SHAPE: Any = {
    "a": lambda pick: pick.choice([pick.randint(-(2**63), 2**63 - 1), 1.0, 2.5]),
    "b": lambda pick: "".join(pick.choice('ab"\\é') for _ in range(pick.randint(0, 90))),
    "c": {
        "d": lambda pick: pick.randint(-40000, 40000),
        "e": {"f": lambda _: "f", "g": lambda pick: pick.randint(-(10**6), 10**6) / 1000},
        "k1": lambda _: "k",
    },
    "h": lambda pick: pick.choice([pick.randint(-(10**36), 10**36), pick.randint(-999, 999) / 100]),
    "k2": {"z": lambda pick: pick.random() < 0.5},
    "x": lambda pick: pick.choice([1e300, 1e-7, 1.5]),
    "l": [{"p": lambda _: "p", "q": [lambda pick: pick.randint(-5, 5)]}],
}


def batches(documents: list[bytes], size: int) -> Iterator[list[bytes]]:
    """Cut into batches of about `size` bytes."""
    batch: list[bytes] = []
    for document in documents:
        batch.append(document)
        if sum(map(len, batch)) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def check(documents: list[bytes], batch_bytes: int) -> int:
    """Compare all kernels with their twins; returns how many documents were good."""
    reader, again = JsonReader(), VariantReader()
    shredder = Shredder(SCHEMA)
    good = 0
    for batch in batches(documents, batch_bytes):
        tape = read(batch, reader)
        wanted = [expected(document) for document in batch]
        good += sum(tree is not None for tree in wanted)
        variants = write_variant(tape)
        shredded = shredder.shred(tape)
        shredded.validate(full=True)
        copies = again.read(variants)
        for name, found in (
            ("variant_writer", variants),
            ("shredder", unshred_plain(shredded)),
            ("variant_reader", write_variant(copies)),
            ("variant_reader, shredder", unshred_plain(shredder.shred(copies))),
        ):
            for document, tree, result in zip(batch, wanted, trees(found), strict=True):
                assert same(tree, result), (name, document, tree, result)
        texts: Any = write_json(copies)[0]
        for row, text in zip(cast("Any", variants).to_pylist(), texts.to_pylist(), strict=True):
            assert text == (None if row is None else to_json(row["metadata"], row["value"])), row
        assert profile(tape) == profile(copies)
        assert unshred(shredded).equals(unshred_plain(shredded))
        for column in (variants, shredded, *(damaged(variants, len(batch) + n) for n in range(4))):
            assert list(find_problems(column)) == list(problems(column))
        assert profile(tape).rows == sum(tree is not None for tree in wanted)
        check_errors(batch, tape)
        del tape
    return good


def check_errors(batch: list[bytes], tape: Tape) -> None:
    """Compare what is said of the documents that are bad, one by one and all at once."""
    rows = np.flatnonzero(tape.status)
    lengths = np.array([len(document) for document in batch], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    text = np.frombuffer(b"\n".join(batch) + bytes(PADDING), np.uint8)
    starts, ends = (ends - lengths)[rows], ends[rows]
    found = mistakes_of(text, starts, ends, tape.position[rows])
    messages, numbers = reasons(text, starts, ends, found)
    places = zip(found.at.tolist(), found.line.tolist(), found.column.tolist(), strict=True)
    for row, number, place in zip(rows.tolist(), numbers.tolist(), places, strict=True):
        try:
            parse_json(batch[row])
        except VariantLakeError as error:
            wanted = error
        one = json_error(batch[row], int(tape.status[row]), int(tape.position[row]))
        assert facts(one) == facts(wanted), batch[row]
        assert (messages[number], place) == (
            wanted.message, (wanted.offset, wanted.line, wanted.column)
        ), batch[row]  # fmt: skip


def facts(error: VariantLakeError) -> object:
    """All that an error of a document says."""
    return (
        type(error), error.message, error.offset, error.line, error.column, error.path, error.hint
    )  # fmt: skip


def damaged(variants: pa.StructArray, seed: int) -> pa.StructArray:
    """The rows with a bit of metadata or value flipped in each."""
    chance = random.Random(seed)
    column: Any = variants
    rows = column.to_pylist()
    for row in filter(None, rows):
        part = chance.choice(["metadata", "value"])
        data = bytearray(row[part])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        row[part] = bytes(data)
    return pa.array(rows, VARIANT_TYPE)  # type: ignore[return-value]  # a struct


def main() -> None:
    """Run with a number of documents and a seed."""
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    documents = Documents(seed)(count)
    good = check(documents, 1 << 12)
    text = b"\r\n".join(document for document in documents if b"\n" not in document)
    split_lines(np.frombuffer(text, np.uint8))
    junk = random.Random(seed).randbytes(4096)
    for start in range(len(junk)):
        column_chunks(junk, start, 3)
        header = b"\x15\x00\x15\x08\x15\x08\x2c\x15\x06" + junk[start:]
        places = np.array([0, len(header) - start % 7, 3, -start, 1 << 62, 1], np.int64)
        scratch = np.empty(SLOTS + STACK, np.int64)
        free = np.array([-1, 9], np.int64)
        check_page_headers(np.frombuffer(header, np.uint8), places, free, scratch)
    print(f"{good} of {count} documents are good")  # noqa: T201 - a script's result


if __name__ == "__main__":
    main()
