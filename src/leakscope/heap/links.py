"""Say a path in the words that its programmer would use.

Later stages search the source for `name` in `scope` of `file`, so those are as the source has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from leakscope.heap.code_table import CodeName
from leakscope.heap.groups import Groups
from leakscope.heap.growing import Growing
from leakscope.heap.see_through import ROOT_ROLE, Part
from leakscope.heap.type_table import HeapType
from leakscope.model import Link, LinkKind
from leakscope.record.snapshot_file import EdgeRole

_IS_LIST, _IS_TUPLE, _IS_DICT, _IS_TYPE = (1 << bit for bit in (25, 26, 29, 31))
"""Flags by which CPython marks subclasses of list, tuple, dict and type."""

_CONTAINERS = _IS_LIST | _IS_TUPLE | _IS_DICT
_SUSPENDED = {
    "generator": "generator",
    "coroutine": "coroutine",
    "async_generator": "async generator",
}
_FIXED: dict[int, tuple[str, LinkKind, str]] = {
    EdgeRole.KEY: ("key", LinkKind.ITEM, ""),
    EdgeRole.TYPE: (".__class__", LinkKind.ATTRIBUTE, "__class__"),
    EdgeRole.NAMESPACE: (".__dict__", LinkKind.ATTRIBUTE, "__dict__"),
    EdgeRole.CELL: ("closure", LinkKind.CLOSURE, ""),
    EdgeRole.CLOSURE_TUPLE: ("closure", LinkKind.CLOSURE, ""),
    EdgeRole.CODE: (".__code__", LinkKind.ATTRIBUTE, "__code__"),
    EdgeRole.TRACEBACK: (".__traceback__", LinkKind.TRACEBACK, ""),
    EdgeRole.FRAME: (".tb_frame", LinkKind.TRACEBACK, ""),
    EdgeRole.BACK: (".f_back", LinkKind.TRACEBACK, ""),
    EdgeRole.CONTEXT: (".__context__", LinkKind.ATTRIBUTE, "__context__"),
    EdgeRole.CAUSE: (".__cause__", LinkKind.ATTRIBUTE, "__cause__"),
    EdgeRole.ARGS: (".args", LinkKind.ATTRIBUTE, "args"),
    EdgeRole.BASE: (".base", LinkKind.BASE, ""),
    EdgeRole.ELEMENT: ("[x]", LinkKind.ITEM, ""),
    EdgeRole.CLASS_LINK: ("base class", LinkKind.CLASS, ""),
    EdgeRole.CALLBACK: ("callback of a weak reference", LinkKind.ITEM, ""),
    EdgeRole.STORAGE: ("storage", LinkKind.PAYLOAD, ""),
    EdgeRole.GRAD: (".grad", LinkKind.GRADIENT, "grad"),
    EdgeRole.GRAD_FN: (".grad_fn", LinkKind.GRAPH, ""),
    EdgeRole.NEXT: ("next", LinkKind.GRAPH, ""),
    EdgeRole.SAVED: ("saved", LinkKind.SAVED, ""),
    EdgeRole.VARIABLE: ("variable", LinkKind.GRAPH, ""),
    EdgeRole.VIEW_BASE: ("._base", LinkKind.BASE, ""),
    EdgeRole.HOOK: ("hook", LinkKind.GRAPH, ""),
}
"""(via, kind, name) of references that are the same wherever they are."""


_MODULES = (
    Link("module sys", "module", LinkKind.MODULE, "sys"),
    Link(".modules", "dict", LinkKind.GLOBAL, "modules"),
)
"""Holder of more and more modules."""


class Said(NamedTuple):
    """Something that grows, in words."""

    path: tuple[Link, ...]
    """From a root to the thing that grows, and on to what it keeps."""
    grows_at: int
    """Index in `path` of the thing that grows."""
    item: str
    """One of the things kept."""


def say(growing: Growing) -> Said:
    """The path of something that grows, from the nearest thing that names itself."""
    groups = growing.groups
    speaker = _Speaker(groups)
    links = list(speaker.links(growing.path))
    item = groups.members.addresses[groups.samples[growing.path[growing.item]]]
    shown = growing.addresses[0] if growing.addresses else int(item)
    described = speaker.describe(growing.path[growing.item], shown)
    links[growing.item] = _replace_type(links[growing.item], described)
    if growing.item == 0 and links[0].kind == LinkKind.MODULE:
        return Said((*_MODULES, _as_item(links[0]), *links[1:]), len(_MODULES) - 1, "module")
    first = speaker.first(growing.path[: growing.holder + 1])
    if first > 0:
        links[first] = speaker.by_itself(growing.path[first], links[first])
    return Said(tuple(links[first:]), growing.holder - first, described)


def links_of(groups: Groups, path: Sequence[int]) -> tuple[Link, ...]:
    """A path of groups from a root on, in words."""
    return _Speaker(groups).links(path)


class _Step(NamedTuple):
    """One step of a path: what is reached, from what, and how."""

    group: int
    above: int
    name: str
    owner: HeapType
    """Type of what it is reached from."""


class _Speaker:
    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._files = {module.name: module.file for module in groups.meta.modules}
        self._types = {kind.address: kind for kind in groups.kind_table if kind.address}
        self._array_numbers: dict[int, int] | None = None

    def links(self, path: Sequence[int]) -> tuple[Link, ...]:
        return tuple(self._link(group, path[at - 1] if at else -1) for at, group in enumerate(path))

    def first(self, path: Sequence[int]) -> int:
        """Where a path can begin: the last class or cache on it of which there is one."""
        for at in range(len(path) - 1, 0, -1):
            kind = self._groups.kind(path[at])
            names_itself = self._is_class(kind) or self._is_cache(path[at])
            if names_itself and self._groups.counts[path[at]] == 1:
                return at
        return 0

    def by_itself(self, group: int, link: Link) -> Link:
        """A class or a cache as the beginning of a path."""
        if self._is_cache(group):
            return self._cache(group, link)
        own = self._types.get(self._address(group))
        name = own.qualified_name if own is not None else link.name
        file = self._files.get(own.module, "") if own is not None else link.file
        return Link(f"class {name}", "class", LinkKind.CLASS, name.rpartition(".")[2], file, name)

    def describe(self, group: int, address: int) -> str:
        """What a member of a group is, in a few words."""
        groups = self._groups
        if described := groups.meta.described.get(address):
            return described
        kind = groups.kind(group)
        if self._is_class(kind):
            return "class"
        if self._is_cache(group):
            return "lru_cache"
        if self._array_numbers is None:
            addresses = groups.arrays.addresses.tolist()
            self._array_numbers = {one: at for at, one in enumerate(addresses)}
        number = self._array_numbers.get(address)
        return kind.name if number is None else groups.arrays.describe(number, kind.name)

    # ── one link ──

    def _link(self, group: int, above: int) -> Link:
        role, name = self._groups.label(group)
        shown = self.describe(group, self._address(group))
        if role == ROOT_ROLE:
            return self._root(group, shown)
        step = _Step(group, above, name, self._groups.kind(above))
        if role in _FIXED:
            via, kind, fixed = _FIXED[role]
            if kind is LinkKind.SAVED and name:
                return Link(f"saved {name}", shown, kind, name)
            return Link(via, shown, kind, fixed)
        readers: dict[int, Callable[[_Step, str], Link]] = {
            EdgeRole.NAME: self._named,
            EdgeRole.ATTRIBUTE: self._named,
            EdgeRole.CLOSURE: self._closure,
            EdgeRole.DEFAULT: self._default,
            EdgeRole.GLOBALS: self._globals,
            EdgeRole.SELF: self._self,
            EdgeRole.FUNCTION: self._function,
            EdgeRole.LOCAL: self._local,
        }
        return readers.get(role, self._item)(step, shown)

    def _root(self, group: int, shown: str) -> Link:
        root = self._groups.root_of(group)
        if root.kind == LinkKind.MODULE:
            shown = "module"
        return Link(root.via, shown, root.kind, root.name, root.file, root.scope, root.line)

    def _named(self, step: _Step, shown: str) -> Link:
        """A global, an attribute, or a member of a built-in type."""
        name = step.name
        if not name:
            return Link("(inside)", shown, LinkKind.ITEM)
        if self._is_module(step.above):
            return Link(f".{name}", shown, LinkKind.GLOBAL, name, self._module_file(step.above))
        role, _ = self._groups.label(step.above)
        if role == EdgeRole.GLOBALS:
            code = self._code(self._groups.parents[step.above])
            return Link(f".{name}", shown, LinkKind.GLOBAL, name, code.file)
        owner = step.owner
        if self._is_class(owner):
            own = self._types.get(self._address(step.above))
            _, class_name = self._groups.label(step.above)
            if own is None:
                file = self._files.get(self._module_above(step.above), "")
                return Link(f".{name}", shown, LinkKind.ATTRIBUTE, name, file, class_name)
            owner = own
        if self._is_wrapper(step.above):
            return self._item(step, shown)
        file = self._files.get(owner.module, "")
        return Link(f".{name}", shown, LinkKind.ATTRIBUTE, name, file, owner.qualified_name)

    def _item(self, step: _Step, shown: str) -> Link:
        owner = step.owner
        if owner.full_name == "_contextvars.Context":
            return Link("context variable", shown, LinkKind.ITEM)
        if owner.full_name == "functools.partial":
            code = self._known_code(step.above)
            if code is None:
                return Link("argument of a partial", shown, LinkKind.PARTIAL)
            via = f"argument of partial({code.qualified_name})"
            return Link(
                via, shown, LinkKind.PARTIAL, code.name, code.file, code.qualified_name, code.line
            )
        part = Part(int(self._groups.parts[self._groups.kinds[step.above]]))
        is_container = bool(part & (Part.PLAIN | Part.WRAPPER | Part.WEAK_CONTAINER))
        is_container |= bool(owner.flags & _CONTAINERS) or bool(part & Part.TORCH_MODULE)
        return Link("[x]" if is_container else "(inside)", shown, LinkKind.ITEM)

    def _closure(self, step: _Step, shown: str) -> Link:
        code = self._code(step.above)
        via = f"closure {step.name} of {code.qualified_name}()"
        return self._in_code(via, shown, LinkKind.CLOSURE, step.name, code)

    def _default(self, step: _Step, shown: str) -> Link:
        code = self._code(step.above)
        via = f"default of {step.name} in {code.qualified_name}()"
        return self._in_code(via, shown, LinkKind.DEFAULT, step.name, code)

    def _globals(self, step: _Step, shown: str) -> Link:
        code = self._code(step.above)
        return Link(f"globals of {code.qualified_name}()", shown, LinkKind.GLOBAL, file=code.file)

    def _self(self, step: _Step, shown: str) -> Link:
        code = self._known_code(step.above)
        if code is not None:
            via = f"self of bound method {code.qualified_name}()"
            return self._in_code(via, shown, LinkKind.BOUND, code.name, code)
        if step.owner.name == "builtin_function_or_method":
            return Link(f"self of a bound method of {shown}", shown, LinkKind.BOUND)
        return Link("self of a bound method", shown, LinkKind.BOUND, "__self__")

    def _function(self, step: _Step, shown: str) -> Link:
        code = self._code(step.above)
        if step.owner.name == "partial":
            via = f"function of partial({code.qualified_name})"
            return self._in_code(via, shown, LinkKind.PARTIAL, code.name, code)
        return Link(f"function of bound method {code.qualified_name}()", shown, LinkKind.BOUND)

    def _local(self, step: _Step, shown: str) -> Link:
        """A variable of a function that does not run: suspended, or kept by a traceback."""
        word = _SUSPENDED.get(step.owner.name)
        if word is not None:
            code = self._code(step.above)
            where = f"{word} {code.qualified_name}()"
            via = f"local {step.name} in {where}" if step.name else f"used in {where}"
            return self._in_code(via, shown, LinkKind.GENERATOR, step.name, code)
        code = self._frame_code(step.group)
        word = "finished frame"
        if step.owner.name != "frame":
            word = f"traceback of {step.owner.name}"
        where = f"local {step.name} in " if step.name else ""
        via = f"{word}, {where}{code.qualified_name}()"
        return self._in_code(via, shown, LinkKind.TRACEBACK, step.name, code)

    @staticmethod
    def _in_code(via: str, shown: str, kind: str, name: str, code: CodeName) -> Link:
        return Link(via, shown, kind, name, code.file, code.qualified_name, code.line)

    # ── what a group is ──

    def _address(self, group: int) -> int:
        return int(self._groups.members.addresses[self._groups.samples[group]])

    def _is_class(self, kind: HeapType) -> bool:
        return bool(kind.flags & _IS_TYPE)

    def _is_cache(self, group: int) -> bool:
        return bool(self._groups.parts[self._groups.kinds[group]] & Part.CACHE)

    def _is_wrapper(self, group: int) -> bool:
        return bool(self._groups.parts[self._groups.kinds[group]] & Part.WRAPPER)

    def _is_module(self, group: int) -> bool:
        role, _ = self._groups.label(group)
        if role == ROOT_ROLE:
            return self._groups.root_of(group).kind == LinkKind.MODULE
        return self._groups.kind(group).name == "module"

    def _module_file(self, group: int) -> str:
        role, _ = self._groups.label(group)
        return self._groups.root_of(group).file if role == ROOT_ROLE else ""

    def _module_above(self, group: int) -> str:
        """The name of the module that a path begins at, if it does."""
        while self._groups.parents[group] > 0:
            group = int(self._groups.parents[group])
        return self._groups.root_of(group).name if self._is_module(group) else ""

    # ── code ──

    def _known_code(self, group: int) -> CodeName | None:
        node = int(self._groups.members.nodes[self._groups.samples[group]])
        return self._groups.codes.of_node(node)

    def _code(self, group: int) -> CodeName:
        """Where a function is written; at least the name it is reached by."""
        if group <= 0:
            return CodeName("", "", 0)
        code = self._known_code(group)
        if code is not None:
            return code
        _, name = self._groups.label(group)
        return CodeName(name or "<unknown>", "", 0)

    def _frame_code(self, group: int) -> CodeName:
        members = self._groups.members
        frame = int(members.parents[self._groups.samples[group]])
        code = self._groups.codes.of_node(int(members.nodes[frame])) if frame >= 0 else None
        return code or CodeName("<unknown>", "", 0)

    def _cache(self, group: int, link: Link) -> Link:
        """A `functools.lru_cache`, by the function it wraps."""
        code = self._wrapped_code(group)
        if code is None:
            name = f"{link.scope}.{link.name}".lstrip(".")
            scope = link.scope or link.name
            return Link(
                f"lru_cache of {name}", "lru_cache", LinkKind.CACHE, link.name, link.file, scope
            )
        outer, _, name = code.qualified_name.rpartition(".")
        is_plain = not outer or outer.endswith("<locals>")
        scope = code.qualified_name if is_plain else outer
        via = f"lru_cache of {code.qualified_name}"
        return Link(via, "lru_cache", LinkKind.CACHE, name, code.file, scope, code.line)

    def _wrapped_code(self, group: int) -> CodeName | None:
        """The code of the function below a cache that is its `__wrapped__`."""
        groups = self._groups
        for child in (groups.parents == group).nonzero()[0].tolist():
            if groups.kind(child).name == "function" and (code := self._known_code(child)):
                return code
        return None


def _as_item(link: Link) -> Link:
    return Link("[x]", link.type, LinkKind.ITEM)


def _replace_type(link: Link, described: str) -> Link:
    return Link(link.via, described, link.kind, link.name, link.file, link.scope, link.line)
