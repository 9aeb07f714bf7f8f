"""Memory of long runs, and runs that are killed again and again.

Prints the peak memory of `explain --method ig` for 1,000 and for 100,000 rows of 20 columns. Then kills runs of five
methods with SIGKILL at random moments, starts them again until they end, and compares every file with that of a run
that was left alone. Also counts inputs that were explained twice: none may be.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

METHODS = ["ig", "smoothgrad", "gradient-input", "kernel-shap", "occlusion"]
ROWS = 3000
# Work for each row, so that a run of each method has many parts.
WORK = ["--samples", "400"]


def make(folder):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100_000, 20)).astype("float32")
    np.save(folder / "rows-100000.npy", rows)
    np.save(folder / "rows-1000.npy", rows[:1000])
    np.save(folder / f"rows-{ROWS}.npy", rows[:ROWS])
    first = (rng.normal(size=(20, 32)) / 4).astype("float32")
    second = (rng.normal(size=(32, 3)) / 4).astype("float32")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "first"], ["a"]),
            helper.make_node("Tanh", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "second"], ["y"]),
        ],
        "table",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 20])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
        [numpy_helper.from_array(first, "first"), numpy_helper.from_array(second, "second")],
    )
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), folder / "table.onnx")


def command(program, folder, method, rows, out):
    more = WORK if method in ("smoothgrad", "kernel-shap") else []
    return [program, "explain", "-m", "table.onnx", f"rows-{rows}.npy", "--method", method, "-q", "-o", out, *more]


def memory(program, folder):
    for rows in (1000, 100_000):
        shutil.rmtree(folder / "memory", ignore_errors=True)
        began = time.time()
        process = subprocess.Popen(
            command(program, folder, "ig", rows, "memory"), cwd=folder, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        print(f"ig, {rows} rows: peak {usage.ru_maxrss / 1024:.1f} MB, {time.time() - began:.1f} s", flush=True)


def finished(folder):
    """The inputs that are in parts already."""
    parts = folder / "explanations.parts"
    names = [path.name for path in parts.iterdir()] if parts.exists() else []
    ranges = [name.split("-") for name in names if name[0].isdigit()]
    return {int(start): int(end) for start, end in ranges}


def killed(program, folder, kills):
    random.seed(1)
    done, again = 0, 0
    while done < kills:
        for method in METHODS:
            whole, broken = folder / f"whole-{method}", folder / f"broken-{method}"
            if not whole.exists():
                run = command(program, folder, method, ROWS, whole.name)
                subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(broken, ignore_errors=True)
            before = {}
            for _ in range(4):
                process = subprocess.Popen(
                    command(program, folder, method, ROWS, broken.name), cwd=folder, stdout=subprocess.DEVNULL
                )
                time.sleep(random.uniform(0.02, 0.6))
                process.send_signal(signal.SIGKILL)
                done += process.wait() != 0
                now = finished(broken)
                lost = {start: end for start, end in before.items() if now.get(start) != end}
                whole_already = (broken / "explanations.run.json").exists()
                again += len(lost) if not whole_already else 0
                before = now
            run = command(program, folder, method, ROWS, broken.name)
            subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for file in sorted(path.name for path in whole.iterdir() if path.is_file() and path.suffix != ".html"):
                same = (whole / file).read_bytes() == (broken / file).read_bytes()
                assert same, f"{method}: {file} differs"
    print(f"{done} kills over {len(METHODS)} methods: files identical, {again} finished parts lost")


def main():
    program, folder, kills = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    make(folder)
    memory(program, folder)
    killed(program, folder, kills)


if __name__ == "__main__":
    main()
