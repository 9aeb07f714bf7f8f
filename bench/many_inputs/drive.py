"""Memory of long runs, and runs that are killed again and again.

Prints the peak memory of `explain --method ig` for 1,000 and for 100,000 rows of 20 columns. Then kills runs of five
methods with SIGKILL at random moments, starts them again until they end, and compares every file with that of a run
that was left alone. Also counts inputs that were explained twice: none may be.
"""

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


def high_water(pid):
    """The most memory that a process has had so far, in kB. What `wait4` says has this program's own in it."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return max((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), default=0)


def memory(program, folder):
    for rows in (1000, 100_000):
        shutil.rmtree(folder / "memory", ignore_errors=True)
        began = time.time()
        process = subprocess.Popen(
            command(program, folder, "ig", rows, "memory"), cwd=folder, stdout=subprocess.DEVNULL
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, high_water(process.pid))
            time.sleep(0.02)
        assert process.returncode == 0, process.returncode
        print(f"ig, {rows} rows: peak {peak / 1024:.1f} MB, {time.time() - began:.1f} s", flush=True)


def finished(folder):
    """The inputs that are in parts already."""
    parts = folder / "explanations.parts"
    names = [path.name for path in parts.iterdir()] if parts.exists() else []
    ranges = [name.split("-") for name in names if name[0].isdigit()]
    return {int(start): int(end) for start, end in ranges}


def killed(program, folder, kills):
    random.seed(1)
    done, again, parts_before = 0, 0, 0
    took = {}
    while done < kills:
        for method in METHODS:
            # Results name the folder that they were asked for, so both have the same.
            whole, broken = folder / f"whole-{method}", folder / "result"
            if method not in took:
                shutil.rmtree(whole, ignore_errors=True)
                shutil.rmtree(broken, ignore_errors=True)
                began = time.time()
                run = command(program, folder, method, ROWS, broken.name)
                subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
                took[method] = time.time() - began
                broken.rename(whole)
            shutil.rmtree(broken, ignore_errors=True)
            before = {}
            for _ in range(4):
                process = subprocess.Popen(
                    command(program, folder, method, ROWS, broken.name), cwd=folder, stdout=subprocess.DEVNULL
                )
                time.sleep(random.uniform(0.02, 0.5 * took[method]))
                process.send_signal(signal.SIGKILL)
                done += process.wait() != 0
                now = finished(broken)
                lost = {start: end for start, end in before.items() if now.get(start) != end}
                whole_already = (broken / "explanations.run.json").exists()
                again += len(lost) if not whole_already else 0
                before = now
                parts_before += len(now)
            run = command(program, folder, method, ROWS, broken.name)
            subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for file in sorted(path.name for path in whole.iterdir() if path.is_file() and path.suffix != ".html"):
                same = (whole / file).read_bytes() == (broken / file).read_bytes()
                assert same, f"{method}: {file} differs"
    print(f"{done} kills over {len(METHODS)} methods: files identical, {again} finished parts lost of {parts_before} seen at a kill")


def main():
    program, folder, kills = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    make(folder)
    memory(program, folder)
    killed(program, folder, kills)


if __name__ == "__main__":
    main()
