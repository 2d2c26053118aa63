"""Names of the package: verbs for functions, one class a name, and docstrings that stay true.

`allowed_names.txt` lists classes of one name and bare names from before this test: take away what
you rename, and add none. It also lists words of specifications, other projects and examples.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tests.corpora import REPOSITORY

PACKAGE = REPOSITORY / "src" / "variantlake"
BARE = {"found", "known", "held", "told", "own", "taken", "alone", "used", "look", "given"}
"""Words that say nothing of what they name: a match, a result, a query, a file."""


DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def allowed(kind: str) -> frozenset[str]:
    """The lines of a kind in the list: `class`, `name` or `word`."""
    text = (REPOSITORY / "tests" / "allowed_names.txt").read_text(encoding="utf-8")
    pairs = (line.split() for line in text.splitlines())
    return frozenset(name for of, name in pairs if of == kind)


@cache
def modules() -> dict[str, ast.Module]:
    """Each module's tree, by its dotted name below the package."""
    return {
        file.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", "."): ast.parse(
            file.read_text(encoding="utf-8")
        )
        for file in sorted(PACKAGE.rglob("*.py"))
    }


NODES: dict[int, list[ast.AST]] = {}


def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a module, walked once."""
    if id(tree) not in NODES:
        NODES[id(tree)] = list(ast.walk(tree))
    return NODES[id(tree)]


def classes() -> dict[str, list[str]]:
    """For each name of a class at the top of a module, the modules that define it."""
    found = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return found


def fields_of(node: ast.ClassDef) -> Iterator[str]:
    """The fields that a class declares, and the attributes that its methods set."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
    for target in ast.walk(node):
        is_set = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
        if is_set and ast.unparse(target).startswith("self."):
            yield ast.unparse(target).removeprefix("self.")


def bare_names() -> set[str]:
    """Modules, functions, classes and fields whose whole name is one of the bare words.

    By the last part of their module's name, so that a module may move.
    """
    found = set()
    for path, tree in modules().items():
        module = path.rpartition(".")[2]
        if module.strip("_") in BARE:
            found.add(module)
        for node in nodes(tree):
            name = getattr(node, "name", "") if isinstance(node, DEFINITIONS) else ""
            if name.strip("_").lower() in BARE:
                found.add(f"{module}.{name}")
            if isinstance(node, ast.ClassDef):
                found |= {
                    f"{module}.{node.name}.{name}"
                    for name in fields_of(node)
                    if name.strip("_").lower() in BARE
                }
    return found


FACADES = ("vl", "lake", "Lake", "Table", "parquet")
IDENTIFIER = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")


def words_of(tree: ast.AST) -> set[str]:
    """What a module names: variables, parameters, attributes, and words in its constant texts."""
    words = set()
    for node in nodes(tree):
        for field in ("id", "attr", "arg", "name", "module", "asname"):
            if isinstance(value := getattr(node, field, None), str):
                words |= set(value.split("."))
        words |= set(re.findall(r"\w+", text_of(node)))
    return words


DOCSTRINGS: set[int] = set()


def text_of(node: ast.AST) -> str:
    """A constant text of the code; texts that stand as statements are docstrings."""
    is_text = isinstance(node, ast.Constant) and id(node) not in DOCSTRINGS
    value = getattr(node, "value", None)
    return value if is_text and isinstance(value, str) else ""


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    """Docstrings, of fields and constants too."""
    found = [
        node.value
        for node in nodes(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    DOCSTRINGS.update(map(id, found))
    return found


@cache
def definitions() -> dict[str, set[str]]:
    """For each module, and each class by its bare name, the names that it defines."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules().items():
        for node in tree.body:
            found[module] |= defined_by(node)
            if isinstance(node, ast.ClassDef):
                members = {name for each in node.body for name in defined_by(each)}
                found[node.name] |= members | set(fields_of(node))
    return found


def defined_by(node: ast.stmt) -> set[str]:
    if isinstance(node, DEFINITIONS):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = (name for target in targets for name in ast.walk(target))
    return {name.id for name in names if isinstance(name, ast.Name)}


def is_defined(name: str, words: set[str]) -> bool:
    """Whether a name in a docstring leads to something, from a module with these words."""
    if name in allowed("word") or name in texts():
        return True
    if "." not in name:
        return name in words or name in everywhere() or hasattr(builtins, name)
    home, _, last = name.rpartition(".")
    first = home.partition(".")[0]
    homes = [each for each in definitions() if f".{each}".endswith(f".{home}")]
    if is_module(name) or any(last in definitions()[each] for each in homes):
        return True
    if first in FACADES:
        return last in everywhere()
    # An attribute of something that the module names.
    return first in words and not is_module(first)


def is_module(name: str) -> bool:
    return any(
        f".{module}.".endswith(f".{name}.") or f".{module}.".endswith(f".{name}.__init__.")
        for module in modules()
    )


@cache
def texts() -> frozenset[str]:
    """The constant texts of the package that are one word: names of fields, properties, options."""
    found = set()
    for tree in modules().values():
        docstrings(tree)
        for node in nodes(tree):
            if re.fullmatch(r"[\w.]+", text_of(node)):
                found.add(text_of(node))
    return frozenset(found)


@cache
def everywhere() -> set[str]:
    """Names at the top of modules and in classes, and the modules."""
    names = {name for names in definitions().values() for name in names}
    return names | {part for module in modules() for part in module.split(".")}


def unknown_names() -> set[str]:
    """Names in backticks in docstrings that lead nowhere, with their module."""
    unknown = set()
    for module, tree in modules().items():
        texts = docstrings(tree)
        words = words_of(tree)
        for text in texts:
            for name in IDENTIFIER.findall(str(text.value)):
                if not is_defined(name, words):
                    unknown.add(f"{module}: {name}")
    return unknown


def test_a_name_of_a_class_is_that_of_one_class() -> None:
    repeated = {name: homes for name, homes in classes().items() if len(homes) > 1}
    assert {name: repeated[name] for name in repeated.keys() - allowed("class")} == {}


def test_no_name_is_a_bare_word() -> None:
    assert bare_names() - allowed("name") == set()


def test_names_in_docstrings_lead_somewhere() -> None:
    assert unknown_names() == set()


def test_a_name_that_leads_nowhere_is_noticed() -> None:
    words = {"requested", "delta"}
    assert is_defined("requested", words)
    assert is_defined("delta.log.files.logical_files.FILES", words)
    assert is_defined("Snapshot.location", words)
    assert not is_defined("wanted_of_old", words)
    assert not is_defined("delta.files.FILES", words)
    assert not is_defined("Snapshot.nowhere", words)
