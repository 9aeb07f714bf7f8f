"""What users get wrong: typed errors that say what to try, or right answers."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import pytest
from brenier import exceptions

Fixture = tuple[str, Any]


def test_dtypes_and_layouts_give_the_same(convnet: Fixture) -> None:
    model, data = convnet
    x = data["inputs"].astype(np.float32)
    expected = brenier.explain(model, x, "gradient").values
    locked = x.copy()
    locked.setflags(write=False)
    swapped = np.asfortranarray(x)
    strided = np.repeat(x, 2, axis=3)[..., ::2]
    for same in (locked, swapped, strided, x.astype(np.float64), x.astype(">f4"), x.tolist()):
        np.testing.assert_array_equal(brenier.explain(model, same, "gradient").values, expected)
    assert not np.shares_memory(brenier.explain(model, locked, "gradient").inputs, locked)
    whole = np.round(x * 3)
    np.testing.assert_array_equal(
        brenier.explain(model, whole.astype(np.int64), "gradient").values, brenier.explain(model, whole, "gradient").values
    )
    np.testing.assert_array_equal(
        brenier.explain(model, whole.astype(np.float16), "gradient").values, brenier.explain(model, whole, "gradient").values
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda x: x.astype(str), brenier.DataError, "dtype"),
        (lambda x: x.astype(complex), brenier.DataError, "complex128"),
        (lambda x: np.array(["a", None], dtype=object), brenier.DataError, "no number"),
        (lambda x: [[1.0], [1.0, 2.0]], brenier.DataError, "cannot be read"),
        (lambda x: x[0], brenier.ShapeError, r"x\[None\]"),
        (lambda x: x[:, :, :4], brenier.ShapeError, r"\('N', 3, 8, 8\)"),
        (lambda x: np.moveaxis(x, 1, -1), brenier.ShapeError, "moveaxis"),
        (lambda x: np.float64(1.0), brenier.ShapeError, "shape"),
        (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 70, np.nan, x), brenier.NotFiniteError, r"row 0 at place \(1, 0, 6\)"),
        (lambda x: x * np.inf, brenier.NotFiniteError, "row 0"),
    ],
)
def test_wrong_inputs(convnet: Fixture, change: Any, error: type[Exception], words: str) -> None:
    model, data = convnet
    with pytest.raises(error, match=words) as raised:
        brenier.explain(model, change(data["inputs"]), "gradient")
    assert isinstance(raised.value, brenier.BrenierError) and raised.value.hint


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"target": 5}, brenier.TargetError, "0 to 4"),
        ({"target": -1}, brenier.TargetError, "out of range"),
        ({"target": 1.5}, brenier.BrenierError, "target"),
        ({"target": "cat"}, brenier.TargetError, "classes="),
        ({"target": [0, 1, 2]}, brenier.ShapeError, "3 targets are given for 2"),
        ({"targets": "top9"}, brenier.TargetError, "1 to 5"),
        ({"targets": [1, 1]}, brenier.TargetError, "twice"),
        ({"method": "smoothgrd"}, brenier.MethodError, "did you mean 'smoothgrad'"),
        ({"tolerance": 0.0}, brenier.SettingError, "positive"),
        ({"tolerance": float("nan")}, brenier.SettingError, "finite"),
        ({"tolerance": 1e-3, "steps": 5}, brenier.SettingError, "exclude"),
        ({"rule": "magic"}, brenier.SettingError, "gauss-legendre"),
        ({"method": "gradient", "samples": 5}, brenier.SettingError, "samples makes no difference to gradient"),
        ({"method": "gradient", "tolerance": 1e-3}, brenier.SettingError, "tolerance makes no difference"),
        ({"baseline": "black"}, brenier.SettingError, "zero, mean"),
        ({"baseline": np.zeros((3, 3, 8, 8))}, brenier.ShapeError, "3 baselines are given for 2"),
        ({"baseline": "mean"}, brenier.MethodError, "background="),
        ({"method": "transport"}, brenier.BrenierError, "flow"),
        ({"method": "kernel-shap", "groups": "squares"}, brenier.SettingError, "patches:8x8"),
        ({"feature_names": ["a"]}, brenier.ShapeError, "feature names"),
    ],
)
def test_wrong_arguments(convnet: Fixture, arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    model, data = convnet
    with pytest.raises(error, match=words) as raised:
        brenier.explain(model, data["inputs"], **arguments)
    assert "--" not in str(raised.value)


def test_wrong_models(tmp_path: Path) -> None:
    with pytest.raises(brenier.FileError, match="missing.onnx"):
        brenier.Model(tmp_path / "missing.onnx")
    with pytest.raises(brenier.ModelError):
        brenier.Model(b"not a model").shape
    with pytest.raises(brenier.ModelError, match="no model"):
        brenier.Model(7)
    with pytest.raises(brenier.ModelError, match="input_shape="):
        brenier.Model(lambda x: x)
    with pytest.raises(brenier.SettingError, match="engine"):
        brenier.explain(brenier.Model(b"x", engine="tract"), np.zeros((1, 2)))


def test_errors_are_caught_by_their_kind_and_pickled() -> None:
    assert issubclass(brenier.ShapeError, ValueError) and issubclass(brenier.TargetError, IndexError)
    assert issubclass(brenier.UnsupportedOperator, brenier.ModelError)
    error = brenier.ShapeError("too flat\nhint: stand it up")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is brenier.ShapeError and again.hint == "stand it up"
    for name in exceptions.__all__:
        assert issubclass(getattr(brenier, name), brenier.BrenierError)


def test_remedies_speak_python(convnet: Fixture) -> None:
    model, data = convnet
    with pytest.raises(brenier.BrenierError) as refused:
        brenier.explain(model, data["inputs"], "expected-gradients")
    assert "(background=)" in refused.value.hint and "--" not in str(refused.value)


def test_threads_share_a_model(convnet: Fixture) -> None:
    model, data = convnet
    loaded = brenier.Model(model)
    expected = brenier.explain(model, data["inputs"], "ig").values
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: brenier.explain(loaded, data["inputs"], "ig").values, range(16)))
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_other_threads_run_meanwhile(convnet: Fixture) -> None:
    model, data = convnet
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.005):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    brenier.explain(model, np.repeat(data["inputs"], 40, axis=0), "smoothgrad", samples=400)
    took = time.monotonic() - began
    stop.set()
    thread.join()
    assert ticks[0] > 0.2 * took / 0.005 or took < 0.1, (ticks, took)


STOPPED = """
import signal, sys, time, numpy as np, brenier
# Whoever starts the tests in the background has them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
model, inputs = sys.argv[1], np.load(sys.argv[2])["inputs"]
loaded = brenier.Model(model)
loaded.scores(inputs)
print("ready", flush=True)
try:
    brenier.explain(loaded, inputs, "smoothgrad", samples=100_000_000)
