"""The agent gets into every Python below the program, and the program cannot tell."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from running import PROGRAMS, PYTHON, followed_pids, pids_told, run_plain, run_watched

_OURS = {"sitecustomize", "atexit"}
"""Modules of a bare start that ours adds to: its own name, and one built into the interpreter."""


def _facts(stdout: bytes) -> dict[str, Any]:
    facts = json.loads(stdout)
    assert isinstance(facts, dict)
    return facts


def test_every_kind_of_child_is_followed(tmp_path: Path) -> None:
    """Breaks when a way of making processes loses the bootstrap or the fork hook."""
    ran = run_watched([PROGRAMS / "children.py"], tmp_path)
    assert ran.status == 0, ran.seen
    told = {line.split()[0]: int(line.split()[1]) for line in ran.stdout.decode().splitlines()}
    ways = {f"{m}-{p}" for m in ("fork", "spawn", "forkserver") for p in ("pool", "executor")}
    assert set(told) == ways | {"main", "subprocess", "fork", "fork-of-fork"}
    recording = ran.recording()
    missing = {way for way, pid in told.items() if pid not in followed_pids(recording)}
    assert missing == set()
    by_pid = {start.pid: start for start in recording.starts.values()}
    assert by_pid[told["main"]].kind == "main"
    assert by_pid[told["fork-of-fork"]].parent_pid == told["fork"]


def test_python_that_leaves_the_agent_out_is_named(tmp_path: Path) -> None:
    """Breaks when `python -I/-E/-S` or an emptied environment goes unsaid, or breaks the run."""
    ran = run_watched([PROGRAMS / "unfollowed.py"], tmp_path)
    assert ran.status == 0
    assert ran.stderr == b""
    assert ran.stdout.startswith(b"[0, 0, 0, 0, 0]\n")
    spots = ran.blind_spots()
    for flag, times in (("-I", 2), ("-E", 1), ("-S", 1)):
        assert spots.count(f"(python {flag})") == times, spots
    (scrubbed,) = pids_told(ran.stdout, "scrubbed")
    assert f"inside of process {scrubbed}: a Python that did not load the agent" in spots


@pytest.mark.parametrize(
    "words",
    [
        ["tell_start.py", "--out", "x", "--", "-m"],
        ["-m", "tell_start", "--quiet"],
    ],
    ids=["script", "module"],
)
def test_program_sees_the_start_it_would_have_had(words: list[str], tmp_path: Path) -> None:
    """Breaks when sys.path, argv, modules, flags, descriptors or PYTHONPATH differ for it."""
    (tmp_path / "tell_start.py").write_text((PROGRAMS / "tell_start.py").read_text())
    mine = tmp_path / "mine"
    mine.mkdir()
    env = {"PYTHONPATH": str(mine), "PYTHONWARNINGS": "ignore::ResourceWarning"}
    plain = _facts(run_plain(words, tmp_path, env=env).stdout)
    watched = _facts(run_watched(words, tmp_path, env=env).stdout)
    assert set(watched.pop("modules")) == set(plain.pop("modules")) | _OURS
    assert watched == plain


def test_python_command_is_followed_too(tmp_path: Path) -> None:
    """Breaks when a command (not a script) is started with other words than it was given."""
    code = "import os, sys; print('here', os.getpid(), flush=True); print(sys.argv)"
    ran = run_watched([PYTHON, "-c", code, "-x", "--quiet"], tmp_path)
    (pid,) = pids_told(ran.stdout, "here")
    assert ran.stdout.endswith(b"['-c', '-x', '--quiet']\n")
    assert pid in followed_pids(ran.recording())


def test_empty_pythonpath_stays_empty(tmp_path: Path) -> None:
    """Breaks when PYTHONPATH="" becomes an entry for the working directory."""
    words = [PROGRAMS / "tell_start.py"]
    plain = _facts(run_plain(words, tmp_path, env={"PYTHONPATH": ""}).stdout)
    watched = _facts(run_watched(words, tmp_path, env={"PYTHONPATH": ""}).stdout)
    assert watched["path"] == plain["path"]


# leakscope is a Python program too, with the same PYTHONPATH.
_NOT_IN_OURSELVES = (
    "import sys\nif 'leakscope' in sys.orig_argv: raise ImportError(name='sitecustomize')\n"
)
_SITES = {
    "works": "import sys\nMINE = 'yes'\nprint('site', __name__, sys.path[:1])\n",
    "raises": "print('half way')\nraise ValueError('broken site')\n",
    "fails to import": "import no_such_module_at_all\n",
    "is not Python": "this is not Python\n",
}


@pytest.mark.parametrize("kind", _SITES)
def test_sitecustomize_of_the_user_runs_as_before(kind: str, tmp_path: Path) -> None:
    """Breaks when ours hides the user's own, or changes what happens when it fails."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_NOT_IN_OURSELVES + _SITES[kind])
    script = tmp_path / "which.py"
    script.write_text(
        "import sys\nprint(getattr(sys.modules.get('sitecustomize'), 'MINE', None), sys.path)\n"
    )
    env = {"PYTHONPATH": str(site)}
    plain = run_plain([script], tmp_path, env=env)
    assert run_watched([script], tmp_path, env=env).seen == plain.seen
    if kind == "works":
        assert b"yes" in plain.stdout


def test_usercustomize_of_the_user_runs_as_before(tmp_path: Path) -> None:
    """Breaks when the bootstrap stands in the way of the other start-up module."""
    python: str = getattr(sys, "_base_executable", PYTHON)  # a venv has no user site
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = tmp_path / "base" / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text("print('usercustomize ran')\n")
    ran = run_watched(
        [python, "-c", "print('program')"], tmp_path, env={"PYTHONUSERBASE": str(tmp_path / "base")}
    )
    assert ran.stdout == b"usercustomize ran\nprogram\n", ran.seen


