"""What an explanation costs: processor time of `brenier explain` for N and for 2 N inputs, and the bytes that it leaves.

    python bench/shards/cost.py PROGRAM FOLDER [REPEATS [WORD OF A KIND]]

The difference divided by N is the cost of one; loading and checking drop out. Kinds take turns, so that a busy machine slows all of
them alike. Prints the median of the repeats and their range.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "many_inputs"))
from drive import make  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = [
    ("a table of 20 columns, MLP, ig to 1e-3", 4000, "table.onnx", (20,), []),
    ("a table of 20 columns, MLP, kernel-shap, 400 samples", 100, "table.onnx", (20,), ["--method", "kernel-shap", "--samples", "400"]),
    ("images 3x16x16, small VGG, ig, 50 steps", 50, ROOT / "fixtures/torch/vgg.script.onnx", (3, 16, 16), ["--steps", "50"]),
    ("images 3x16x16, small ViT, gradient-input", 500, ROOT / "fixtures/torch/vit.script.onnx", (3, 16, 16), ["--method", "gradient-input"]),
]


def once(program, folder, model, rows, more):
    out = folder / "cost"
    shutil.rmtree(out, ignore_errors=True)
    run = [program, "explain", "-m", model, rows, "-q", "-o", out, *more]
    process = subprocess.Popen(run, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, run
    size = sum((out / name).stat().st_size for name in ("explanations.npz", "explanations.jsonl"))
    return usage.ru_utime + usage.ru_stime, size


def main():
    program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    kinds = [kind for kind in KINDS if len(sys.argv) < 5 or sys.argv[4] in kind[0]]
    found = {name: [] for name, *_ in kinds}
    sizes = {}
    for _ in range(repeats):
        for name, count, model, shape, more in kinds:
            rows = np.random.default_rng(0).normal(size=(2 * count, *shape)).astype("float32")
            np.save(folder / "cost-1.npy", rows[:count])
            np.save(folder / "cost-2.npy", rows)
            (one, small), (two, large) = (once(program, folder, model, folder / f"cost-{k}.npy", more) for k in (1, 2))
            found[name].append(1000 * (two - one) / count)
            sizes[name] = (large - small) / count
    for name, times in found.items():
        middle, low, high = statistics.median(times), min(times), max(times)
        print(f"| {name} | {middle:.3g} ms ({low:.3g} to {high:.3g}) | {sizes[name]:,.0f} B | {middle * 1e9 / 1000 / 3600:,.0f} h |")


if __name__ == "__main__":
    main()
