"""With and without leakscope a program gives the same results, the same words, the same end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from running import (
    LEAKSCOPE,
    PROGRAMS,
    PYTHON,
    Ran,
    counted,
    environment,
    run_plain,
    run_watched,
    split_stderr,
    steps_of,
)


@pytest.mark.torch
def test_seeded_training_is_bit_identical(tmp_path: Path) -> None:
    """Breaks when watching draws a random number, changes an order, or touches a tensor."""
    plain = run_plain([PROGRAMS / "train_seeded.py"], tmp_path)
    assert plain.status == 0, plain.seen
    assert plain.stdout.count(b"0x") > 160
    ran = run_watched([PROGRAMS / "train_seeded.py"], tmp_path)
    assert ran.seen == plain.seen
    assert (ran.report["steps"], ran.report["steps_from"]) == (160, "optimizer")


@pytest.mark.torch
def test_tracebacks_and_warnings_are_the_programs_own(tmp_path: Path) -> None:
    """Breaks when a frame of ours shows in a traceback, or a line number of a warning moves."""
    plain = run_plain([PROGRAMS / "raises.py"], tmp_path)
    assert plain.status == 1
    assert plain.stderr.count(b"Traceback") >= 9
    ran = run_watched([PROGRAMS / "raises.py"], tmp_path)
    assert (ran.status, ran.stdout) == (plain.status, plain.stdout)
    address = re.compile(r" at 0x[0-9a-f]+>")
    assert address.sub(">", ran.stderr.decode()) == address.sub(">", plain.stderr.decode())


@pytest.mark.torch
def test_compiled_models_compile_as_before(tmp_path: Path) -> None:
    """Breaks when dynamo compiles our functions, breaks a graph at them, or warns about them."""
    plain = run_plain([PROGRAMS / "compiled.py"], tmp_path)
    assert plain.status == 0, plain.seen
    ran = run_watched([PROGRAMS / "compiled.py"], tmp_path)
    assert ran.seen == plain.seen
    recording = ran.recording()
    (main,) = (name for name, start in recording.starts.items() if start.kind == "main")
    assert counted(recording, main) == 20  # steps of the compiled optimizer
    # A module called inside a compiled function has no call of its own left; of the first way,
    # all 60 calls were heard. Rows are some calls apart, so that the last of them may be at 49.
    assert max(steps_of(recording, main, "forward")) >= 30


_ENDINGS = {
    "returns": "print('done')",
    "exit code": "import sys; sys.exit(3)",
    "exit text": "import sys; sys.exit('a last word')",
    "_exit": "import os; print('x', flush=True); os._exit(7)",
    "uncaught": "def f():\n    raise ValueError('who catches me?')\nf()",
    "interrupt": "raise KeyboardInterrupt",
    "at exit": "import atexit, math; atexit.register(math.sqrt, -1); print('x')",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "abort": "import os; os.abort()",
    "user signal": "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)",
    "exec": "import os, sys; os.execv(sys.executable, ['python', '-c', 'raise SystemExit(9)'])",
    "no output": "import os; os.close(1); os.close(2)",
    "write error": "import sys; print('x' * 100); sys.stdout.close(); print('y')",
}


@pytest.mark.parametrize("kind", _ENDINGS)
def test_program_ends_as_it_would_have(kind: str, tmp_path: Path) -> None:
    """Breaks when the caller of `leakscope run` sees another status or other output."""
    script = tmp_path / "end.py"
    script.write_text(_ENDINGS[kind] + "\n")
    plain = run_plain([script], tmp_path)
    ran = run_watched([script], tmp_path)
    assert ran.seen == plain.seen
    assert ran.said.startswith("leakscope: ")
    assert ran.said.count("\n") == 1
    code, number = ran.report["ending"]["exit_code"], ran.report["ending"]["signal"]
    assert (code if number is None else -number) == plain.status


_STARTS = {
    "missing": ("no_such.py", None),
    "missing module": ("-m", None),
    "syntax error": ("bad.py", "def f(:\n    pass\n"),
    "not text": ("bad.py", "\0\x01"),
    "bare directory": ("folder", None),
    "directory": ("folder", "import sys; print(sys.argv, sys.path[0], __name__)"),
}


@pytest.mark.parametrize("kind", _STARTS)
def test_program_that_cannot_start_fails_as_with_python(kind: str, tmp_path: Path) -> None:
    """Breaks when a wrong script gives another message or exit code than plain Python's."""
    word, content = _STARTS[kind]
    words = [word, "no_such_module_at_all"] if word == "-m" else [word, "argument"]
    target = tmp_path / word
    if word == "folder":
        target.mkdir()
        target = target / "__main__.py"
    if content is not None:
        target.write_text(content)
    plain = run_plain(words, tmp_path)
    # Python 3.11.2 runs a file of null bytes as an empty program; later ones refuse it.
    assert kind == "not text" or (plain.status != 0) == (kind != "directory")
    assert run_watched(words, tmp_path).seen == plain.seen


