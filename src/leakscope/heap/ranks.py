"""How good a name each edge gives to what it leads to.

A path should be the one that a programmer would say. Some references are real and say nothing: an
instance leads to its class and so to everything that the class knows. They are followed only for
what no better way leads to, so that all that is alive has some path.

- STRONG: variables, attributes, items, closures: how a program says where something is.
- GRAPH_OF_ITEM: the autograd graph of a tensor that has no name of its own, one of many in a
  container. A state that is carried from step to step names the graph that it keeps; the tensors
  in a replay buffer lead into the middle of the same graph.
- IMPORTED: a module's name for a class or a function of another module, and references to modules.
  The class is at home where it was made, and each module is a root by itself.
- WEAK: instance → class, class → base classes, function → globals, frame → the frame below, weak
  reference → its callback. All of these are there because of how Python works.
- OURS: into leakscope. Followed last, and what it leads to is left out.
"""

from __future__ import annotations

import re

import numpy as np

from leakscope.heap.arrays import Booleans, Indices, Numbers, Octets, edges_of
from leakscope.heap.roots import Roots, is_ours
from leakscope.heap.snapshot import IS_MODULE, NAME_MASK, HeapSnapshot
from leakscope.record.snapshot_file import EdgeRole

STRONG, GRAPH_OF_ITEM, IMPORTED, WEAK, OURS = range(5)

_WEAK_ROLES = (
    EdgeRole.TYPE,
    EdgeRole.GLOBALS,
    EdgeRole.BACK,
    EdgeRole.CLASS_LINK,
    EdgeRole.CALLBACK,
)
_NAMING_ROLES = (EdgeRole.NAME, EdgeRole.ATTRIBUTE, EdgeRole.CELL, EdgeRole.LOCAL, EdgeRole.GRAD)
_HISTORY = re.compile(r"_+|_i+|_\d+|_i\d+|_[dio]h|Out|In|last_(value|exc|traceback|type)")
"""Names under which an interactive session keeps what was typed and shown."""


def rank_edges(snapshot: HeapSnapshot, roots: Roots) -> Octets:
    """The rank of each edge."""
    roles = snapshot.roles()
    by_role = np.zeros(256, np.uint8)
    by_role[list(_WEAK_ROLES)] = WEAK
    ranks: Octets = by_role[roles]
    ranks[_graphs_of_items(snapshot, roles, roots)] = GRAPH_OF_ITEM
    homes = _homes(snapshot, roles)
    is_root = np.zeros(snapshot.count, np.bool_)
    is_root[roots.module_nodes()] = True
    by_target = np.zeros(snapshot.count, np.uint8)
    by_target[is_root | _modules_of(snapshot, roles, is_root)] = IMPORTED
    by_target[_our_nodes(snapshot, roots, homes)] = OURS
    np.maximum(ranks, by_target[snapshot.targets], out=ranks)
    _rank_names(snapshot, np.flatnonzero(is_root), homes, ranks)
    return ranks


def _graphs_of_items(snapshot: HeapSnapshot, roles: Octets, roots: Roots) -> Numbers:
    """The edges from tensors without a name to their graphs."""
    edges = np.flatnonzero(roles == EdgeRole.GRAD_FN)
    if not len(edges):
        return edges
    is_named = np.zeros(snapshot.count, np.bool_)
    is_named[snapshot.targets[np.isin(roles, _NAMING_ROLES)]] = True
    for stage in roots.stages:
        is_named[stage.nodes] = True
    sources = np.searchsorted(snapshot.starts, edges, side="right") - 1
    return edges[~is_named[sources]]


def _homes(snapshot: HeapSnapshot, roles: Octets) -> Indices:
    """Of each function and class, the namespace of the module it was made in; else -1."""
    homes = np.full(snapshot.count, -1, np.int32)
    edges = np.flatnonzero(roles == EdgeRole.GLOBALS)
    sources = np.searchsorted(snapshot.starts, edges, side="right") - 1
    homes[sources] = snapshot.targets[edges]
    namespaces = {module.name: module.address for module in snapshot.meta.modules}
    kinds = [kind for kind in snapshot.type_table if kind.address]
    classes = snapshot.find([kind.address for kind in kinds])
    modules = snapshot.find([namespaces.get(kind.module, 0) for kind in kinds])
    for node, module in zip(classes, modules, strict=True):
        if node >= 0:
            homes[node] = module
    return homes


def _modules_of(snapshot: HeapSnapshot, roles: Octets, is_root: Booleans) -> Booleans:
    """Module objects whose namespace is a root."""
    modules = np.flatnonzero(snapshot.flags & IS_MODULE)
    edges, ends = edges_of(snapshot.starts, modules)
    leads = (roles[edges] == EdgeRole.NAMESPACE) & is_root[snapshot.targets[edges]]
    found = np.zeros(snapshot.count, np.bool_)
    found[modules[np.searchsorted(ends, np.flatnonzero(leads), side="right")]] = True
    return found


def _our_nodes(snapshot: HeapSnapshot, roots: Roots, homes: Indices) -> Booleans:
    """leakscope's modules, their classes and functions, and instances of those classes."""
    namespaces = np.zeros(snapshot.count + 1, np.bool_)  # the last is for those without a home
    namespaces[roots.our_module_nodes()] = True
    is_our_type = np.array([is_ours(kind.module) for kind in snapshot.type_table], np.bool_)
    found: Booleans = namespaces[homes] | is_our_type[snapshot.types] | namespaces[:-1]
    return found


def _rank_names(snapshot: HeapSnapshot, namespaces: Numbers, homes: Indices, ranks: Octets) -> None:
    """Lower the rank of a module's names for what is at home elsewhere or what a history keeps."""
    edges, ends = edges_of(snapshot.starts, namespaces)
    owners = namespaces[np.searchsorted(ends, np.arange(len(edges)), side="right")]
    home = homes[snapshot.targets[edges]]
    is_imported = (home >= 0) & (home != owners)
    mains = [module.address for module in snapshot.meta.modules if module.name == "__main__"]
    of_main = np.isin(owners, snapshot.find(mains))
    is_imported[of_main] |= _is_history(snapshot, edges[of_main])
    imported = edges[is_imported]
    ranks[imported] = np.maximum(ranks[imported], IMPORTED)


def _is_history(snapshot: HeapSnapshot, edges: Numbers) -> Booleans:
    numbers = snapshot.names.find(snapshot.labels[edges] & np.uint64(NAME_MASK)).tolist()
    texts = snapshot.names.texts
    return np.array([_HISTORY.fullmatch(texts[number]) is not None for number in numbers], np.bool_)
