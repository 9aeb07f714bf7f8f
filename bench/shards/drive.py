"""Shards that are killed at random, repeated and merged; and a disk that is full.

Twenty times (or as often as is asked): draws a number of shards, runs them in a random order, kills each now and then with
SIGKILL and starts it again, merges them, and compares every file with that of one run. Then runs one of four shards on a file
system of 1 MB (as root, on Linux): it must fail with the reason, the others must be merged, and the missing inputs told of.
"""

import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time


sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "many_inputs"))
from drive import make  # noqa: E402

ROWS = 1000
METHODS = ["ig", "smoothgrad", "kernel-shap"]


def command(program, method, out, *more):
    work = ["--samples", "100"] if method != "ig" else ["--targets", "top2"]
    rows = [f"rows-{ROWS}.npy", "--method", method, "-q", "-o", out]
    return [program, "explain", "-m", "table.onnx", *rows, *work, *more]


def compared(one, merged):
    for file in sorted(path.name for path in one.iterdir() if path.is_file()):
        assert (one / file).read_bytes() == (merged / file).read_bytes(), f"{merged}: {file} differs"


def killed(program, folder, rounds):
    random.seed(1)
    kills = 0
    for number in range(rounds):
        method = METHODS[number % len(METHODS)]
        one, out = folder / f"one-{method}", folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        if not one.exists():
            subprocess.run(command(program, method, "out"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
            out.rename(one)
        count = random.randint(1, 12)
        shards = list(range(1, count + 1))
        random.shuffle(shards)
        for shard in shards:
            run = command(program, method, "out", "--shard", f"{shard}/{count}")
            for _ in range(random.randint(0, 2)):
                process = subprocess.Popen(run, cwd=folder, stdout=subprocess.DEVNULL)
                time.sleep(random.uniform(0.01, 0.3))
                process.send_signal(signal.SIGKILL)
                kills += process.wait() != 0
            subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([program, "merge", "out", "--report", "-q"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        compared(one, out)
        print(f"{number + 1}: {method}, {count} shards: identical", flush=True)
    print(f"{rounds} runs in shards, {kills} kills: all files identical to those of one run")


def full_disk(program, folder):
    out, small = folder / "full", folder / "full/shards/unfinished-2-of-4"
    shutil.rmtree(out, ignore_errors=True)
    small.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        print("a full disk was not tried: it takes root on Linux")
        return
    try:
        for shard in (1, 2, 3, 4):
            run = command(program, "ig", "full", "--shard", f"{shard}/4")
            done = subprocess.run(run, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            assert (done.returncode == 1) == (shard == 2), (shard, done)
            print(f"shard {shard}: exit {done.returncode} {done.stderr.strip()}")
    finally:
        subprocess.run(["umount", small], check=True)
    done = subprocess.run([program, "merge", "full", "--keep-going"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 3 and "missing: inputs 250 to 499" in done.stderr, done
    print(f"merge: exit {done.returncode} {done.stderr.strip()}")
    # With room again, the same command goes on, and all is as if nothing had happened.
    subprocess.run(command(program, "ig", "full", "--shard", "2/4"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, "merge", "full", "-q"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    one, merged = folder / "one-ig", folder / "full"
    for file in ("explanations.npz", "explanations.jsonl", "explanations.run.json"):
        assert (one / file).read_bytes() == (merged / file).read_bytes(), file
    print("a full disk: the others went on, and the shard after them; identical")


def main():
    program, folder, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    make(folder)
    killed(program, folder, rounds)
    full_disk(program, folder)


if __name__ == "__main__":
    main()
