"""A real browser without a window: chromium, driven by selenium, as far as tests need one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
AXE = Path(__file__).parent / "vendored" / "axe.min.js"

_GRAVE = ("serious", "critical")


class Browser:
    """One window of chromium; `open` a file, look, and ask what it complained about."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        options = Options()
        options.binary_location = CHROMIUM or ""
        for word in (
            "--headless=new",
            "--no-sandbox",  # tests may run as root, where chromium's sandbox refuses to start
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            f"--window-size={width},{height}",
        ):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))

    def open(self, page: Path) -> None:
        self._log("browser")
        self._log("performance")
        self.driver.get(page.as_uri())

    def ask(self, script: str, *words: object) -> Any:
        """What a function with this body returns in the page."""
        return self.driver.execute_script(script, *words)

    def prefer(self, scheme: str) -> None:
        """As if the system were set to `light` or `dark`."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            # Clicks must not wait for a page that still glides.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def complaints(self) -> list[str]:
        """Errors of the console since the page was opened."""
        return [one["message"] for one in self._log("browser") if one["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened."""
        told = (json.loads(one["message"])["message"] for one in self._log("performance"))
        return [
            one["params"]["request"]["url"]
            for one in told
            if one["method"] == "Network.requestWillBeSent"
        ]

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps people from using the page: serious and worse."""
        self.ask(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done, done);"
        )
        return [
            f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in _GRAVE
            for node in one["nodes"]
        ]

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def show(self, section: str) -> None:
        """Scroll so that this part of the page is below the bar at the top."""
        self.ask("document.getElementById(arguments[0]).scrollIntoView()", section)

    def picture(self, path: Path) -> None:
        """What the window shows, as a PNG."""
        self.driver.save_screenshot(str(path))

    def _log(self, name: str) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call]
        return told

    def close(self) -> None:
        self.driver.quit()


def needs_browser() -> pytest.MarkDecorator:
    """Skips, and says how to get one, where there is no chromium."""
    return pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="no chromium and chromedriver here: `make browser` installs them",
    )
