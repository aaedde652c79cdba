"""What of a machine bears on memory: read from files and from outside, and no secret among it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from leakscope.model import Moment
from leakscope.observe.machine.describe import describe_machine
from leakscope.observe.machine.installed import Package, build_of, packages_in
from leakscope.observe.machine.kernel import kernel_facts
from leakscope.observe.machine.loaded import Loading, libraries_in, read_mapped, record_of
from leakscope.observe.machine.settings import memory_settings


def test_settings_are_chosen_by_name() -> None:
    """Breaks when a variable nobody asked for is recorded, or one that matters is not."""
    environment = {
        "MALLOC_ARENA_MAX": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "OMP_NUM_THREADS": "4",
        "PYTORCH_API_TOKEN": "no",
        "TF_TOKEN_app": "no",
        "MALLOC_KEY": "no",
        "HOME": "no",
        "XLA_FLAGS": "--server=https://me:pass@host",
    }
    chosen = memory_settings(environment)
    assert set(chosen) == {
        "MALLOC_ARENA_MAX",
        "PYTORCH_CUDA_ALLOC_CONF",
        "OMP_NUM_THREADS",
        "XLA_FLAGS",
    }
    assert "pass" not in chosen["XLA_FLAGS"]


def test_this_machine() -> None:
    facts = kernel_facts()
    assert facts["cpu.cores_count"] == str(os.cpu_count())
    assert facts["vm.overcommit_memory"] in ("0", "1", "2")
    assert facts["python.implementation"] == sys.implementation.name
    assert list(facts) == sorted(facts)
    machine = describe_machine(has_builds=True)
    assert machine.facts == facts
    assert set(machine.builds) == set(machine.packages)
    assert "numpy" in machine.packages


def _install(root: pathlib.Path, version: str, digest: str, installer: str = "pip") -> Package:
    folder = root / f"Some_Package-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "INSTALLER").write_text(installer + "\n")
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n")
    record = f"some_package/x.so,sha256={digest},12\n../../bin/tool,sha256={root.name},3\n"
    (folder / "RECORD").write_text(record)
    return packages_in([str(root)], ["some_package"])["some-package"]


def test_a_build_is_its_files_and_not_its_place(tmp_path: pathlib.Path) -> None:
    """Breaks when two builds of one version look the same, or one build differs by its folder."""
    one = _install(tmp_path / "a", "1.4", "abc")
    same = _install(tmp_path / "b", "1.4", "abc")
    other = _install(tmp_path / "c", "1.4", "abd")
    assert one.version == same.version == other.version == "1.4"
    assert build_of(one) == build_of(same) != build_of(other)
    assert build_of(one).startswith("pip cp311-cp311-linux_x86_64 ")


def test_a_build_of_conda_is_named(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "env/lib/python3.11/site-packages"
    package = _install(root, "1.4", "abc", "conda")
    (tmp_path / "env/conda-meta").mkdir()
    (tmp_path / "env/conda-meta/some-package-1.4-py311_h1_0.json").write_text("{}")
    assert build_of(package).startswith("conda py311_h1_0 ")


def test_libraries_that_give_out_memory() -> None:
    paths = [
        "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
        "/v/site-packages/torch/lib/libgomp.so.1",
        "/w/libgomp-a34b3233.so.1.0.0",
        "/v/site-packages/numpy.libs/libscipy_openblas64_-32a4b2a6.so",
        "/usr/lib/libcrypto.so.3",
        "/usr/lib/libc.so.6",
        "/usr/lib/libm.so.6",
    ]
    found = libraries_in(paths)
    assert set(found) == {"jemalloc", "gomp", "gomp (2)", "scipy_openblas64_", "c"}


def test_another_process_is_read_from_outside() -> None:
    """Breaks when what a program has loaded, or was started with, is not what is recorded."""
    code = "import numpy, sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "131072", "MY_SECRET_TOKEN": "x" * 20},
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        mapped = read_mapped(program.pid)
        loading = Loading()
        assert not loading.read_if_due(program.pid, 0.0), "not at the very start"
        assert loading.read_if_due(program.pid, 1.0)
        assert not loading.read_if_due(program.pid, 1.5), "not again so soon"
        assert not loading.read_if_due(program.pid, 9.0), "nothing new"
        program.communicate()
    assert not Loading().read_if_due(program.pid, 1.0), "it has ended"
    assert mapped.settings["MALLOC_TRIM_THRESHOLD_"] == "131072"
    assert "MY_SECRET_TOKEN" not in mapped.settings
    assert "numpy" in mapped.modules
    record = record_of(mapped, "1-2", Moment(0, 0), has_packages=True)
    assert "numpy" in record.packages
    assert set(record.builds) == set(record.packages)
    assert not record_of(mapped, "1-2", Moment(0, 0)).packages
