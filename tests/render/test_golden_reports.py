"""Each kind of report in each format, as files a reviewer can open."""

from __future__ import annotations

import pytest

import golden
import make_rank_report
import make_report
from leakscope.render import Style, render

_CASES = make_report.CASES | {"ranks": make_rank_report.ranks}

_RECORDING = ".leakscope/20261115-082113-4711"

_DOCUMENTS = {
    "80.txt": ("terminal", Style(width=80, recording=_RECORDING)),
    "120-colour.txt": ("terminal", Style(width=120, has_colour=True, recording=_RECORDING)),
    "60-ascii.txt": ("terminal", Style(width=60, is_ascii=True, recording=_RECORDING)),
    "md": ("markdown", Style()),
    "json": ("json", Style()),
}


@pytest.mark.parametrize("ending", _DOCUMENTS)
@pytest.mark.parametrize("case", _CASES)
def test_report_reads_as_agreed(case: str, ending: str, pytestconfig: pytest.Config) -> None:
    to, style = _DOCUMENTS[ending]
    document = render(_CASES[case](), to, style)
    golden.check(pytestconfig, f"render/{case}.{ending}", document)


_FOR_MACHINES = {
    "sarif": "sarif",
    "github.txt": "github",
    "gitlab.json": "gitlab",
    "junit.xml": "junit",
}


@pytest.mark.parametrize("ending", _FOR_MACHINES)
@pytest.mark.parametrize("case", ["leaking", "growing", "unknown"])
def test_what_code_hosts_are_told(case: str, ending: str, pytestconfig: pytest.Config) -> None:
    document = render(make_report.CASES[case](), _FOR_MACHINES[ending])
    golden.check(pytestconfig, f"render/{case}.{ending}", document)
