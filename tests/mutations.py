"""Whether the tests of the rules notice when a rule is gone.

`python -m tests.mutations` takes the protection of each rule of docs/maintainers/exactness.md out
of a copy of the sources, one small change at a time, and runs the tests that the rule's row names:
one of them has to fail. `--spark` takes instead the changes that only tests with Spark notice;
numbers choose rules. The checkout itself is never changed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.test_exactness import RULES, rules

PACKAGE = Path("src") / "variantlake"
SECONDS = 1800
"""How long the tests of the chosen rules may take."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) \S+?::(\w+.*)$", re.MULTILINE)
_STEADY = ("-p", "no:cacheprovider", "--hypothesis-seed=0")
_PASSED, _SOME_FAILED, _NONE_CHOSEN = 0, 1, 5
"""Exit codes of pytest."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A text of a file of the package, which stands there once, and what takes its place.

    `spark` where only tests with Spark can notice.
    """

    rule: int
    what: str
    file: str
    old: str
    new: str
    spark: bool = False


MUTATIONS = (
    Mutation(
        1, "a guard keeps no error out, locally",
        "scan/conditions.py", "failed & ~false)", "failed)",
    ),
    Mutation(
        1, "Spark's pushdown sees the Variants",
        "spark/scan/dataframe.py",
        'return f"coalesce({column}, {column})"', "return column", spark=True,
    ),
    Mutation(
        1, "files' numbers stand for a column of that name",
        "spark/scan/dataframe.py",
        "unused(FILE_NUMBER, table.stored.names)", "FILE_NUMBER", spark=True,
    ),
    Mutation(
        2, "a group without value and typed_value is taken",
        "parquet/variant/variant_group.py",
        "        if value is None:\n            raise MalformedFile(\n"
        '                f"a group has neither',
        "        if False:\n            raise MalformedFile(\n"
        '                f"a group has neither',
    ),
    Mutation(
        3, "a path in residuals counts as absent",
        "planning/readings.py", "if place.twin or not own.clean:", "if place.twin:",
    ),
    Mutation(
        4, "columns of other types are read together",
        "planning/readings.py", "    stored: ShreddedType\n",
        '    stored: ShreddedType = __import__("dataclasses").field(compare=False)\n',
    ),
    Mutation(
        5, "a twin by case does not matter to planning",
        "planning/readings.py",
        "twin = any(fold_key(name) == folded for name, _ in node.fields)", "twin = folded is None",
    ),
    Mutation(
        5, "folding is lower case",
        "shredding/folding.py",
        'return key.upper().casefold().replace("i\\u0307", "i")', "return key.lower()",
    ),
    Mutation(
        5, "twins by case both become columns",
        "shredding/infer.py",
        "twins.setdefault(fold_key(name), child)", "twins.setdefault(name, child)",
    ),
    Mutation(
        5, "Spark finds fields without regard to case",
        "spark/session/classic_files.py",
        '"spark.sql.caseSensitive": "true"', '"spark.sql.caseSensitive": "false"',
        spark=True,
    ),
    Mutation(
        6, "a dot in a key separates steps",
        "planning/readings.py", "(part for step in path.steps for part in (step, TYPED_VALUE))",
        '(part for step in path.steps for part in (str(step).split(".")[0], TYPED_VALUE))',
    ),
    Mutation(
        6, "keys stand in SQL as names",
        "spark/scan/dataframe.py", 'column = f"{column}[{quote_string(step)}]"',
        'column = f"{column}.{step}"', spark=True,
    ),
    Mutation(
        7, "casts that may overflow are read from columns",
        "planning/exactness.py", "if all_values_fit(stored, target, facts):", "if True:",
    ),
    Mutation(
        7, "a cast that fails stands for variant_get",
        "planning/exactness.py", "if pair in _TRY and not strict:", "if pair in _TRY:",
    ),
    Mutation(
        7, "decimals of any scale are read as integers",
        "planning/exactness.py",
        " and stored.scale <= DOUBLE_SAFE_SCALES.get(target.kind, MAX_PRECISION):", ":",
    ),
    Mutation(
        7, "seconds beyond a timestamp are cast",
        "planning/exactness.py", "if not strict and pair not in _OVERFLOWS_SILENTLY:",
        "if not strict:",
    ),
    Mutation(
        8, "filters go to floats that nobody checked",
        "planning/readings.py",
        "return not is_float or place.inside > 0 or own.plain_floats or own.typed == 0",
        "return is_float or True",
    ),
    Mutation(
        8, "bounds of floats know of NaN",
        "planning/domains.py", "domains.nan[:] = ~bounds.plain_floats", "domains.nan[:] = False",
    ),
    Mutation(
        8, "our writer looks for no NaN",
        "parquet/stats/statistics_collector.py",
        "return self._is_float and not (self._has_nan or self._has_negative_zero)",
        "return self._is_float",
    ),
    Mutation(
        8, "a bound of zero has one sign",
        "delta/stats/stats_reader.py", "return 0.0 if up else -0.0", "return raw",
    ),
    Mutation(
        8, "Spark's pushdown sees ordinary floats",
        "spark/scan/dataframe.py",
        "VariantType | FloatType | DoubleType)", "VariantType)", spark=True,
    ),
    Mutation(
        8, "what NaN fulfils is said to files",
        "spark/scan/pushed_filters.py",
        "(op, isinstance(left, Ref)) in _WITHOUT_NAN", "bool(op)", spark=True,
    ),
    Mutation(
        8, "a zero is said to files",
        "spark/scan/pushed_filters.py",
        "(not math.isnan(value) and value != 0)", "not math.isnan(value)",
        spark=True,
    ),
    Mutation(
        8, "Spark's pushdown sees shredded floats",
        "spark/scan/dataframe.py", "leaf if reading.pushable else hidden(leaf)", "leaf", spark=True,
    ),
    Mutation(
        9, "every path of one file is clean",
        "parquet/stats/facts.py", "return self.residuals == 0 and self.nulls >= 0", "return True",
    ),
    Mutation(
        9, "every path of many files is clean",
        "parquet/stats/fact_columns.py", "(self.residuals == 0) & (self.nulls >= 0)",
        "self.residuals == self.residuals",
    ),
    Mutation(
        9, "a cut maximum of 00 is a Variant null",
        "parquet/stats/facts.py",
        "if high == NULL_VALUE and group.columns[value].max_exact is not False:",
        "if high == NULL_VALUE:",
    ),
    Mutation(
        9, "a residual of unknown bounds is a Variant null",
        "parquet/stats/facts.py",
        "if high == NULL_VALUE and group.columns[value].max_exact is not False:",
        "if high is None or high == NULL_VALUE:",
    ),
    Mutation(
        10, "Spark is thought to know all types",
        "planning/readings.py",
        "            return type_.info.spark\n", "            return True\n",
    ),
    Mutation(
        10, "tags speak of every layout",
        "delta/stats/tags.py", "if variant.is_legacy or variant.has_others:", "if False:",
    ),
    Mutation(
        10, "Spark is thought to know the older layout",
        "planning/plan.py", "legacy or others or not readable_by_spark(schema)",
        "others or not readable_by_spark(schema)",
    ),
    Mutation(
        10, "Spark is thought to know fields beside a Variant's parts",
        "planning/plan.py", "legacy or others or not readable_by_spark(schema)",
        "legacy or not readable_by_spark(schema)",
    ),
    Mutation(
        10, "small files of our kernels are read whole",
        "planning/late_materialization.py", "(late.size < min_bytes and not group.kernels)",
        "late.size < min_bytes",
    ),
    Mutation(
        10, "Spark gets the Variants that it cannot read",
        "spark/scan/dataframe.py", "if self._by_kernels:", "if False:", spark=True,
    ),
    Mutation(
        11, "views stay",
        "spark/session/classic_files.py",
        "self._views.drop(self._java, view)", "del view", spark=True,
    ),
    Mutation(
        11, "settings go to the user's session",
        "spark/session/classic_files.py", "clone = self._user._jsparkSession.cloneSession()",
        "clone = self._user._jsparkSession", spark=True,
    ),
    Mutation(
        12, "elements' residuals do not matter in one file",
        "planning/readings.py",
        "known = own.residuals > 0 or own.clean_inside & place.inside == place.inside",
        "known = True",
    ),
    Mutation(
        12, "elements' residuals do not matter in many files",
        "parquet/stats/fact_columns.py",
        "known = (self.clean_inside & wanted == wanted) | (self.residuals > 0)",
        "known = self.clean_inside == self.clean_inside",
    ),
    Mutation(
        12, "an array's bounds are those of its elements",
        "planning/readings.py", "        if self.place.inside:\n            return BoundColumns",
        "        if False:\n            return BoundColumns",
    ),
    Mutation(
        12, "no footer tells of residuals inside of arrays",
        "parquet/stats/facts.py",
        "return bounds.maximum == NULL_VALUE and chunk.max_exact is not False",
        "return True",
    ),
    Mutation(
        12, "elements are taken by their index alone",
        "spark/scan/dataframe.py",
        'column = f"get({column}, {step})"', 'column = f"{column}[{step}]"',
        spark=True,
    ),
    Mutation(
        13, "nothing is implied",
        "planning/implied.py", "low, high = _wanted(conjunct, ref)", "low, high = None, None",
    ),
    Mutation(
        13, "a fraction that a cast cuts is forgotten",
        "planning/implied.py",
        "exact = (_WIDE.subtract if down else _WIDE.add)(number, unit)", "exact = number",
    ),
    Mutation(
        13, "doubles are exact",
        "planning/implied.py",
        "Decimal(math.nextafter(float(value), -math.inf if down else math.inf))",
        "Decimal(float(value))",
    ),
    Mutation(
        13, "what is implied does not go to files",
        "spark/scan/dataframe.py",
        "where=[*self._implied(), *self._pushed()", "where=[*self._pushed()",
        spark=True,
    ),
    Mutation(
        14, "whole row groups are rebuilt",
        "scan/file_rows.py", "return Rows(self.reader, self.row_group, self.kept[chosen], "
        "self.places[chosen])", "return self",
    ),
    Mutation(
        14, "no rows are found first in Spark",
        "planning/late_materialization.py",
        "usable = [part for part in plan.conjuncts if _finds_rows(part, types)]",
        "usable = list[Predicate]()",
    ),
    Mutation(
        15, "paths are taken for URIs",
        "spark/session/StaticFileIndex.java", "new Path((String) names.get(i))",
        "new Path(java.net.URI.create(((String) names.get(i))))", spark=True,
    ),
    Mutation(
        16, "bounds count without the cast",
        "planning/casts.py", "if stored == requested or stored.kind in _SAME_ORDER:",
        "if True:",
    ),
    Mutation(
        16, "strings order as numbers",
        "planning/casts.py",
        "stored == requested or (stored.kind, requested.kind) == (Kind.FLOAT, Kind.DOUBLE)",
        "True",
    ),
    Mutation(
        16, "a value beyond the asked type is none",
        "planning/domains.py", "nulls if same else nulls | ~(low.fits & high.fits)", "nulls",
    ),
    Mutation(
        16, "no zone is before UTC",
        "planning/domains.py", "RawColumn(low - 1, known)", "RawColumn(low, known)",
    ),
    Mutation(
        16, "no zone is after UTC",
        "planning/domains.py", "RawColumn(high + 1, known)", "RawColumn(high, known)",
    ),
    Mutation(
        17, "a double holds every bigint",
        "planning/literals.py",
        "return narrow.kind in (*_FLOATS, *_EXACT_AS_DOUBLE)", "return True",
    ),
    Mutation(
        17, "decimals have any number of digits",
        "planning/literals.py",
        "ShreddedType(Kind.DECIMAL, precision, scale) if precision <= MAX_PRECISION else None",
        "ShreddedType(Kind.DECIMAL, min(precision, MAX_PRECISION), scale)",
    ),
    Mutation(
        18, "a row comes from one row whatever a SELECT computes",
        "sql/scopes.py", "        if not _is_row_by_row(select):", "        if False:",
    ),
    Mutation(
        18, "samples and pivots do not matter",
        "sql/scopes.py", "not _has_only(table, _PLAIN_TABLE)", "False",
    ),
    Mutation(
        18, "any part of a SELECT is above its WHERE",
        "sql/scopes.py", "        if more := _more(select, _AROUND_WHERE):",
        '        if more := "":',
    ),
    Mutation(
        18, "an ON drops rows of both sides",
        "sql/joins.py", '"LEFT": Join(above=(LEFT,), on=(RIGHT,))',
        '"LEFT": Join(above=(LEFT,), on=_BOTH)',
    ),
    Mutation(
        18, "conditions go to the side that has NULLs",
        "sql/joins.py", '"FULL": Join(above=(), on=())', '"FULL": Join(above=_BOTH, on=())',
    ),
    Mutation(
        18, "a common table is read once",
        "sql/scopes.py", "if self._words[name] != 2 or len(read) != 1 or",
        "if",
    ),
    Mutation(
        18, "conditions go through a LIMIT",
        "spark/query/predicates.py", "self._walk(child, active if passes else ())",
        "self._walk(child, active)", spark=True,
    ),
    Mutation(
        18, "conditions go to both sides of an outer join",
        "spark/query/predicates.py",
        "above = active if side in join.above else ()", "above = active",
        spark=True,
    ),
    Mutation(
        18, "values of a joined side skip rows that have no match",
        "spark/query/join_values.py", 'for large in join_of_plan(join.arguments["joinType"]).on:',
        "for large in (0, 1):", spark=True,
    ),
    Mutation(
        19, "NOT negates `may match`",
        "planning/skipping.py", "[may & 4 | (may & 1) << 1 | (may & 2) >> 1 for may in range(8)]",
        "[may & 4 | (2 if may & 1 else 1) for may in range(8)]",
    ),
    Mutation(
        19, "AND knows no NULL",
        "planning/skipping.py", "        may |= May.NULL\n", "        may |= May.NEVER\n",
    ),
    Mutation(
        19, "bounds that enclose one value are that value",
        "planning/skipping.py",
        "    only = within & domains.exact & equal(low, high)\n    return TRUE * within",
        "    only = within & equal(low, high)\n    return TRUE * within",
    ),
    Mutation(
        20, "collations do not matter",
        "planning/casts.py",
        "ShreddedType.parse(name)", 'ShreddedType.parse(name.split(" collate")[0])',
    ),
    Mutation(
        21, "a cut bound is a value",
        "planning/domains.py", "domains.exact[:] = bounds.minimum_exact & bounds.maximum_exact",
        "domains.exact[:] = True",
    ),
    Mutation(
        21, "a prefix is a text",
        "planning/skipping.py", "[text[:length] for text in", "[text for text in",
    ),
    Mutation(
        21, "a maximum is cut and nothing more",
        "delta/stats/stats_writer.py", "return kept[:-1] + chr(successor)", "return kept",
    ),
    Mutation(
        21, "strings in statistics are whole",
        "delta/stats/file_facts.py",
        "exact = whole and node.type.kind is not Kind.STRING", "exact = whole",
    ),
    Mutation(
        22, "a foreign maximum is exact",
        "delta/stats/stats_reader.py", "return raw + _TRUNCATION", "return raw",
    ),
    Mutation(
        22, "our own maximum is rounded down",
        "delta/stats/stats_writer.py", "-(-count // per_milli) if up else count // per_milli",
        "count // per_milli if up else count // per_milli",
    ),
    Mutation(
        23, "a path without counts is absent",
        "planning/domains.py", "domains.only_nulls(clean & (counts.typed == 0))",
        "domains.only_nulls(clean & (counts.typed <= 0))",
    ),
    Mutation(
        23, "unknown counts are equal",
        "planning/domains.py", "(counts.typed != records) | (counts.typed == UNKNOWN)",
        "(counts.typed != records)",
    ),
    Mutation(
        23, "unknown null counts of a column are all rows",
        "planning/domains.py", "domains.only_nulls((nulls == records) & (nulls > 0))",
        "domains.only_nulls(nulls == records)",
    ),
    Mutation(
        23, "null counts that are not tight are exact",
        "delta/stats/columnar_facts.py", "np.where(informs, counts, UNKNOWN)",
        "np.where(informs | True, counts, UNKNOWN)",
    ),
    Mutation(
        24, "statistics go by the table's names",
        "delta/schema/table_schema.py",
        "            name = item.physical_name if physical else item.name\n"
        "            if isinstance(item.type, StructType):\n"
        "                for path, leaf in",
        "            name = item.name\n"
        "            if isinstance(item.type, StructType):\n"
        "                for path, leaf in",
    ),
    Mutation(
        24, "names of columns are believed where ids count",
        "delta/log/stored_names.py", """if snapshot.properties.get(MODE, "").lower() != "id":""",
        "if True:",
    ),
    Mutation(
        24, "queries are planned by the table's names",
        "spark/query/catalyst_query.py",
        "        use = _by_stored_names(use, table)\n", "", spark=True,
    ),
    Mutation(
        25, "tags of another file are believed",
        "delta/stats/tags.py",
        '        or tags.get(f"{PREFIX}file") != _fingerprint(size, num_records)\n', "",
    ),
    Mutation(
        25, "tags of another version are believed",
        "delta/stats/tags.py", '        or tags.get(f"{PREFIX}version") != VERSION\n', "",
    ),
    Mutation(
        25, "tags of many other files are believed",
        "delta/stats/columnar_facts.py", 'pc.and_(version, pc.equal(self.tag("file"), mark))',
        'pc.and_(version, pc.is_valid(self.tag("file")))',
    ),
    Mutation(
        26, "a commit is not read back",
        "delta/transaction/commit.py",
        "if store.read_range(commit_path(version), 0, len(first_line)) != first_line:", "if False:",
    ),
    Mutation(
        26, "a commit is not looked at again",
        "delta/log/lost_commit_check.py", "if own.txn_id.encode() not in found:", "if False:",
    ),
    Mutation(
        27, "`..` leaves the table",
        "delta/log/file_paths.py",
        "            if not steps:\n"
        "                raise MalformedLog(f\"path {path!r} leaves the table's folder\")\n"
        "            steps.pop()\n",
        "            steps.append(step)\n",
    ),
    Mutation(
        27, "`..` is not looked for in a log",
        "delta/log/file_paths.py", r"|(^|/)\.{1,2}(/|$)|", "|",
    ),
    Mutation(
        27, "the policy about absolute paths is not asked",
        "delta/log/file_paths.py", "if policy is AbsolutePaths.REFUSE and is_absolute(path):",
        "if False:",
    ),
    Mutation(
        31, "residuals do not matter",
        "planning/plan.py", "noted = ~unknown & (variants.notes & LACKING != 0)",
        "noted = ~unknown & False",
    ),
    Mutation(
        31, "files without notes are thought harmless",
        "planning/plan.py", "        noted |= unknown\n", "",
    ),
    Mutation(
        31, "files do not say what residuals hold",
        "kernels/variant/variant_reader.py",
        "(tags - _FIRST_LACKING <= _MORE_LACKING).any()", "False",
    ),
    Mutation(
        33, "decimals that look like integers are integers",
        "shredding/values.py", "return self.integers - self.padded", "return self.integers",
    ),
    Mutation(
        33, "Spark reads Variants whose integers it makes decimals of",
        "planning/plan.py", "noted |= variants.notes & INTEGERS != 0", "pass",
    ),
    Mutation(
        33, "kernels make decimals of integers",
        "parquet/variant/variant_columns.py",
        "return unshred(struct_of(array), self.group.shortest)",
        "return unshred(struct_of(array))",
    ),
    Mutation(
        29, "bounds of a CHAR are those of what is stored",
        "planning/domains.py", "    if ref.char_length:\n", "    if False:\n",
    ),
    Mutation(
        32, "a field has the collation of `variant_get`",
        "spark/query/analysis.py", "    if _collates(analysed):", "    if False:", spark=True,
    ),
    Mutation(
        34, "an anti join's own condition drops rows of its left side",
        "sql/joins.py", '"ANTI": Join(above=(LEFT,), on=(RIGHT,))',
        '"ANTI": Join(above=(LEFT,), on=_BOTH)',
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 where each change was noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("rules", nargs="*", type=int, help="rules, by number; all if none")
    parser.add_argument(
        "--spark", action="store_true", help="the changes that Spark's tests notice"
    )
    options = parser.parse_args(arguments)
    wanted = set(options.rules or RULES)
    chosen = [each for each in MUTATIONS if each.rule in wanted and each.spark == options.spark]
    tests_of = {
        rule: [f"tests/{file}::{name}" for file, name in named] for rule, named in rules().items()
    }
    missed: list[Mutation] = []
    with tempfile.TemporaryDirectory(prefix="variantlake-rules-") as folder:
        copy = _copy(Path(folder))
        for mutation in MUTATIONS:
            changed(copy, mutation)  # raises where the text is not there
        tests = [test for rule in sorted({each.rule for each in chosen}) for test in tests_of[rule]]
        if failing := _first_failing(copy, tests, spark=options.spark):
            raise RuntimeError(f"{failing} without any change")
        for mutation in chosen:
            with _mutated(copy, mutation):
                by = _first_failing(copy, tests_of[mutation.rule], spark=mutation.spark)
            if by is None:
                missed.append(mutation)
            _say(f"{mutation.rule:2} {mutation.what}: {by or 'NOT NOTICED'}")
    touched = {each.rule for each in chosen}
    held = touched - {each.rule for each in missed}
    _say(f"{len(chosen) - len(missed)} of {len(chosen)} changes noticed")
    _say(f"{len(held)} of {len(touched)} rules: the tests noticed each change")
    return 1 if missed else 0


def _first_failing(copy: Path, tests: Sequence[str], *, spark: bool) -> str | None:
    """The first of the tests that fails in the copy; None if all that need Spark, or not, pass."""
    chosen = ["-m", "spark" if spark else "not spark", *tests]
    paths = os.pathsep.join((str(copy / "src"), str(copy)))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", *_STEADY, *chosen],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if run.returncode in (_PASSED, _NONE_CHOSEN):
        return None
    found = _FAILED.search(run.stdout)
    if run.returncode != _SOME_FAILED or found is None:
        raise RuntimeError(f"the tests did not run\n{run.stdout}{run.stderr}")
    return found[1]


def _copy(folder: Path) -> Path:
    """What tests need of the checkout."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("src", "tests", "docs", "examples", "scripts", "benchmarks"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
    shutil.copy2(REPOSITORY / "pyproject.toml", folder)
    return folder


def changed(copy: Path, mutation: Mutation) -> str:
    """The text of a mutation's file in a checkout, changed. Raises LookupError."""
    text = (copy / PACKAGE / mutation.file).read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise LookupError(f"{mutation.file} has not once: {mutation.old!r} ({mutation.what})")
    return text.replace(mutation.old, mutation.new)


@contextlib.contextmanager
def _mutated(copy: Path, mutation: Mutation) -> Iterator[None]:
    file = copy / PACKAGE / mutation.file
    original = file.read_text(encoding="utf-8")
    # Compiled files are told apart by seconds and sizes.
    compiled = Path(importlib.util.cache_from_source(str(file)))
    file.write_text(changed(copy, mutation), encoding="utf-8")
    compiled.unlink(missing_ok=True)
    try:
        yield
    finally:
        file.write_text(original, encoding="utf-8")
        compiled.unlink(missing_ok=True)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
