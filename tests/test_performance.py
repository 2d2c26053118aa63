"""The pages and pictures on performance are those of benchmarks/results.json."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from benchmarks.page import PAGES, PICTURES, pictures, read_results, render
from benchmarks.pictures import dots, growth
from benchmarks.report import Runs, Section

from tests import corpora


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_a_page_is_made_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert render(text, read_results()) == text


def test_the_pictures_are_made_of_the_results() -> None:
    made = pictures(read_results())
    assert made == {file.name: file.read_text(encoding="utf-8") for file in PICTURES.iterdir()}
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in made:
        assert f"assets/performance/{name}" in pages


def test_a_page_with_a_block_of_nobody_is_refused() -> None:
    with pytest.raises(KeyError):
        render("<!-- benchmark: nothing -->\n<!-- end of benchmark -->", {})


def test_what_others_do_faster_is_listed() -> None:
    rows = {
        "slow": {"Variantlake": Runs([0.4, 0.2, 0.3]), "DuckDB": Runs([0.1])},
        "fast": {"Variantlake": Runs([0.1]), "DuckDB": Runs([0.3])},
        "refused": {"Variantlake": Runs([0.1]), "DuckDB": Runs(failure="no: it cannot")},
    }
    section = Section(("Variantlake", "DuckDB"), rows=rows).to_dict()
    page = "<!-- benchmark: losses -->\n<!-- end of benchmark -->"
    (line,) = [
        line
        for line in render(page, {"sections": {"load": section}}).splitlines()
        if line.startswith("- ")
    ]
    assert line == (
        "- load, slow: DuckDB has 0.10 s, we have 0.30 s (0.20–0.40) (3.0 times as much)."
    )


def test_figures_survive_the_json() -> None:
    section = Section(("a", "b"), "ways", ["x"], {"r": {"a": Runs([1.0], "MB")}}, 3)
    section.rows["r"]["b"] = Runs(failure="no")
    assert Section.from_dict(section.to_dict()).to_dict() == section.to_dict()


def test_pictures_say_in_words_what_they_show() -> None:
    cells = {"Variantlake": Runs([0.1]), "DuckDB": Runs([0.3])}
    svg = ET.fromstring(  # noqa: S314 - our own text
        dots("Loading & more", {"load": cells}, ("Variantlake", "DuckDB"))
    )
    words = {each.tag.rpartition("}")[2]: each.text for each in svg}
    assert words["title"] == "Loading & more"
    assert "load: Variantlake 100 ms, DuckDB 300 ms" in str(words["desc"])
    assert svg.get("role") == "img"
    rows = {f"load, {f}×": {"two cores": Runs([0.1 * f])} for f in (1, 2, 4, 8)}
    text = growth(Section(("two cores",), "ways", rows=rows))
    assert "load: 100 ms at 1×, 200 ms at 2×, 400 ms at 4×, 800 ms at 8×" in text


LOOK = """
const problems = [];
for (const svg of document.querySelectorAll("svg")) {
  const all = svg.getBoundingClientRect();
  if (all.right > innerWidth) problems.push(svg.querySelector("title").textContent + " is cut");
  const boxes = [...svg.querySelectorAll("text")]
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([name, b], i) => {
    if (b.left < all.left || b.right > all.right || b.bottom > all.bottom)
      problems.push(name + " is out");
    if (b.height < 9) problems.push(name + " is small");
    for (const [other, o] of boxes.slice(i + 1))
      if (b.left < o.right && o.left < b.right && b.top + 2 < o.bottom && o.top + 2 < b.bottom)
        problems.push(name + " is over " + other);
  });
}
document.body.innerHTML = "problems: " + JSON.stringify(problems);
"""


def test_a_browser_shows_every_letter_in_its_place(tmp_path: Path) -> None:
    """On a page of 400 pixels, the narrowest that browsers open without a phone's frame."""
    found = subprocess.run(
        [corpora.REPOSITORY / "scripts" / "find_chromium.sh"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        corpora.missing("Chromium")
    style = "<style>body { margin: 0; width: 400px } svg { max-width: 100%; height: auto }</style>"
    page = tmp_path / "page.html"
    body = "".join(pictures(read_results()).values())
    text = f'<meta charset="utf-8">{style}<body>{body}<script>{LOOK}</script>'
    page.write_text(text, encoding="utf-8")
    browser = [
        found.stdout.strip(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={tmp_path / 'browser'}", "--window-size=1200,900", "--dump-dom",
        page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(browser, capture_output=True, text=True, check=True, timeout=120)
    assert "problems: []" in done.stdout
