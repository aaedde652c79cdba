"""Read what the frameworks add to a snapshot, at the very moment the program calls `look`.

TF_MOMENTS is `bare` (leakscope is not even imported), `asked` (read if the adapter says that the
moment is safe) or `always`.
"""

import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager

MODE = os.environ.get("TF_MOMENTS", "bare")
reads, nodes = Counter(), Counter()
_busy = threading.local()

if MODE != "bare":
    from leakscope.frameworks.jax_edges import JaxEdges
    from leakscope.frameworks.tensorflow_edges import TensorFlowEdges
    from leakscope.observe.heap.edges import Extras
    from leakscope.observe.heap.walker import walk

    PROVIDERS = (TensorFlowEdges(), JaxEdges())


def look(where):
    """Read now."""
    if MODE == "bare" or getattr(_busy, "is_looking", False):
        return
    _busy.is_looking = True
    try:
        _look(where)
    finally:
        _busy.is_looking = False


def _instances(wanted):
    """Return all of them, as a snapshot finds them."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        return walk(null, [], wanted, None)[3]
    finally:
        os.close(null)


def _look(where):
    ready = []
    for provider in PROVIDERS:
        if provider.wanted():
            why = provider.why_not_now()
            reads[f"{where}: {provider.name}: {why or 'read'}"] += 1
            if not why or MODE == "always":
                ready.append(provider)
    found = _instances(tuple(kind for provider in ready for kind in provider.wanted()))
    for provider in ready:
        extras = Extras()
        provider.read([one for one in found if issubclass(type(one), provider.wanted())], extras)
        for what, reason in extras.skipped.items():
            reads[f"{where}: {provider.name}: skipped {what}: {reason}"] += 1
        nodes[provider.name] += len(extras.nodes)


@contextmanager
def looking_from_a_thread(where):
    """Read again and again from another thread while the block runs."""
    is_over = threading.Event()

    def work():
        while not is_over.wait(0.002):
            look(where)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def tell():
    """Write what was read to stderr; stdout is the program's own."""
    for line, count in sorted(reads.items()):
        print(count, line, file=sys.stderr)
    print("nodes", dict(nodes), file=sys.stderr)


if "tensorflow" in sys.modules:
    # AutoGraph would rewrite it as a part of the program.
    look = sys.modules["tensorflow"].autograph.experimental.do_not_convert(look)
