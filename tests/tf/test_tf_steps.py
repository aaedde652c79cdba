"""Steps of TensorFlow and Keras are counted one for one, and the program cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import PROGRAMS, counted, run_plain, run_watched

_ENV = {"TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.mark.parametrize(
    ("how", "source"),
    [
        ("fit", "batch"),
        ("predict", "batch"),
        ("call", "call"),
        ("eager", "optimizer"),
        ("traced", "call"),
    ],
)
def test_every_step_is_counted_once(how: str, source: str, tmp_path: Path) -> None:
    """Breaks when a framework no longer reads the attribute at the place that is listened to."""
    ran = run_watched([PROGRAMS / "tf_steps.py", how, "30"], tmp_path, env=_ENV)
    assert ran.status == 0, ran.seen
    recording = ran.recording()
    (main,) = (name for name, start in recording.starts.items() if start.kind == "main")
    assert source in recording.sources(main)
    assert counted(recording, main) == 30
    assert ran.report["steps_from"] == source


def test_an_error_in_a_traced_function_looks_as_it_does_without_us(tmp_path: Path) -> None:
    """Breaks when a frame of ours stands in a traceback of TensorFlow's or of Keras'."""
    program = tmp_path / "fails.py"
    program.write_text(
        "import os\n"
        "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\n"
        "import keras\n"
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "@tf.function\n"
        "def broken(x):\n"
        "    return tf.reshape(x, (5, 5))\n"
        "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "for act in (lambda: broken(tf.ones((2, 2))), lambda: model.fit(np.ones((4, 5)))):\n"
        "    try:\n"
        "        act()\n"
        "    except Exception as error:\n"
        "        import traceback\n"
        "        print([f.name for f in traceback.extract_tb(error.__traceback__)])\n"
    )
    plain = run_plain([program], tmp_path)
    watched = run_watched([program], tmp_path)
    assert plain.status == watched.status == 0
    assert watched.stdout == plain.stdout
    assert watched.stdout.count(b"\n") == 2
