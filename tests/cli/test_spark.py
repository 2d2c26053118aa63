"""The commands that start Spark: in processes of their own, quiet, and with clear errors."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import Outcome, run_in_turn
from tests.corpora import EARTHQUAKES

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark processes")]


FORMS = ("--json", "--explain")
SIMPLE = (
    "SELECT event:properties.mag::double AS mag, event:properties.place::string, "
    "event:geometry, event:properties.net, event:properties.tsunami::int FROM t "
    "WHERE event:properties.mag::double > 5.0 AND event:properties.net::string = 'us'"
)


# What Spark refuses, in which words, and the hint.
REFUSED = {
    "column": ("SELECT id FROM t", "`id` cannot be resolved", "event:a.b[0]"),
    "table": ("SELECT event:id FROM events", "`events` cannot be found", "the table is `t` here"),
    "dot": ("SELECT upper(event.id) FROM t", '"VARIANT"', "event:a.b[0]"),
    "no type": ("SELECT abs(event:id) FROM t", '"VARIANT"', "as in event:a.b::string"),
    "no words": ("SELECT event:id[a] FROM t", "[PARSE_SYNTAX_ERROR]", "event:a.b[0]"),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What each command prints; one JVM serves them, with a session for each."""
    table = tmp_path_factory.mktemp("lake") / "t"
    commands: dict[str, list[object]] = {
        "ingest": ["ingest", "--json", "--max-rows-per-file", 500, EARTHQUAKES, table],
        "bad": ["query", table, "SELECT event:id::nonsense FROM t"],
        **{
            name: ["query", "--engine", "spark", table, text]
            for name, (text, _, _) in REFUSED.items()
        },
    }
    for engine in ("local", "spark"):
        for form in FORMS:
            commands[f"{engine} {form}"] = ["query", form, "--engine", engine, table, SIMPLE]
    return dict(zip(commands, run_in_turn(*commands.values()), strict=True))


def test_a_load_tells_its_counts_and_nothing_else(done: dict[str, Outcome]) -> None:
    load = done["ingest"]
    assert (load.code, load.err) == (0, "")
    result = json.loads(load.out)
    assert (result["rows_written"], result["files_written"], result["version"]) == (1707, 4, 0)


@pytest.mark.parametrize("form", FORMS)
def test_both_engines_print_the_same(done: dict[str, Outcome], form: str) -> None:
    local, spark = done[f"local {form}"], done[f"spark {form}"]
    assert (local.code, spark.code) == (0, 0)
    assert len(local.out.splitlines()) > 5
    assert sorted(local.out.splitlines()) == sorted(spark.out.splitlines())
    for each in (local, spark):
        assert ("skipped" in each.err) == (form == "--explain")


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses_has_a_hint(done: dict[str, Outcome], name: str) -> None:
    found, (_, words, hint) = done[name], REFUSED[name]
    assert (found.code, found.out) == (1, "")
    first, second = found.err.splitlines()
    assert words in first
    assert second.startswith("Hint: ")
    assert hint in second


def test_bad_sql_is_a_sentence(done: dict[str, Outcome]) -> None:
    bad = done["bad"]
    assert (bad.code, bad.out) == (1, "")
    reason, error = bad.err.splitlines()
    assert reason.startswith("Spark was started: ")
    assert error.startswith("Error: ")
    assert "NONSENSE" in bad.err.upper()
    assert "Traceback" not in bad.err
    assert "\tat " not in bad.err