except KeyboardInterrupt:
    print(time.time(), flush=True)
print(brenier.explain(loaded, inputs, "gradient").shape, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_stops_within_a_second_and_the_model_works_on(convnet: Fixture, tmp_path: Path) -> None:
    model, data = convnet
    np.savez(tmp_path / "x.npz", inputs=data["inputs"])
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, model, str(tmp_path / "x.npz")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    try:
        stopped, shape = process.communicate(timeout=20)[0].splitlines()
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert float(stopped) - sent < 1.0
    assert shape == "(2, 3, 8, 8)" and process.returncode == 0


def _in_a_child(queue: Any, model: str, inputs: Any) -> None:
    try:
        queue.put(brenier.explain(model, inputs, "gradient").values)
    except Exception as error:
        queue.put(error)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_forked_and_spawned_processes(convnet: Fixture, start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {start} here")
    model, data = convnet
    expected = brenier.explain(model, data["inputs"], "gradient").values
    context = multiprocessing.get_context(start)
    queue = context.Queue()
    process = context.Process(target=_in_a_child, args=(queue, model, data["inputs"]))  # type: ignore[attr-defined]
    process.start()
    found = queue.get(timeout=60)
    process.join()
    if start == "fork":
        assert isinstance(found, brenier.EngineError) and "spawn" in str(found)
    else:
        np.testing.assert_array_equal(found, expected)


def test_what_a_function_raises_comes_through() -> None:
    def broken(_x: Any) -> Any:
        raise ZeroDivisionError("no scores today")

    with pytest.raises(ZeroDivisionError, match="no scores today"):
        brenier.explain(brenier.Model(broken, input_shape=(2,)), np.ones((1, 2)), "occlusion", target=None)
    wrong = brenier.Model(lambda x: np.zeros((len(x) + 1, 2)), input_shape=(2,))
    with pytest.raises(brenier.ShapeError, match="scores"):
        brenier.explain(wrong, np.ones((1, 2)), "occlusion")


def test_progress_is_shown_only_where_wanted(convnet: Fixture, capfd: Any) -> None:
    model, data = convnet
    many = np.repeat(data["inputs"], 200, axis=0)
    brenier.explain(model, many, "smoothgrad", samples=200)
    assert capfd.readouterr().err == ""
    brenier.explain(model, many, "smoothgrad", samples=200, progress=True)
    shown = capfd.readouterr().err
    assert "400/400" in shown or shown == ""


def test_nothing_to_explain(convnet: Fixture) -> None:
    model, _ = convnet
    found = brenier.explain(model, np.zeros((0, 3, 8, 8)), "gradient", target=0)
    assert found.shape == (0, 3, 8, 8) and found.certificates == []
