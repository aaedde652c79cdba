"""The one part of the build that `pyproject.toml` cannot say: the walker is written in C.

It is optional: where no C compiler is found the package installs without it, and the walk is done
by `leakscope.observe.heap.twin`, which is slower.
"""

from setuptools import Extension, setup

WALKER = Extension(
    "leakscope.observe.heap._walker",
    sources=["src/leakscope/observe/heap/_walker.c"],
    extra_compile_args=[
        "-std=c11",
        "-O3",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Wno-missing-field-initializers",
        "-Wno-cast-function-type",
    ],
    optional=True,
)

setup(ext_modules=[WALKER])
