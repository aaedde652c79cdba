"""A million steps of nothing, to see what leakscope itself keeps."""

import ctypes
import sys

import leakscope


class Mallinfo2(ctypes.Structure):
    _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]


mallinfo2 = ctypes.PyDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


def in_use():
    info = mallinfo2()
    return info.field4 + info.field7


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


steps = int(sys.argv[1])
readings = []
for step in range(1, steps + 1):
    leakscope.step()
    if step in (steps // 10, steps // 2, steps):
        readings.append((step, rss(), in_use(), sys.getallocatedblocks()))
for reading in readings:
    print(*reading)
