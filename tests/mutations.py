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

from tests.corpora import REPOSITORY, place
from tests.exactness import RULES, rules
from tests.places import replace_code

PACKAGE = Path("src") / "variantlake"
SECONDS = 1800
"""How long the tests of the chosen rules may take."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) \S+?::(\w+.*)$", re.MULTILINE)
_STEADY = ("-p", "no:cacheprovider", "--hypothesis-seed=0")
_PASSED, _SOME_FAILED, _NONE_CHOSEN = 0, 1, 5
"""Exit codes of pytest."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A place in the package (see `tests.places`), and the code that takes the old one's place.

    `spark` where only tests with Spark can notice.
    """

    rule: int
    what: str
    name: str
    old: str
    new: str
    spark: bool = False


MUTATIONS = (
    Mutation(
        1, "a guard keeps no error out, locally",
        "_all", "np.where(refuted, FALSE, flags)", "flags",
    ),
    Mutation(
        1, "Spark's pushdown sees the Variants",
        "hidden", 'f"coalesce({column}, {column})"', "column", spark=True,
    ),
    Mutation(
        1, "files' numbers stand for a column of that name",
        "dataframe._LayoutGroup.__init__", "unused(FILE_NUMBER, ...)", "FILE_NUMBER", spark=True,
    ),
    Mutation(
        2, "a group without value and typed_value is taken",
        "_parse_node", "value is None", "False",
    ),
    Mutation(
        3, "a path in residuals counts as absent",
        "Reader.absence", "place.twin or not own.clean", "place.twin",
    ),
    Mutation(
        4, "columns of other types are read together",
        "PhysicalColumn",
        "stored: ShreddedType",
        'stored: ShreddedType = __import__("dataclasses").field(compare=False)',
    ),
    Mutation(
        5, "a twin by case does not matter to planning",
        "readings.find_place", "any(...)", "folded is None",
    ),
    Mutation(
        5, "folding is lower case",
        "fold_key", "return ...", "return key.lower()",
    ),
    Mutation(
        5, "twins by case both become columns",
        "_Inferrer._consider_fields",
        "twins.setdefault(fold_key(name), child)", "twins.setdefault(name, child)",
    ),
    Mutation(
        5, "Spark finds fields without regard to case",
        "SETTINGS['spark.sql.caseSensitive']", '"true"', '"false"', spark=True,
    ),
    Mutation(
        6, "a dot in a key separates steps",
        "_physical_steps", "(step, TYPED_VALUE)", '(str(step).split(".")[0], TYPED_VALUE)',
    ),
    Mutation(
        6, "keys stand in SQL as names",
        "dataframe._leaf", 'f"{column}[{quote_string(step)}]"', 'f"{column}.{step}"', spark=True,
    ),
    Mutation(
        7, "casts that may overflow are read from columns",
        "conversion", "all_values_fit(...)", "True",
    ),
    Mutation(
        7, "a cast that fails stands for variant_get",
        "conversion", "pair in _TRY and not strict", "pair in _TRY",
    ),
    Mutation(
        7, "decimals of any scale are read as integers",
        "conversion", "pair in _IN_RANGE and stored.scale <= ...", "pair in _IN_RANGE",
    ),
    Mutation(
        7, "seconds beyond a timestamp are cast",
        "conversion", "not strict and pair not in _OVERFLOWS_SILENTLY", "not strict",
    ),
    Mutation(
        8, "filters go to floats that nobody checked",
        "readings._pushable", "return own.plain_floats", "return True",
    ),
    Mutation(
        39, "filters go to dates and instants of which nothing is known",
        "readings._pushable", "bool(without_moved(leaf, BoundColumns.of([own], leaf))[0])", "True",
    ),
    Mutation(
        39, "files are alike whether or not Spark moves literals among their values",
        "Reader._read_placed", "alike += [without_moved(place.leaf, bounds)]", "pass",
    ),
    Mutation(
        39, "conditions of ours have literals that Spark moves",
        "pushed_filters._is_plain", "not may_move(operand)", "True",
    ),
    Mutation(
        8, "bounds of floats know of NaN",
        "_translated", "~bounds.plain_floats", "False",
    ),
    Mutation(
        8, "our writer looks for no NaN",
        "LeafCollector.plain_floats", "self._is_float and ...", "self._is_float",
    ),
    Mutation(
        8, "a bound of zero has one sign",
        "bound_of", "0.0 if ... else -0.0", "raw",
    ),
    Mutation(
        8, "Spark's pushdown sees ordinary floats",
        "_is_hidden", "VariantType | FloatType | DoubleType", "VariantType", spark=True,
    ),
    Mutation(
        8, "what NaN fulfils is said to files",
        "_is_pushable", "... in _WITHOUT_NAN", "bool(op)", spark=True,
    ),
    Mutation(
        8, "a zero is said to files",
        "pushed_filters._is_plain",
        "not math.isnan(value) and value != 0", "not math.isnan(value)", spark=True,
    ),
    Mutation(
        8, "Spark's pushdown sees shredded floats",
        "_LayoutGroup._path", "leaf if reading.pushable else hidden(leaf)", "leaf", spark=True,
    ),
    Mutation(
        9, "every path of one file is clean",
        "PathFacts.clean", "self.residuals == 0 and self.nulls >= 0", "True",
    ),
    Mutation(
        9, "every path of many files is clean",
        "NodeCounts.clean",
        "(self.residuals == 0) & (self.nulls >= 0)", "self.residuals == self.residuals",
    ),
    Mutation(
        9, "a cut maximum of 00 is a Variant null",
        "_Facts._residuals", "high == NULL_VALUE and ...", "high == NULL_VALUE",
    ),
    Mutation(
        9, "a residual of unknown bounds is a Variant null",
        "_Facts._residuals", "high == NULL_VALUE and ...", "high is None or high == NULL_VALUE",
    ),
    Mutation(
        10, "Spark is thought to know all types",
        "readable_by_spark", "node.type.info.spark", "True",
    ),
    Mutation(
        10, "tags speak of every layout",
        "file_tags", "variant.is_legacy or variant.has_others", "False",
    ),
    Mutation(
        10, "Spark is thought to know the older layout",
        "_kernels_needed", "legacy or others or ...", "others or not readable_by_spark(schema)",
    ),
    Mutation(
        10, "Spark is thought to know fields beside a Variant's parts",
        "_kernels_needed", "legacy or others or ...", "legacy or not readable_by_spark(schema)",
    ),
    Mutation(
        10, "small files of our kernels are read whole",
        "late_materialization._split",
        "late.size < MIN_BYTES and not group.kernels", "late.size < MIN_BYTES",
    ),
    Mutation(
        10, "Spark gets the Variants that it cannot read",
        "_LayoutGroup.frames", "self._by_kernels", "False", spark=True,
    ),
    Mutation(
        11, "names of ours stay",
        "TableNames", "return before;", "return reading.get();", spark=True,
    ),
    Mutation(
        11, "settings go to the user's session",
        "HelperSession.spark",
        "clone_of(self._user)", "self._user", spark=True,
    ),
    Mutation(
        12, "elements' residuals do not matter in one file",
        "Reader.find", "own.residuals > 0 or ...", "True",
    ),
    Mutation(
        12, "elements' residuals do not matter in many files",
        "NodeCounts.with_inside",
        "... | (self.residuals > 0)", "self.clean_inside == self.clean_inside",
    ),
    Mutation(
        12, "an array's bounds are those of its elements",
        "PlacedRows.bounds", "self.place.inside", "False",
    ),
    Mutation(
        12, "no footer tells of residuals inside of arrays",
        "_Facts._only_nulls", "... == NULL_VALUE and ...", "True",
    ),
    Mutation(
        12, "elements are taken by their index alone",
        "dataframe._leaf", 'f"get({column}, {step})"', 'f"{column}[{step}]"', spark=True,
    ),
    Mutation(
        13, "nothing is implied",
        "implied_bounds", "_wanted(...)", "(None, None)",
    ),
    Mutation(
        13, "a fraction that a cast cuts is forgotten",
        "_raw", "(_WIDE.subtract if down else _WIDE.add)(number, ...)", "number",
    ),
    Mutation(
        13, "doubles are exact",
        "_raw", "math.nextafter(float(value), ...)", "float(value)",
    ),
    Mutation(
        13, "what is implied does not go to files",
        "_LayoutGroup._rows",
        "[*self._implied(), *self._pushed(), *self._plan_only_filters()]",
        "[*self._pushed(), *self._plan_only_filters()]", spark=True,
    ),
    Mutation(
        14, "whole row groups are rebuilt",
        "Rows.only", "Rows(...)", "self",
    ),
    Mutation(
        14, "no rows are found first in Spark",
        "plan_late_materialization",
        "[part for part in plan.conjuncts if _finds_rows(...)]", "list[Predicate]()",
    ),
    Mutation(
        15, "paths are taken for URIs",
        "StaticFileIndex",
        "new Path((String) names.get(i))",
        "new Path(java.net.URI.create(((String) names.get(i))))", spark=True,
    ),
    Mutation(
        16, "bounds count without the cast",
        "cast_column", "... or stored.kind in SAME_ORDER", "True",
    ),
    Mutation(
        16, "strings order as numbers",
        "monotone_cast", "... or ... == (Kind.FLOAT, Kind.DOUBLE)", "True",
    ),
    Mutation(
        16, "a value beyond the asked type is none",
        "_translated", "nulls if same else nulls | ...", "nulls",
    ),
    Mutation(
        16, "no zone is before UTC",
        "_days", "low - 1", "low",
    ),
    Mutation(
        16, "no zone is after UTC",
        "_days", "high + 1", "high",
    ),
    Mutation(
        17, "a double holds every bigint",
        "typing._holds", "... in (*_FLOATS, *_EXACT_AS_DOUBLE)", "True",
    ),
    Mutation(
        17, "no integer is compared with what none reaches",
        "typing._is_beyond", "isinstance(value, Decimal)", "False",
    ),
    Mutation(
        17, "decimals have any number of digits",
        "_wider_decimal",
        "... if precision <= MAX_PRECISION else None",
        "ShreddedType(Kind.DECIMAL, min(precision, MAX_PRECISION), scale)",
    ),
    Mutation(
        18, "a row comes from one row whatever a SELECT computes",
        "Scopes._from_above", "other_part(select, _ROW_BY_ROW) or ...", "False",
    ),
    Mutation(
        18, "samples and pivots do not matter",
        "Scopes._pushed_filter", "not _has_only(...)", "False",
    ),
    Mutation(
        18, "any part of a SELECT is above its WHERE",
        "Scopes._pushed_filter", "other_part(..., _AROUND_WHERE)", '""',
    ),
    Mutation(
        18, "an ON drops rows of both sides",
        "JOINS['LEFT']", "(RIGHT,)", "_BOTH",
    ),
    Mutation(
        18, "conditions go to the side that has NULLs",
        "JOINS['FULL']", "Join(above=(), on=())", "Join(above=_BOTH, on=())",
    ),
    Mutation(
        18, "a common table is read once",
        "Scopes._reader", "self._words[...] != 2 or ...", "len(read[0].parts) != 1",
    ),
    Mutation(
        18, "conditions go through a LIMIT",
        "_Finder._walk", "active if passes else ()", "active", spark=True,
    ),
    Mutation(
        18, "conditions go to both sides of an outer join",
        "_Finder._walk_join", "active if side in ... else ()", "active", spark=True,
    ),
    Mutation(
        18, "values of a joined side skip rows that have no match",
        "_of_join", "join_of_plan(...).on", "(0, 1)", spark=True,
    ),
    Mutation(
        19, "NOT negates `may match`",
        "_NOT", "may & 4 | (may & 1) << 1 | (may & 2) >> 1", "may & 4 | (2 if may & 1 else 1)",
    ),
    Mutation(
        19, "AND knows no NULL",
        "_and_of", "may |= May.NULL", "may |= May.NEVER",
    ),
    Mutation(
        19, "bounds that enclose one value are that value",
        "_equal", "within & domains.exact", "within",
    ),
    Mutation(
        21, "any two bounds of strings are one value",
        "_translated", "equal(bounds.minimum, bounds.maximum)", "True",
    ),
    Mutation(
        21, "rows without a text have the one that others have",
        "_run_of_all", "nulls == 0 and ...", "isinstance(bounds.minimum, str)",
    ),
    Mutation(
        20, "collations do not matter",
        "spark_type", "ShreddedType.parse(name)", 'ShreddedType.parse(name.split(" collate")[0])',
    ),
    Mutation(
        21, "a cut bound is a value",
        "_translated", "bounds.minimum_exact & bounds.maximum_exact", "True",
    ),
    Mutation(
        21, "a prefix is a text",
        "bounds._cut", "text[:length]", "text",
    ),
    Mutation(
        21, "a maximum is cut and nothing more",
        "cut_bounds.cut_maximum", "kept[:-1] + chr(...)", "kept",
    ),
    Mutation(
        21, "strings in statistics are whole",
        "file_facts._path", "whole and ... is not Kind.STRING", "whole",
    ),
    Mutation(
        22, "a foreign maximum is exact",
        "bound_of", "raw + TRUNCATION", "raw",
    ),
    Mutation(
        22, "bounds of many files are not a millisecond wider",
        "raw_bounds", "micros + TRUNCATION", "micros",
    ),
    Mutation(
        22, "our own maximum is rounded down",
        "stats_writer._timestamp", "-(-count // per_milli)", "count // per_milli",
    ),
    Mutation(
        23, "a path without counts is absent",
        "_PathDomains._placed", "clean & (counts.typed == 0)", "clean & (counts.typed <= 0)",
    ),
    Mutation(
        23, "unknown counts are equal",
        "_PathDomains._placed", "... | (counts.typed == UNKNOWN)", "counts.typed != records",
    ),
    Mutation(
        23, "unknown null counts of a column are all rows",
        "domains._counted", "(nulls == records) & (nulls > 0)", "nulls == records",
    ),
    Mutation(
        23, "null counts that are not tight are exact",
        "FilesPart.nulls",
        "np.where(informs, counts, UNKNOWN)", "np.where(informs | True, counts, UNKNOWN)",
    ),
    Mutation(
        24, "statistics go by the table's names",
        "StructType.leaves", "item.physical_name if physical else item.name", "item.name",
    ),
    Mutation(
        24, "names of columns are believed where ids count",
        "Snapshot.has_stored_names", '... != "id"', "True",
    ),
    Mutation(
        24, "queries are planned by the table's names",
        "planner._planned", "use = by_stored_names(...)", "", spark=True,
    ),
    Mutation(
        25, "tags of another file are believed",
        "read_tags", 'tags.get(f"{PREFIX}file") != ...', "False",
    ),
    Mutation(
        25, "tags of another version are believed",
        "read_tags", 'tags.get(f"{PREFIX}version") != VERSION', "False",
    ),
    Mutation(
        25, "tags of many other files are believed",
        "FilesPart._believed", "marked == 1",
        "file.starts >= 0",
    ),
    Mutation(
        26, "a commit is not read back",
        "_confirm", "store.read_range(...) != ...", "False",
    ),
    Mutation(
        26, "a commit is not looked at again",
        "lost_commit_check.check", "own.txn_id.encode() not in ...", "False",
    ),
    Mutation(
        27, "`..` leaves the table",
        "file_paths._inside",
        "if not steps:\n    raise MalformedLog(...)\nsteps.pop()", "steps.append(step)",
    ),
    Mutation(
        27, "`..` is not looked for in a log",
        "file_paths._SPECIAL",
        r'r"^/|^$|[%:\x00]|(^|/)\.{1,2}(/|$)|//|/$"', r'r"^/|^$|[%:\x00]|//|/$"',
    ),
    Mutation(
        27, "the policy about absolute paths is not asked",
        "check_absolute", "policy is AbsolutePaths.REFUSE and ...", "False",
    ),
    Mutation(
        31, "residuals do not matter",
        "_kernels_needed", "... & LACKING != 0", "False",
    ),
    Mutation(
        31, "files without notes are thought harmless",
        "_kernels_needed", "noted |= unknown", "",
    ),
    Mutation(
        31, "files do not say what residuals hold",
        "_any_lacking", "(tags - _FIRST_LACKING <= _MORE_LACKING).any()", "False",
    ),
    Mutation(
        40, "Spark reads what it has in another order",
        "_kernels_needed", "... & REORDERED != 0", "False",
    ),
    Mutation(
        40, "Spark gets rows in the order of files",
        "in_spark_order", "return map_leaves(array, _ordered, whole)", "return array",
    ),
    Mutation(
        40, "files do not say in which order their keys are",
        "key_orders.may_differ", "any(map(orders_may_differ, filter(None, ...)))", "False",
    ),
    Mutation(
        33, "decimals that look like integers are integers",
        "ValueNotes.told_apart", "self.integers - self.whole", "self.integers",
    ),
    Mutation(
        33, "Spark reads Variants whose integers it makes decimals of",
        "_kernels_needed", "noted |= notes & INTEGERS != 0", "pass",
    ),
    Mutation(
        33, "kernels make decimals of integers",
        "_VariantColumn.convert", "unshred(struct_of(array), ...)", "unshred(struct_of(array))",
    ),
    Mutation(
        29, "bounds of a CHAR are those of what is stored",
        "domains_of", "if ref.char_length:\n    ...", "pass",
    ),
    Mutation(
        32, "a path of any type is a column",
        "_UseReading._expression", "spark_type(...) is not None", "True", spark=True,
    ),
    Mutation(
        35, "a sum is as far as one row goes",
        "greatest_sum", "farthest * count", "farthest",
    ),
    Mutation(
        35, "sums may leave their type",
        "_sums_stay", "most >= limit", "False", spark=True,
    ),
    Mutation(
        35, "conditions that only Spark evaluates go to tasks",
        "pushed_aggregates._is_exact",
        "all(is_exact(each) for each in conditions)", "True", spark=True,
    ),
    Mutation(
        35, "casts that may fail are no matter",
        "pushed_aggregates._is_plain",
        "conversion.kind is ConversionKind.CAST", "True", spark=True,
    ),
    Mutation(
        35, "rows below a limit are all rows",
        "partial_aggregates._rows_of", "plan.name != 'Project'",
        "plan.name not in ('Project', 'LocalLimit', 'GlobalLimit')", spark=True,
    ),
    Mutation(
        35, "the log's values are all different ones",
        "asked_of_log", "each.distinct", "False", spark=True,
    ),
    Mutation(
        35, "different values of parts are added up",
        "pushed_aggregate", "is_here and found.whole is not None", "found.whole is not None",
        spark=True,
    ),
    Mutation(
        35, "zeros have one hash",
        "_AggregateReader._merging",
        "any((is_floating(each) for each in arguments))", "False", spark=True,
    ),
    Mutation(
        34, "an anti join's own condition drops rows of its left side",
        "JOINS['ANTI']", "(RIGHT,)", "_BOTH",
    ),
    Mutation(
        36, "a page is decoded whatever its checksum says",
        "PageBytes._body", "checksum != NO_CRC and ...", "False",
    ),
    Mutation(
        36, "what a compressed page says of its size is not compared",
        "_of_snappy", "_snappy_size(...) != size", "False",
    ),
    Mutation(
        36, "what follows a page's frame is not looked at",
        "_is_frame", "at + (about & 4) == len(body)", "True",
    ),
    Mutation(
        36, "a page with few of the rows that are left counts as one with none",
        "ChunkPages.needed_pages", "np.diff(...) > 0",
        "np.diff(np.searchsorted(self.places, starts)) > 1",
    ),
    Mutation(
        36, "a dictionary takes entries of the next one",
        "text_entries", "(offsets[ends] + 4 * ends != np.cumsum(sizes)).any()", "False",
    ),
    Mutation(
        36, "chunks of other forms are decoded as one",
        "chunk_pages.joined", "len(alike) > 1", "False",
    ),
    Mutation(
        36, "deleted rows of small files come back",
        "JoinedRows.of", "np.concatenate([each.kept for each in groups])",
        "np.ones(source.starts[-1], np.bool_)",
    ),
    Mutation(
        36, "a path in lists is decoded like any other",
        "pages_of", "leaf.max_repetition", "False",
    ),
    Mutation(
        38, "a stretch counts its deleted rows",
        "Reading._stretched", "found.rows(rows.kept)", "found.rows(np.ones_like(rows.kept))",
    ),
    Mutation(
        38, "no row is asked for the condition",
        "Reading._tasks", "None if is_certain else self.scan.predicate", "None",
    ),
    Mutation(
        38, "NULL is taken for the first entry of a column",
        "Combinations.of", "with_null(array.dictionary)", "array.dictionary",
    ),
    Mutation(
        38, "a combination keeps its deleted rows",
        "Combinations.only", "rows.copy()", "np.ones_like(rows)",
    ),
    Mutation(
        38, "an error counts in a stretch without a row that is left",
        "chosen_alike", "alike.rows(kept) > 0", "np.ones_like(truth.failed)",
    ),
    Mutation(
        38, "sums take a stretch for a row",
        "are_of_stretches", 'each.function in ("count", "min", "max")', "True",
    ),
    Mutation(
        38, "a stretch counts as one row",
        "states._counted", "sizes is None", "True",
    ),
    Mutation(
        37, "rows count that may not fulfil the condition",
        "ExactFacts.matching", "certain &= ~may_fail", "certain &= matching",
    ),
    Mutation(
        37, "deleted rows count",
        "ExactFacts.__init__", "records - deleted", "records",
    ),
    Mutation(
        37, "what is like the last row is left out",
        "up_to", '">=" if order.descending else "<="', '">" if order.descending else "<"',
    ),
    Mutation(
        37, "NULLs come last",
        "up_to", "order.nulls_first and nulls", "False",
    ),
    Mutation(
        37, "NULLs count where they come last",
        "_certain_rows", "facts.rows if order.nulls_first else 0", "facts.rows",
    ),
    Mutation(
        37, "of NULLs any will do although another term decides between them",
        "_alike_rows", "order.sole", "True",
    ),
    Mutation(
        37, "of NULLs any will do where they come last",
        "_alike_rows", "order.nulls_first", "True",
    ),
    Mutation(
        37, "the first term of a text's order is its only one",
        "limit_of", "len(order.expressions) == 1", "True",
    ),
    Mutation(
        37, "the first term of an order is its only one",
        "limits._Limit._order", "len(terms) == 1", "True", spark=True,
    ),
    Mutation(
        8, "NaN is no greater than the greatest bound of its file",
        "_certain_rows", "all_ &= ~found.nan", "all_ &= far.valid",
    ),
    Mutation(
        22, "times in statistics are not cut",
        "ExactFacts.reached", "inside + cut", "inside",
    ),
    Mutation(
        20, "a CHAR is ordered as it is stored",
        "first_rows._is_by_bounds", "ref.char_length", "False",
    ),
    Mutation(
        37, "a limit above other rows is one on the table's",
        "limits._PASSING", '"Filter"', '"Filter", "Distinct", "Aggregate"', spark=True,
    ),
    Mutation(
        37, "an OFFSET skips rows of the condition above it",
        "limits._Limit.read", "if not all_rows:\n    ...", "pass", spark=True,
    ),
    Mutation(
        37, "a name in ORDER BY is a column of the table",
        "limits._meant", "all((_is_of_table(item, names) for item in named))", "True",
    ),
    Mutation(
        37, "a field of a struct is a column of the table",
        "limits._is_of_table", "names.means(item)", "True",
    ),
    Mutation(
        37, "an alias is meant although a star has a column of its name",
        "limits._meant", "stars and _has(columns, column.name.lower())", "False",
    ),
    Mutation(
        37, "what stands before a dot is the table",
        "limits._meant", "_may_be_struct(column.table.lower(), select, columns)", "False",
    ),
    Mutation(
        8, "bounds of floats are values although NaN may be there",
        "ExactFacts._is_reached", "~found.nan", "found.exact",
    ),
    Mutation(
        9, "a path with residuals is counted by its column",
        "_is_total", "isinstance(reading, PhysicalColumn)", "True",
    ),
    Mutation(
        21, "a cut bound is the least value",
        "ExactFacts._is_reached", "found.exact", "found.maximum.valid",
    ),
    Mutation(
        22, "a bound of timestamps is a value",
        "ExactFacts.extreme", "requested.kind not in _REACHED", "False",
    ),
    Mutation(
        23, "deleted rows count",
        "ExactFacts._settled", "(self._whole | (counts == 0) | every)", "True",
    ),
    Mutation(
        1, "an error in a branch that is not taken counts",
        "_chosen", "np.where(here, own, other)", "own | other",
    ),
    Mutation(
        8, "groups tell the two zeros apart",
        "coded", "numbers(array) + 0.0", "numbers(array)",
    ),
    Mutation(
        41, "a session's query may tell where rows lie",
        "AcceleratedReads", "if (tellsPlaces(plan)) leaveOthers();", "", spark=True,
    ),
    Mutation(
        41, "no expression tells where rows lie",
        "AcceleratedReads",
        "if (PLACES.contains(expression.getClass().getSimpleName())) return true;", "", spark=True,
    ),
    Mutation(
        41, "files that may be missing are ours to read",
        "AcceleratedReads", "&& !settings.ignoreMissingFiles() && ", "&& ", spark=True,
    ),
    Mutation(
        41, "broken files are ours to read",
        "AcceleratedReads", " && !settings.ignoreCorruptFiles()", "", spark=True,
    ),
    Mutation(
        41, "a transaction need not see what is read of its table",
        "AcceleratedReads",
        '.equals(call(log, "compositeId"))) {\n                    return null;',
        '.equals(call(log, "compositeId"))) {\n'
        '                    return call(index, "getSnapshot");', spark=True,
    ),
    Mutation(
        41, "a relation has the columns of its table",
        "AcceleratedReads", "if (names.length != relation.output().size()) return false;", "",
        spark=True,
    ),
    Mutation(
        41, "a table has the columns that it had",
        "AcceleratedReads", "snapshots[i] == null || !sameSchema(index, snapshots[i])",
        "snapshots[i] == null", spark=True,
    ),
    Mutation(
        41, "the newest version is read whatever the query names",
        "RulePlanner._open", "table = self._tables.open(location, version)", "pass", spark=True,
    ),
    Mutation(
        41, "any table at the location is the one that was named",
        "RulePlanner._open", "table.snapshot.metadata.id != ...", "False", spark=True,
    ),
    Mutation(
        41, "a version of a table has the same rows for ever",
        "AcceleratedReads",
        'each.put("commit", call(segment, "lastCommitFileModificationTimestamp"));', "", spark=True,
    ),
    Mutation(
        41, "a damaged checkpoint is passed over",
        "RulePlanner._open", 'self._tables.check_checkpoint(table, relation["checkpoint"])', "pass",
        spark=True,
    ),
    Mutation(
        41, "one relation's cached rows are those of all",
        "LakeRelation",
        "((Relation) other).version.equals(version)\n                && ", "", spark=True,
    ),
    Mutation(
        41, "versions of two tables are alike",
        "TableRelation.shown",
        'f"{self.table.location} v{snapshot.version} of {snapshot.metadata.id}"',
        'f"v{snapshot.version}"', spark=True,
    ),
    Mutation(
        42, "no operator looks at whole Variants",
        "_UseReading.visit", "self.need_output(child)", "pass", spark=True,
    ),
    Mutation(
        42, "nobody gets the columns that come out",
        "read_uses", "reading.need_output(plan)", "", spark=True,
    ),
    Mutation(
        42, "nobody gets the columns of a subquery",
        "_UseReading._expression", "self.need_output(node.plan)", "pass", spark=True,
    ),
    Mutation(
        42, "a column by paths may be needed whole",
        "PlanUses.of", "source.view == view and source not in self.whole", "source.view == view",
        spark=True,
    ),
    Mutation(
        42, "a Variant is there if any condition says so",
        "_UseReading._condition", "tested is not None and tested in present", "tested is not None",
        spark=True,
    ),
    Mutation(
        42, "a ROLLUP computes nothing",
        "uses._expanded",
        "any((each.name != 'AttributeReference' or each.expr_id != expr_id for each in column))",
        "False", spark=True,
    ),
    Mutation(
        42, "partial rows stand for rows that are read twice",
        "RuleQuery.of", "read[each.view] == 1", "True", spark=True,
    ),
    Mutation(
        42, "rows of native files have no path",
        "PathSubstitution", "if (found.variant == null) return path;", "if (true) return path;",
        spark=True,
    ),
    Mutation(
        42, "columns come out under other ids",
        "PathSubstitution", "return withIds(turns(before(), plan), plan);",
        "return turns(before(), plan);", spark=True,
    ),
    Mutation(
        42, "a plan need not be whole",
        "AcceleratedReads", "wrong.isDefined() || !isWhole(found)", "wrong.isDefined()", spark=True,
    ),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if each change was noticed."""
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
            changed(copy, mutation)  # raises where the place is not there
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
    corpora = str(place("conformance").parent)  # nothing lies beside the copy
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", *_STEADY, *chosen],
        cwd=copy,
        env={"VARIANTLAKE_CORPORA": corpora, **os.environ, "PYTHONPATH": paths},
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


def changed(checkout: Path, mutation: Mutation) -> tuple[Path, str]:
    """A mutation's file in a checkout, and its text, changed. Raises LookupError."""
    return replace_code(checkout / PACKAGE, mutation.name, mutation.old, mutation.new)


@contextlib.contextmanager
def _mutated(copy: Path, mutation: Mutation) -> Iterator[None]:
    file, text = changed(copy, mutation)
    original = file.read_text(encoding="utf-8")
    # Compiled files are told apart by seconds and sizes.
    compiled = Path(importlib.util.cache_from_source(str(file)))
    file.write_text(text, encoding="utf-8")
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
