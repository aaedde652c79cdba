"""Leaks objects that say so when anybody touches them; and checks that what it drops is gone."""

import collections
import ctypes
import sys
import time
import warnings
import weakref

import leakscope

allocate = ctypes.CDLL(None).malloc
allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p


def said(what):
    print("touched:", what)


class Meta(type):
    def __hash__(cls):
        said("hash of a class")
        return type.__hash__(cls)

    def __eq__(cls, other):
        said("== of a class")
        return cls is other

    def __instancecheck__(cls, instance):
        said("isinstance")
        return False

    def __subclasscheck__(cls, kind):
        said("issubclass")
        return False

    def __getattribute__(cls, name):
        if name != "__weakref__":
            said("attribute of a class: " + name)
        return type.__getattribute__(cls, name)


def touchy(base, **namespace):
    def method(name):
        def call(self, *args):
            said(base.__name__ + "." + name)
            raise RuntimeError("touched")

        return call

    names = [
        "__eq__",
        "__hash__",
        "__len__",
        "__bool__",
        "__iter__",
        "__contains__",
        "__getattr__",
        "__getattribute__",
        "__getitem__",
        "__repr__",
        "__str__",
        "__sizeof__",
        "__dir__",
        "__reduce_ex__",
        "__reversed__",
        "__next__",
        "__call__",
        "__index__",
        "__float__",
        "__fspath__",
        "__enter__",
        "__missing__",
    ]
    methods = {name: method(name) for name in names}
    methods["__class__"] = property(lambda self: said("__class__"))
    return Meta("Touchy" + base.__name__, (base,), {**methods, **namespace})


class Slotted:
    __slots__ = ("__weakref__", "payload")

    def __del__(self):
        print("slotted object gone")


class Loud:
    def __init__(self, step):
        self.step = step
        self.payload = bytearray(2000)

    def __del__(self):
        print("gone with step", self.step)


class Plain:
    pass


KINDS = [touchy(object), touchy(list), touchy(dict), touchy(set), touchy(collections.deque)]
kept, registry, columns = [], {}, collections.defaultdict(list)
grower = KINDS[1]()  # a list of a class that answers for itself
table = KINDS[2]()


def step(number, weak_values):
    kept.extend([kind() for kind in KINDS])
    registry["k", number] = [number] * 300
    columns[number % 3].append(bytearray(500))
    list.append(grower, Plain())
    dict.__setitem__(table, number, Plain())
    weak_values[number] = owner = Plain()
    kept.append(owner)
    native = allocate(30_000)
    assert native
    mortal, loud, slotted, cycle = Plain(), Loud(number), Slotted(), Plain()
    cycle.payload = [bytearray(1000)]
    reference = weakref.ref(mortal)
    weakref.finalize(mortal, print, "finalised", number)
    told = weakref.ref(cycle, lambda _: print("weakly told", number))
    in_list = weakref.ref(cycle)
    yield
    # As a generator: its variables are those of a frame that is suspended while we look.
    del mortal, loud, slotted, cycle
    print(number, "dead", reference() is None, in_list() is None, told() is None)
    warnings.warn(f"step {number % 7}", stacklevel=1)


def main(by_clock):
    weak_values = weakref.WeakValueDictionary()
    for number in range(int(sys.argv[1])):
        local = Plain()
        local_reference = weakref.ref(local)
        for _ in step(number, weak_values):
            if by_clock:
                time.sleep(0.01)
            else:
                leakscope.step()
        del local
        print("local dead", local_reference() is None, len(weak_values))
    print("stderr too", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main("clock" in sys.argv))
