"""The report as data, as a page, and in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests import corpora
from tests.cli import command
from variantlake.report import paths as report_paths
from variantlake.report.page import render

HOSTILE = "</script><script>console.error('run')</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Ten versions of ids that ascend; a new path from the sixth on; text that would be HTML."""
    folder = tmp_path_factory.mktemp("report")
    made = vl.Table.create(folder / "t", "event VARIANT, day INT", name=HOSTILE)
    for version in range(10):
        documents = [
            {"id": 100 * version + row, "text": HOSTILE, HOSTILE: row, "kind": f"k{row % 7}"}
            | ({"late": row} if version > 4 else {})
            for row in range(100)
        ]
        source = folder / "source.ndjson"
        source.write_text("\n".join(map(json.dumps, documents)))
        made = made.refresh()
        made.append(vl.ndjson(source))
    return made.refresh()


def test_the_data_tell_what_the_table_is(table: vl.Table) -> None:
    data = table.report().to_dict()
    assert data["format"] == 1
    assert (data["version"], data["files"], data["rows"]) == (10, 10, 1000)
    versions = {each["version"]: each for each in data["versions"]}
    assert [versions[v]["files"] for v in range(11)] == list(range(11))
    assert [versions[v]["rows"] for v in range(11)] == list(range(0, 1001, 100))
    (column,) = data["columns"]
    paths = {each["path"]: each for each in column["paths"]}
    assert paths["$.id"]["typed"] == 1000
    assert (paths["$.id"]["minimum"], paths["$.id"]["maximum"]) == ("0", "999")
    assert paths["$"]["residuals"] == 500  # the rows with a path that has no column
    assert paths["$.late"]["types"] == {"integer": 1.0}
    assert sum(each["bytes_share"] for each in paths.values() if each.get("bytes_share")) <= 1
    skip = {each["path"]: each for each in column["skip"]}
    assert skip["$.id"]["read"] == 1  # no two files overlap
    assert skip["$.kind"]["read"] == 10  # each file holds all of them
    assert next(iter(skip)) == "$.id"
    assert column["drift"][0]["share"] == 0 < column["drift"][-1]["share"]
    (advice,) = column["advice"]
    assert (advice["path"], advice["advice"], advice["type"]) == ("$.late", "add", "BIGINT")
    assert advice["saves_bytes"] > 0
    assert [each["last_version"] for each in column["drift"]] == list(range(1, 11))
    findings = {each["topic"]: each for each in data["health"]}
    assert findings["small files"]["command"] == f"variantlake optimize {table.uri}"
    assert findings["small files"]["severity"] == "info"  # one more would be a warning
    json.dumps(data, allow_nan=False)


def test_values_can_be_left_out(table: vl.Table) -> None:
    text = json.dumps(table.report(examples=False).to_dict()["columns"])
    assert "k0" not in text
    assert re.search(r"\b999\b", text) is None  # times may hold these digits


def test_of_many_files_some_are_counted(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_paths, "MAX_CELLS", 20)
    (column,) = table.report().to_dict()["columns"]
    assert (column["files_known"], column["files_counted"]) == (10, 4)


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_the_bytes_of_files_that_mark_no_variant_are_counted(tmp_path: Path) -> None:
    """Spark 4.0 does not mark them in the file."""
    foreign = corpora.DELTA_TABLES / "spark-shredded-variant-preview-delta"
    shutil.copytree(foreign, tmp_path / "t")
    vl.Table.open(tmp_path / "t").analyze()
    (column,) = vl.Table.open(tmp_path / "t").report().to_dict()["columns"]
    assert column["paths"][0]["bytes_share"] > 0


def test_an_empty_table_and_one_without_variants_have_reports(tmp_path: Path) -> None:
    empty = vl.Table.create(tmp_path / "empty", "event VARIANT").report()
    assert empty.to_dict()["columns"][0]["paths"][0]["path"] == "$"
    assert empty.to_dict()["rows"] == 0
    assert vl.Table.create(tmp_path / "plain", "n INT").report().to_dict()["columns"] == []


def test_nothing_of_the_data_is_html(table: vl.Table) -> None:
    page = table.report().to_html()
    assert HOSTILE not in page
    assert page.count("</script>") == 2
    assert HOSTILE not in table._repr_html_()
    assert json.loads(Data.of(page)) == table.report().to_dict()
    assert "sandbox" in table.report()._repr_html_()


def test_the_page_asks_for_nothing_from_outside(table: vl.Table) -> None:
    page = table.report().to_html().replace(table.uri, "")
    assert not re.search(r"(?:src|href)=[\"'](?!#)", page.replace("srcdoc", ""))
    assert "default-src 'none'" in page
    # The namespace of SVG is a name; nobody asks for it.
    assert re.findall(r"https?://[^\"' ]+", page) == ["http://www.w3.org/2000/svg"]


