"""Draw the pictures of the documentation anew, from a real run.

    python docs/make_pictures.py

Watches `zoo/cpu/penalty-log-with-graph`, the program that leaks and the repaired one, makes their
pages and takes what chromium shows of them. `make pictures` does the same.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browsing import Browser  # noqa: E402

_PROGRAM = ROOT / "zoo" / "cpu" / "penalty-log-with-graph"
_PICTURES = ROOT / "docs" / "pictures"
_WIDTH = 1180
_SHOTS = (
    ("report.png", "leaky.html", "light", "verdict", 960),
    ("report-dark.png", "leaky.html", "dark", "verdict", 960),
    ("report-finding.png", "leaky.html", "light", "findings", 660),
    ("report-holders.png", "leaky.html", "light", "holders", 400),
    ("report-compare.png", "both.html", "light", "comparison", 640),
)
"""File, page, colours, the section at the top, height."""


def leakscope(folder: pathlib.Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "leakscope", *words], cwd=folder, check=True)


def main() -> None:
    _PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="leakscope-") as name:
        folder = pathlib.Path(name)
        for program in ("leaky", "fixed"):
            shutil.copy(_PROGRAM / f"{program}.py", folder)
            leakscope(folder, "run", "--quiet", "--out", program, f"{program}.py")
        # The pictures are of the program, not of the machine they were made on.
        leakscope(folder, "report", "--redact-paths", "leaky", "-o", "leaky.html")
        both = ("--compare", "fixed", "-o", "both.html")
        leakscope(folder, "report", "--redact-paths", "leaky", *both)
        browser = Browser()
        try:
            for file, page, scheme, section, height in _SHOTS:
                browser.prefer(scheme)
                browser.resize(_WIDTH, height)
                browser.open(folder / page)
                browser.show(section)
                browser.picture(_PICTURES / file)
                print(f"docs/pictures/{file}")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