def test_process_without_a_framework_loads_nothing_of_ours(tmp_path: Path) -> None:
    """Breaks when the bootstrap pulls leakscope, msgspec or ctypes into every process."""
    script = tmp_path / "late.py"
    script.write_text(
        "import atexit, json, sys\nprint([m for m in sorted(sys.modules) if 'leakscope' in m])\n"
        "print('msgspec' in sys.modules, 'ctypes' in sys.modules)\n"
    )
    assert run_watched([script], tmp_path).stdout == b"[]\nFalse False\n"


def test_import_of_the_library_is_light(tmp_path: Path) -> None:
    """Breaks when `import leakscope`, or the agent itself, loads a framework or numpy."""
    heavy = ("torch", "tensorflow", "jax", "numpy", "scipy", "rich", "psutil")
    code = f"import sys, leakscope; print([m for m in {heavy} if m in sys.modules])"
    assert run_plain(["-c", code], tmp_path).stdout == b"[]\n"
    code = (
        "import sys, leakscope\nwith leakscope.watch('x'): leakscope.step()\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    assert run_plain(["-c", code], tmp_path).stdout == b"[]\n"


_FAKE_TORCH = """
import importlib.util, sys
found = importlib.util.find_spec("torch")          # a look, as transformers makes one
print(found is not None, "torch" in sys.modules)
import torch
print(torch.__name__, any("leakscope" in m for m in sys.modules))
print([type(finder).__name__ for finder in sys.meta_path if "Torch" in type(finder).__name__])
"""


def test_looking_for_torch_is_not_importing_it(tmp_path: Path) -> None:
    """Breaks when `importlib.util.find_spec("torch")` uses up the hook: transformers does that."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    script = tmp_path / "look.py"
    script.write_text(_FAKE_TORCH)
    assert run_watched([script], tmp_path).stdout == b"True False\ntorch True\n[]\n"


_BROKEN = {
    "raises": "def load():\n    raise OSError('libcudart.so.1 not found')\n\nload()\n",
    "needs a module": "import no_such_library\n",
    "is not Python": "def (:\n",
}


@pytest.mark.parametrize("kind", _BROKEN)
def test_broken_torch_fails_as_it_does_without_us(kind: str, tmp_path: Path) -> None:
    """Breaks when a frame of the bootstrap shows in the traceback of a failing import."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(_BROKEN[kind])
    script = tmp_path / "use.py"
    script.write_text(
        "import traceback\ntry:\n    import torch\nexcept Exception:\n    traceback.print_exc()\n"
        "import torch.nn\n"
    )
    plain = run_plain([script], tmp_path)
    assert b"Traceback" in plain.stderr
    assert plain.status == 1
    assert run_watched([script], tmp_path).seen == plain.seen


@pytest.mark.parametrize("version", ["2.7.18", "3.6.15", "3.8.18", "3.12.1", "3.13.0"])
def test_other_pythons_run_undisturbed(version: str, tmp_path: Path) -> None:
    """Breaks when the bootstrap says a word in a Python that cannot load leakscope."""
    python = Path(os.environ.get("PYENV_ROOT", "/root/.pyenv")) / f"versions/{version}/bin/python"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    script = tmp_path / "fork.py"
    # A live thread of ours would make os.fork warn from 3.12 on, an error here.
    script.write_text(
        "import os, sys\nsys.stdout.write('%s\\n' % (sys.path,)); sys.stdout.flush()\n"
        "pid = os.fork()\nif pid:\n    assert os.waitpid(pid, 0)[1] == 0\n"
        "try:\n    import torch\nexcept ImportError as error:\n    print(type(error).__name__)\n"
    )
    fake = tmp_path / "torch"
    fake.mkdir()
    (fake / "__init__.py").write_text("")
    words = ["-W", "error", str(script)]
    plain = run_watched(["env", "-u", "LEAKSCOPE_RUN_DIR", str(python), *words], tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    ran = run_watched([str(python), *words], again)
    assert ran.seen == plain.seen
    assert ran.stderr == b""
    assert ran.status == 0
    if version >= "3.8":
        assert "main" in {start.kind for start in ran.recording().starts.values()}
        assert "agent in process" in ran.blind_spots()  # msgspec is built for another Python


def test_watch_inside_a_run_is_a_guest(tmp_path: Path) -> None:
    """Breaks when `with leakscope.watch()` in a watched program ends the run's own agent."""
    script = tmp_path / "guest.py"
    script.write_text(
        "import leakscope, time\n"
        "def steps(n):\n    for _ in range(n): leakscope.step(); time.sleep(0.0005)\n"
        "steps(100)\n"
        "with leakscope.watch('ignored') as w: steps(200)\n"
        "print(w.report().steps_from)\n"
        "steps(100)\n"
    )
    ran = run_watched([script], tmp_path)
    assert ran.seen == (0, "api\n", "")
    assert (ran.report["steps"], ran.report["steps_from"]) == (400, "api")
    assert not (tmp_path / "ignored").exists()


def test_command_is_the_one_after_exec(tmp_path: Path) -> None:
    """Breaks when a process seen between fork and exec keeps its parent's command line."""
    shell = f"sleep 0.2; exec {PYTHON} -I -c 'import time; time.sleep(0.7)'"
    ran = run_watched(["sh", "-c", shell], tmp_path)
    assert ran.status == 0
    assert ran.process("main")["command"].startswith(f"{PYTHON} -I -c")
    assert "(python -I)" in ran.blind_spots()
