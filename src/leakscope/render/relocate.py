"""A report whose paths start where a code host wants them to: at the checkout."""

from __future__ import annotations

import os

from msgspec.structs import replace

from leakscope.model import Finding, Report, Site


def relocated(report: Report, directory: str, checkout: str) -> Report:
    """The report with its places told from `checkout`; places outside of it are left out.

    Args:
        directory: where the paths of the report start, the program's working directory.
    """
    return replace(
        report,
        findings=tuple(_moved(finding, directory, checkout) for finding in report.findings),
    )


def _moved(finding: Finding, directory: str, checkout: str) -> Finding:
    return replace(
        finding,
        keeper=_site(finding.keeper, directory, checkout),
        site=_site(finding.site, directory, checkout),
    )


def _site(site: Site | None, directory: str, checkout: str) -> Site | None:
    if site is None:
        return None
    path = os.path.relpath(os.path.join(directory, site.file), checkout)
    is_outside = path == os.pardir or path.startswith(os.pardir + os.sep)
    return None if is_outside else replace(site, file=path)
