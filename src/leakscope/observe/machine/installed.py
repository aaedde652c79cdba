"""Folders of installed packages in, versions and builds out. Imports none of them.

Two installations with the same version can be different builds (pip's and conda's torch 1.4 leaked
differently, pytorch#38717), so a build is told beside the version: where it came from, for which
platform, and a fingerprint of the files it consists of.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

WANTED = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "triton", "torchmetrics", "torchao", "numpy"),
        *("scipy", "pandas", "pyarrow", "polars", "lightning", "pytorch-lightning", "transformers"),
        *("accelerate", "datasets", "tokenizers", "peft", "bitsandbytes", "deepspeed", "xformers"),
        *("tensorflow", "tensorflow-cpu", "keras", "jax", "jaxlib", "flax", "ray", "onnxruntime"),
        *("mkl", "intel-openmp", "opencv-python", "opencv-python-headless", "pillow", "h5py"),
        *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    )
)
"""What has been seen to bear on memory, or to differ between machines and matter."""

_METADATA = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*)\.dist-info")
_CONDA = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.json")


class Package(NamedTuple):
    name: str
    version: str
    folder: str
    """Its `.dist-info`."""


def packages_in(roots: Iterable[str], others: Collection[str] = ()) -> dict[str, Package]:
    """The wanted ones, and `others` by the names of their modules; the first folder wins."""
    asked = WANTED | {_normal(name) for name in others}
    found: dict[str, Package] = {}
    for root in roots:
        with suppress(OSError):
            for entry in sorted(os.listdir(root)):
                match = _METADATA.fullmatch(entry)
                if match is not None and (name := _normal(match["name"])) in asked:
                    package = Package(name, match["version"], os.path.join(root, entry))
                    found.setdefault(name, package)
    return found


@cache
def build_of(package: Package) -> str:
    """`pip cp311-cp311-manylinux_2_28_x86_64 1f0c9a2e`: installer, platform, files."""
    return " ".join(_build_words(package)) or "unknown"


def _build_words(package: Package) -> Iterator[str]:
    if conda := _conda_build(package):
        yield f"conda {conda}"
    else:
        with suppress(OSError):
            yield _read(package.folder, "INSTALLER").decode("utf-8", "replace").strip()
    with suppress(OSError):
        tags = re.findall(rb"(?m)^(?:Tag|Build):\s*(\S+)", _read(package.folder, "WHEEL"))
        yield from (tag.decode("ascii", "replace") for tag in tags[:1])
    with suppress(OSError):
        # The list of files with their hashes, without those that differ by where it was installed.
        lines = sorted(
            line
            for line in _read(package.folder, "RECORD").splitlines()
            if b"sha256=" in line and b".dist-info/" not in line and not line.startswith(b"..")
        )
        if lines:
            yield hashlib.sha256(b"\n".join(lines)).hexdigest()[:8]


def _conda_build(package: Package) -> str | None:
    """conda notes its builds in a folder of the environment."""
    environment = re.sub(r"/lib/python3[^/]*/site-packages.*", "", package.folder)
    with suppress(OSError):
        for entry in os.listdir(os.path.join(environment, "conda-meta")):
            match = _CONDA.fullmatch(entry)
            names = {package.name, f"py{package.name}", f"{package.name}-cpu"}
            if match is not None and _normal(match["name"]) in names:
                return match["build"]
    return None


def _read(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
