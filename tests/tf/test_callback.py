"""The callback watches what it is given to, and leaves nothing behind."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

keras = pytest.importorskip("keras", reason="make test-tf has its own environment")
np = pytest.importorskip("numpy")

from leakscope.errors import LeakscopeError  # noqa: E402
from leakscope.keras import LeakScope  # noqa: E402


def _fit(callback: LeakScope) -> weakref.ref[object]:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    x = np.ones((64, 4), "float32")
    model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=[callback])
    return weakref.ref(model)


def test_batches_of_several_fits_are_one_recording(tmp_path: Path) -> None:
    from keras.src.callbacks.callback_list import CallbackList

    callback = LeakScope(tmp_path / "rec")
    model = _fit(callback)
    _fit(callback)
    gc.collect()
    assert model() is None, "the callback keeps its model"
    callback.close()
    report = callback.report()
    assert report.steps == 32
    assert report.steps_from in ("batch", "optimizer")
    assert "_async_train" not in vars(CallbackList)


def test_a_report_before_the_first_fit_says_what_to_do() -> None:
    with pytest.raises(LeakscopeError, match="nothing to report"):
        LeakScope().report()
