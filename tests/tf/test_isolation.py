"""No framework brings another one in, and leakscope brings none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from running import PROGRAMS, environment, run_watched

_TELL = "import sys; print(sorted({'torch', 'tensorflow', 'keras', 'jax'} & set(sys.modules)))"


def test_importing_leakscope_imports_no_framework() -> None:
    code = f"import leakscope, leakscope.agent, leakscope.frameworks.arming; {_TELL}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == "[]\n"


def test_a_program_with_jax_gets_no_tensorflow(tmp_path: Path) -> None:
    program = tmp_path / "only_jax.py"
    program.write_text(
        "import jax, jax.numpy as jnp\n"
        "f = jax.jit(lambda x: x * 2)\n"
        "for _ in range(2000):\n"
        "    f(jnp.ones(3))\n"
        f"{_TELL}\n"
    )
    ran = run_watched([program], tmp_path, env={"JAX_PLATFORMS": "cpu"})
    assert ran.status == 0, ran.seen
    assert ran.stdout == b"['jax']\n"


def test_a_program_with_tensorflow_gets_no_torch(tmp_path: Path) -> None:
    ran = run_watched([PROGRAMS / "tf_steps.py", "call", "30"], tmp_path)
    assert ran.status == 0, ran.seen
    assert ran.stdout == b"False\n"
