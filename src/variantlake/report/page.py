"""Render the report as one HTML page without outside resources; no data is read as HTML."""

from __future__ import annotations

from importlib import resources

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that could end the element with the data, or a line of it, with their JSON escapes."""


def render(data: str) -> str:
    """Render the page for `data`, the JSON document of a report."""
    for character, escape in _UNSAFE.items():
        data = data.replace(character, escape)
    files = resources.files("variantlake.report")
    page = files.joinpath("page.html").read_text(encoding="utf-8")
    before, _, page = page.partition("/*STYLE*/")
    middle, _, page = page.partition("/*DATA*/")
    last, _, end = page.partition("/*SCRIPT*/")
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    script = files.joinpath("page.js").read_text(encoding="utf-8")
    return f"{before}{style}{middle}{data}{last}{script}{end}"