def test_the_command_writes_a_page_or_json(
    table: vl.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = partial(command.run, monkeypatch, capfd)
    assert "shows version 10" in run("report", table.uri, "-o", tmp_path / "r.html").out
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    asked = run(
        "report", table.uri, "--json",
        "--query", "SELECT event FROM t WHERE event:id::int < 250 AND event:kind::string = 'k1'",
    )  # fmt: skip
    query = json.loads(asked.out)["query"]
    assert query["read"] == 3
    assert query["skipped_by"] == [{"predicate": "event:id::int < 250", "files": 7}]
    assert [each["skipped_by"] for each in query["files"]].count(None) == 3
    assert run("report", table.uri, "--query", "SELECT nothing FROM t").code == 1
    refused = run("report", table.uri, "--query", "SELECT upper(1) FROM t")
    assert "--engine" not in refused.err
    nowhere = run("report", table.uri, "-o", "/nowhere/r.html")
    assert nowhere.err == "Error: /nowhere/r.html: no such file or directory\n"
    assert run("report", table.uri, "-o", "-").out.startswith("<!doctype html>")


# --- In a browser -------------------------------------------------------------------------------


class Data(HTMLParser):
    """The text of the element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.text = False, ""

    @classmethod
    def of(cls, page: str) -> str:
        parser = cls()
        parser.feed(page)
        return parser.text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script" and ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, *tags: str) -> Iterator[dict[str, str | None]]:
        return (attributes for tag, attributes in self.found if tag in tags)


def shown(page: str, folder: Path, *, width: int = 1200, then: str = "") -> str:
    """The page's elements once a browser has drawn it, and run the script `then`."""
    found = subprocess.run(
        [corpora.REPOSITORY / "scripts" / "find_chromium.sh"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        corpora.missing("Chromium")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{then}</script></body>"))
    browser = [
        found.stdout.strip(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={folder / 'browser'}", "--enable-logging=stderr", "--v=0",
        f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(browser, capture_output=True, text=True, check=True, timeout=120)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


def test_a_browser_draws_it_without_an_error_and_filters_can_be_tried(
    table: vl.Table, tmp_path: Path
) -> None:
    then = """
      const value = document.getElementById("column-0-value");
      document.getElementById("column-0-operator").value = "<";
      value.value = "250";
      value.dispatchEvent(new Event("input"));
      const filter = document.getElementById("column-0-filter");
      filter.value = "LATE";
      filter.dispatchEvent(new Event("input"));
      document.body.dataset.wide = document.documentElement.scrollWidth;
    """
    page = shown(table.report().to_html(), tmp_path, width=500, then=then)
    assert "$.id &lt; 250 would read 3 of 10 files." in page
    drawn = page[: page.index('<script type="application/json"')]
    assert "<img" not in drawn
    elements = Elements(page)
    assert int(next(elements.named("body"))["data-wide"] or 0) <= 500  # nothing is cut off
    labels = {each.get("for") for each in elements.named("label")}
    for control in elements.named("input", "select"):
        assert control["id"] in labels
    for image in elements.named("canvas", "svg"):
        assert image.get("aria-label")
    targets = {each.get("id") for _, each in elements.found}
    links = [each["href"] for each in elements.named("a")]
    assert links
    assert all(link and link.startswith("#") and link[1:] in targets for link in links)
    assert "helped by <code>variantlake optimize" in drawn
    paths = drawn[drawn.index("Paths of event") :]
    assert "$.late" in paths
    assert "$.kind" not in paths


@pytest.mark.parametrize("width", [400, 800, 1200, 1920])
def test_no_table_runs_out_of_the_page_and_no_value_makes_a_tall_row(
    table: vl.Table, tmp_path: Path, width: int
) -> None:
    data: dict[str, Any] = dict(table.report().to_dict())
    (column,) = data["columns"]
    long = {**column["paths"][1], "path": f"$.{'deep.' * 60}x", "type": "STRUCT<a: BIGINT>" * 20}
    long |= {"minimum": "least " * 90, "maximum": "most" * 90, "examples": ["example" * 90] * 3}
    data["columns"] = [{**column, "paths": [long] * 3}]
    data["properties"] = {"variantlake.shredding.event": "a_path BIGINT, " * 90}
    then = """
      const frames = [...document.querySelectorAll(".scroll")];
      const out = (frame) => frame.scrollWidth > frame.clientWidth;
      const rows = [...frames[frames.length - 1].querySelectorAll("tbody tr")];
      document.body.dataset.wide = document.documentElement.scrollWidth;
      document.body.dataset.out = frames.filter(out).map((each) => each.ariaLabel).join();
      document.body.dataset.tall = Math.max(...rows.map((row) => row.offsetHeight));
      document.body.dataset.axis = document.querySelector("#versions .axis").innerText;
    """
    page = shown(render(json.dumps(data)), tmp_path, width=width, then=then)
    body = next(Elements(page).named("body"))
    # Chromium draws no window of less than 500.
    assert int(body["data-wide"] or 0) <= max(width, 500)
    out = body["data-out"] or ""
    # On the smallest screens, tables of a few columns scroll within their frames.
    assert "Paths of" not in out if width == 400 else out == ""
    assert int(body["data-tall"] or 0) < (45 if width > 1000 else 400)
    assert "0 bytes" in (body["data-axis"] or "")


def test_ten_thousand_paths_and_many_files_are_drawn_a_part_at_a_time(
    table: vl.Table, tmp_path: Path
) -> None:
    data: dict[str, Any] = dict(table.report().to_dict())
    (column,) = data["columns"]
    many = [{**column["paths"][1], "path": f"$.p{number}"} for number in range(10_000)]
    ids = next(each for each in column["skip"] if each["path"] == "$.id")
    files = 50_000
    wide = {
        **ids,
        "labels": [str(number) for number in range(2 * files)],
        "low": list(range(0, 2 * files, 2)),
        "high": list(range(1, 2 * files, 2)),
    }
    data["columns"] = [{**column, "paths": many, "skip": [wide]}]
    page = shown(render(json.dumps(data)), tmp_path)
    assert page.count("<code>$.p") == 200
    assert "Show 200 more of 10,000" in page
    assert "Without a filter all 50,000 files are read." in page
