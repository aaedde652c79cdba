"""Fetch the files of other people that this repository carries, and check what they are.

    python vendor/revendor.py            compare the files with vendor/lock.json
    python vendor/revendor.py --fetch    fetch each package, check it, and write its files

The lock has, for each package of the npm registry, its version, the registry's sha512 of the
archive, and the sha256 of each file that is taken from it. A new version: change it in the lock,
empty its `integrity`, and `--fetch` fills in the rest.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile
import urllib.request
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
LOCK = ROOT / "vendor" / "lock.json"
_REGISTRY = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")


def differences(lock: dict[str, Any]) -> list[str]:
    """Files that are missing, or are not what the lock says."""
    wrong = []
    for package in lock.values():
        for entry in package["files"]:
            path = ROOT / entry["to"]
            if not path.is_file():
                wrong.append(f"{entry['to']}: missing")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
                wrong.append(f"{entry['to']}: changed")
    return wrong


def fetch(name: str, package: dict[str, Any]) -> None:
    """Write the files of one package, and what they are into its entry of the lock."""
    version = package["version"]
    base = name.rpartition("/")[2]
    with urllib.request.urlopen(f"{_REGISTRY}/{name}/-/{base}-{version}.tgz") as answer:
        archive = answer.read()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if package["integrity"] and package["integrity"] != integrity:
        raise SystemExit(f"{name} {version} is not what the lock says: {integrity}")
    package["integrity"] = integrity
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for entry in package["files"]:
            member = files.extractfile(f"package/{entry['from']}")
            if member is None:
                raise SystemExit(f"{name} {version} has no file {entry['from']}")
            content = member.read()
            entry["sha256"] = hashlib.sha256(content).hexdigest()
            path = ROOT / entry["to"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fetch", action="store_true", help="fetch, and write the lock")
    options = parser.parse_args()
    lock = json.loads(LOCK.read_text(encoding="utf-8"))
    if options.fetch:
        for name, package in lock.items():
            fetch(name, package)
        LOCK.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")
    wrong = differences(lock)
    print("\n".join(wrong) or "all files are what vendor/lock.json says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
