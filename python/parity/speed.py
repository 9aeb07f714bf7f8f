"""How long 256 images of CIFAR's size take from Python and from the command line, in turns, and whether the model is copied
for each call.

    python python/parity/speed.py PROGRAM assets/cifar10/classifier.onnx

The program and the package must be of the same build profile. CPU seconds are compared, which do not depend on what else runs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CHILD = """
import sys, numpy as np, brenier
brenier.explain(sys.argv[1], np.load(sys.argv[2]), "ig", steps=8, progress=False)
"""


def seconds(command: list[str]) -> float:
    """CPU seconds of a command and all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def resident() -> float:
    """Megabytes in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    import brenier

    program, model = sys.argv[1:3]
    x = np.random.default_rng(0).random((256, 3, 32, 32), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "x.npy")
        np.save(file, x)
        line = [program, "explain", "-m", model, file, "--method", "ig", "--steps", "8", "--quiet"]
        ratios = []
        for turn in range(3):
            ours, theirs = seconds([sys.executable, "-c", CHILD, model, file]), seconds(line)
            ratios.append(ours / theirs)
            print(f"turn {turn}: Python {ours:.1f} s, command line {theirs:.1f} s of CPU, ratio {ratios[-1]:.3f}")
        print(f"median ratio {sorted(ratios)[1]:.3f}")
    loaded = brenier.Model(model)
    brenier.explain(loaded, x[:4], "gradient")
    first = loaded._open()
    start = resident()
    for _ in range(50):
        brenier.explain(loaded, x[:4], "gradient")
    print(f"50 more calls: {resident() - start:+.1f} MB, the same native model: {loaded._open() is first}")


if __name__ == "__main__":
    main()
