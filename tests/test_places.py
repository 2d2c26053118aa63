"""Mutations find their place by what the code is, and refuse a place that is not the only one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.places import replace_code

CODE = '''
"""A module."""

LIMIT = 3
SIDES = {"LEFT": (0,), "RIGHT": (0,)}


class Reader:
    strict: bool = False

    def read(self, names: list[str], *, low: int) -> list[str]:
        # Comments do not count.
        if self.strict and low > LIMIT:
            raise ValueError(f"{low} is more than {LIMIT}")
        names.sort()
        return [name for name in names if name]


def read(low: int) -> int:
    low = max(low, 0, LIMIT)
    low += 1
    return low
'''

BY_HAND = """
LIMIT = (3)
SIDES = {
    'LEFT': (0, ), 'RIGHT': (0, ),
}
class Reader:
    strict: bool = (False)
    def read(self, names: list[str], *, low: int) -> list[str]:
        if (self.strict
                and low > LIMIT): raise ValueError(f'{low} is more'  f" than {LIMIT}")
        names.sort(); return [
            name for name in names if name  # empty names are none
        ]
def read(low: int) -> int:
    low = max(low,
              0, LIMIT)
    low += 1; return low
"""


def package(folder: Path, code: str = CODE, file: str = "readers.py") -> Path:
    module = folder / file
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(code, encoding="utf-8")
    return folder


def body_of(text: str, name: str) -> str:
    """One definition of a module, as `ast` writes it, so that only the code counts."""
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    ]
    return ast.unparse(found[-1])


@pytest.mark.parametrize("code", [CODE, BY_HAND], ids=["formatted", "by hand"])
@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("Reader.read", ("self.strict and low > LIMIT", "False"), "if False:"),
        ("Reader.read", ("self.strict and ...", "self.strict"), "if self.strict:"),
        ("Reader.read", ("names.sort()", ""), "raise ValueError(...)\n        return"),
        ("Reader.read", ("f'{low} is more than {LIMIT}'", "''"), "raise ValueError('')"),
        ("Reader.read", ("raise ValueError(...)", ""), "low > LIMIT:\n            pass"),
        ("Reader.read", ("low > LIMIT", "low"), "if self.strict and low:"),
        ("Reader.strict", ("False", "True"), "strict: bool = True"),
        ("readers.read", ("max(...)", "low"), "low = low\n"),
        ("readers.read", ("max(low, ...)", "low"), "low = low\n"),
        ("readers.read", ("max(..., LIMIT)", "LIMIT"), "low = LIMIT\n"),
        ("readers.read", ("low = ...\nlow += 1", "low -= 1"), "int:\n    low -= 1\n    return"),
        ("LIMIT", ("3", "4"), "LIMIT = 4\n"),
        ("SIDES['RIGHT']", ("(0,)", "(1,)"), "SIDES = {'LEFT': (0,), 'RIGHT': (1,)}"),
        ("SIDES['LEFT']", ("0", "1"), "SIDES = {'LEFT': (1,), 'RIGHT': (0,)}"),
    ],
)
def test_formatting_does_not_move_a_place(
    tmp_path: Path, code: str, name: str, change: tuple[str, str], expected: str
) -> None:
    file, text = replace_code(package(tmp_path, code), name, *change)
    assert file == tmp_path / "readers.py"
    raised = "raise ValueError(f'{low} is more than {LIMIT}')"
    assert expected.replace("raise ValueError(...)", raised) in text


def test_only_the_place_changes(tmp_path: Path) -> None:
    _, text = replace_code(package(tmp_path), "Reader.read", "names.sort()", "names.clear()")
    expected = CODE.replace("names.sort()", "names.clear()")
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(expected))


def test_a_module_may_move(tmp_path: Path) -> None:
    before = package(tmp_path / "before")
    after = package(tmp_path / "after", file="files/read/sources.py")
    _, text = replace_code(before, "Reader.read", "names.sort()", "")
    file, moved = replace_code(after, "Reader.read", "names.sort()", "")
    assert (file.name, moved) == ("sources.py", text)


def test_other_names_may_change(tmp_path: Path) -> None:
    renamed = CODE.replace("SIDES", "ENDS").replace("strict", "exact").replace("LIMIT", "MOST")
    _, text = replace_code(package(tmp_path, renamed), "Reader.read", "... and low > ...", "False")
    assert "if False:" in body_of(text, "Reader")


@pytest.mark.parametrize(
    ("name", "old", "times"),
    [
        ("readers.read", "low", 4),
        ("Reader.read", "name", 3),
        ("Reader.read", "max(...)", 0),
        ("readers.read", "low = max(low)", 0),
        ("readers.read", "low += True", 0),
        ("LIMIT", "4", 0),
        ("SIDES", "(0,)", 2),
    ],
)
def test_a_place_that_is_not_the_only_one_is_refused(
    tmp_path: Path, name: str, old: str, times: int
) -> None:
    with pytest.raises(LookupError, match=f"^{name} has {times} times: "):
        replace_code(package(tmp_path), name, old, "0")


def test_a_name_that_two_modules_define_needs_its_module(tmp_path: Path) -> None:
    package(tmp_path, "def read() -> int:\n    return 1\n", "others.py")
    folder = package(tmp_path)
    with pytest.raises(LookupError, match=r"^read is defined 2 times "):
        replace_code(folder, "read", "1", "2")
    with pytest.raises(LookupError, match=r"^nowhere[.]read is defined 0 times "):
        replace_code(folder, "nowhere.read", "1", "2")
    file, text = replace_code(folder, "others.read", "1", "2")
    assert (file.name, text) == ("others.py", "def read() -> int:\n    return 2\n")


def test_a_name_that_one_module_defines_twice_is_refused(tmp_path: Path) -> None:
    folder = package(tmp_path, "def read():\n    return 1\n\ndef read():\n    return 2\n")
    with pytest.raises(LookupError, match=r"^read is defined 2 times "):
        replace_code(folder, "read", "1", "3")


def test_places_in_java_are_texts_of_a_class(tmp_path: Path) -> None:
    code = "class Files { int one() { return 1; } int two() { return 1 + 1; } }\n"
    folder = package(tmp_path, code, "files/Files.java")
    file, text = replace_code(folder, "Files", "1 + 1", "2")
    assert (file.name, text) == ("Files.java", code.replace("1 + 1", "2"))
    with pytest.raises(LookupError, match=r"^Files has 2 times: return 1"):
        replace_code(folder, "Files", "return 1", "return 2")