def test_unknown_command_is_said_before_anything_starts(tmp_path: Path) -> None:
    """Breaks when a command that is not there shows a traceback or leaves a recording."""
    ran = run_watched(["no-such-command-at-all", "x"], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr) == (2, b"", b"")
    assert ran.said.startswith("leakscope: there is no command `no-such-command-at-all`\n  why ")
    assert not ran.directory.exists()


def test_stdin_descriptors_and_odd_words_pass_through(tmp_path: Path) -> None:
    """Breaks when input, an inherited descriptor or an argument that is no text gets lost."""
    script = tmp_path / "cat.py"
    script.write_text(
        "import os, sys\n"
        "sys.stdout.buffer.write(sys.stdin.buffer.read())\n"
        "sys.stdout.buffer.write(os.read(int(sys.argv[1]), 100))\n"
        "sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[2:])))\n"
    )
    content = bytes(range(256)) * 300
    seen = []
    for command in ([PYTHON], [*LEAKSCOPE, "run", "--quiet"]):
        reading, writing = os.pipe()
        os.write(writing, b"handed down")
        os.close(writing)
        done = subprocess.run(
            [*command, str(script), str(reading), b"\xff\xfe", "", "ü\n", "--out"],
            input=content,
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            pass_fds=[reading],
            check=False,
        )
        os.close(reading)
        seen.append(Ran(done.returncode, done.stdout, split_stderr(done.stderr)[0]))
    assert seen[0] == seen[1]
    assert seen[0].stdout == content + b"handed down" + b"\xff\xfe||" + "ü\n|--out".encode()


_ECHO = """
import signal, sys
def heard(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(4)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, heard)
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
while True:
    signal.pause()
"""


def test_signals_sent_to_leakscope_reach_the_program(tmp_path: Path) -> None:
    """Breaks when a signal to us alone is swallowed, ends us, or the program starts with a mask."""
    script = tmp_path / "echo.py"
    script.write_text(_ECHO)
    process = subprocess.Popen(
        [*LEAKSCOPE, "run", "--quiet", str(script)],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"set()\n"
    for name in ("SIGUSR1", "SIGHUP", "SIGINT", "SIGUSR2", "SIGINT", "SIGTERM"):
        process.send_signal(signal.Signals[name])
        assert process.stdout.readline() == f"{name}\n".encode()
    rest, stderr = process.communicate(timeout=60)
    assert (rest, process.returncode) == (b"", 4)
    assert split_stderr(stderr)[0] == b""


@pytest.mark.parametrize("ignored", ["SIGCHLD", "SIGINT", "SIGHUP"])
def test_signals_the_caller_ignores_stay_ignored(ignored: str, tmp_path: Path) -> None:
    """Breaks when nohup, a cron job or a daemon as the caller costs the exit status."""
    script = tmp_path / "show.py"
    script.write_text(
        "import signal, sys\n"
        f"print(signal.getsignal(signal.{ignored}) is signal.SIG_IGN)\nsys.exit(4)\n"
    )

    def ignore() -> None:
        signal.signal(signal.Signals[ignored], signal.SIG_IGN)

    plain = run_plain([script], tmp_path, preexec_fn=ignore)
    assert plain.seen == (4, "True\n", "")
    assert run_watched([script], tmp_path, preexec_fn=ignore).seen == plain.seen


def test_second_interrupt_during_the_report_shows_no_traceback(tmp_path: Path) -> None:
    """Breaks when an impatient Ctrl-C while the report is made prints our own traceback."""
    code = (
        "import sys\nfrom leakscope.cli import main, report\n"
        "def run(options): raise KeyboardInterrupt\nreport.run = run\n"
        "sys.exit(main(['report', 'x']))\n"
    )
    ran = run_plain(["-c", code], tmp_path)
    assert ran.seen == (-signal.SIGINT, "", "")
