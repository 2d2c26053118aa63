"""Places in the sources, named so that moving, renaming and formatting other code moves no place.

A place is a definition, by its qualified name, and a piece of code in it. The definition's module
is looked for, and code is compared as syntax trees: neither files nor lines nor spaces count.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

_IGNORED = frozenset({"ctx", "kind", "type_comment"})
"""Fields of nodes that say where code stands or how it is spelled, not what it is."""

_Slot = tuple[ast.AST, str, int | None]
"""A node, one of its fields, and the place in it where the field is a list."""


def replace_code(package: Path, name: str, old: str, new: str) -> tuple[Path, str]:
    """The file of a definition, and its text with other code in one place of the definition.

    `name` is a function, class, method, field or constant by its qualified name (`Class.method`),
    or one item of a constant (`CONSTANT['key']`). The name of its module comes first where the
    package defines the name more than once (`module.Class.method`).

    `old` is an expression or some statements; `...` in it stands for any one node or, in a list,
    for any number of them. `new` takes the place of what `old` matches.

    The name of a Java class means its file, and `old` and `new` are then texts.

    Raises LookupError unless there is one such definition and one such place in it.
    """
    file = _file_of(package, name)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".java":
        if text.count(old) != 1:
            raise LookupError(f"{name} has {text.count(old)} times: {old}")
        return file, text.replace(old, new)
    tree = ast.parse(text)
    [definition] = (slot for found, slot in _definitions(tree, file.stem) if found == name)
    _replace(definition, name, old, new)
    return file, ast.unparse(tree) + "\n"


def _file_of(package: Path, name: str) -> Path:
    files = _files_by_name(package)[name]
    if len(files) != 1:
        raise LookupError(f"{name} is defined {len(files)} times {[str(file) for file in files]}")
    return files[0]


@cache
def _files_by_name(package: Path) -> defaultdict[str, list[Path]]:
    files = defaultdict[str, list[Path]](list)
    for file in sorted(package.rglob("*.py")):
        for name, _ in _definitions(ast.parse(file.read_text(encoding="utf-8")), file.stem):
            files[name].append(file)
    for file in sorted(package.rglob("*.java")):
        files[file.stem].append(file)
    return files


def _definitions(module: ast.Module, stem: str) -> Iterator[tuple[str, _Slot]]:
    """The names of a module's definitions, each also with the module's own name before it."""
    for name, slot in _members(module, ""):
        yield name, slot
        yield f"{stem}.{name}", slot


def _members(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, _Slot]]:
    for index, node in enumerate(parent.body):
        slot = (parent, "body", index)
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name, slot
                yield from _members(node, f"{prefix}{name}.")
            case ast.FunctionDef(name=name):
                yield prefix + name, slot
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name, slot
                if isinstance(node.value, ast.Dict):
                    for place, key in enumerate(node.value.keys):
                        if isinstance(key, ast.Constant):
                            yield f"{prefix}{name}[{key.value!r}]", (node.value, "values", place)


def _replace(definition: _Slot, name: str, old: str, new: str) -> None:
    try:
        wanted, fresh = [_expression(old)], [_expression(new)]
    except SyntaxError:  # statements
        wanted, fresh = list(ast.parse(old).body), list(ast.parse(new).body)
    found = [slot for slot in _slots(definition) if _matches(slot, wanted)]
    if len(found) != 1:
        raise LookupError(f"{name} has {len(found)} times: {old}")
    node, field, index = found[0]
    if index is None:
        setattr(node, field, fresh[0])
        return
    nodes: list[ast.AST] = getattr(node, field)
    nodes[index : index + len(wanted)] = fresh
    if not nodes:
        nodes.append(ast.Pass())


def _expression(code: str) -> ast.AST:
    return ast.parse(code, mode="eval").body


def _slots(root: _Slot) -> Iterator[_Slot]:
    """A node's own place, and those of all that is in it."""
    yield root
    [top] = _at(root, 1)
    for node in ast.walk(top):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                yield node, field, None
            elif isinstance(value, list):
                yield from ((node, field, index) for index in range(len(value)))


def _at(slot: _Slot, count: int) -> Sequence[ast.AST]:
    """The nodes that stand from a place on."""
    node, field, index = slot
    value = getattr(node, field)
    return [value] if index is None else value[index : index + count]


def _matches(slot: _Slot, wanted: Sequence[ast.AST]) -> bool:
    nodes = _at(slot, len(wanted))
    return len(nodes) == len(wanted) and all(map(_same, nodes, wanted))


def _same(found: object, wanted: object) -> bool:
    """Whether two nodes, or values of their fields, are the same code."""
    if isinstance(wanted, list):
        return isinstance(found, list) and _same_in_order(found, wanted)
    if not isinstance(wanted, ast.AST):
        return type(found) is type(wanted) and found == wanted
    if _is_any(wanted):
        return isinstance(found, ast.expr | ast.stmt)
    return type(found) is type(wanted) and all(
        _same(getattr(found, field), value)
        for field, value in ast.iter_fields(wanted)
        if field not in _IGNORED
    )


def _same_in_order(found: Sequence[object], wanted: Sequence[object]) -> bool:
    if not wanted:
        return not found
    if _is_any(wanted[0]):
        return any(_same_in_order(found[n:], wanted[1:]) for n in range(len(found) + 1))
    return bool(found) and _same(found[0], wanted[0]) and _same_in_order(found[1:], wanted[1:])


def _is_any(wanted: object) -> bool:
    match wanted:
        case ast.Expr(value=ast.Constant(value=value)) | ast.Constant(value=value):
            return value is ...
    return False
