"""Write docs/pictures/live.svg: the live view of a real run of examples/train_with_history.py.

python docs/make_live_picture.py
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from leakscope.follow.follower import Follower
from leakscope.follow.screen import View

HERE = Path(__file__).parent
PICTURE = HERE / "pictures" / "live.svg"
SIZE = (118, 34)
LEAKSCOPE = (sys.executable, "-m", "leakscope")
_LIMIT_S = 120.0

# The pages show without a network: whoever has the font sees it, the others another one.
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "train_with_history"
        program = subprocess.Popen(
            [*LEAKSCOPE, "run", "--quiet", "--out", str(directory), "train_with_history.py"],
            cwd=HERE.parent / "examples",
        )
        while not (directory / "run.json").exists():
            time.sleep(0.05)
        picture = asyncio.run(photograph(directory))
        program.wait()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(_FONTS.sub("", picture), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1024:.0f} KiB")


async def photograph(directory: Path) -> str:
    """The view at the first moment at which it has a finding to show."""
    view = View(Follower(str(directory)))
    deadline = time.monotonic() + _LIMIT_S
    async with view.run_test(size=SIZE) as pilot:
        while time.monotonic() < deadline:
            await pilot.pause(0.1)
            seen = view.view
            if seen is not None and seen.report is not None and seen.report.findings:
                await pilot.pause(0.3)
                return view.export_screenshot(title="leakscope top")
    raise SystemExit("the run ended without a finding; there is nothing to show")


if __name__ == "__main__":
    main()
