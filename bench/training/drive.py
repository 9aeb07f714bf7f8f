"""Interleaves training steps of several programs and prints a table: python drive.py PROGRAM ROUNDS."""

import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BATCH, STEPS = 64, 3
# Width, patch and levels of the networks: the default, and the one of the shipped flows.
NETWORKS = {"pixels, width 32, levels 1,2,2": (32, 1, "1,2,2"), "patches of 2, width 48, levels 1,2": (48, 2, "1,2")}


def main():
    program, rounds = sys.argv[1], int(sys.argv[2])
    print("| network | weights | program | ms per step of 64, median (quartiles) | samples/s | of the faster PyTorch |")
    print("|---|---|---|---|---|---|")
    for name, (width, patch, levels) in NETWORKS.items():
        network = [str(width), str(patch), levels]
        commands = {
            f"torch {layout}": [sys.executable, str(HERE / "peer.py"), layout, str(BATCH), str(STEPS), *network]
            for layout in ("nchw", "channels_last")
        }
        for engine in ("rten", "ort"):
            commands[f"brenier {engine}"] = [program, "unet", engine, str(BATCH), str(STEPS), *network]
        samples, weights = {}, {}
        for round_ in range(rounds):
            names = list(commands)
            turn = round_ % len(names)
            for which in names[turn:] + names[:turn]:
                done = subprocess.run(commands[which], check=True, capture_output=True, text=True)
                report = json.loads(done.stdout)
                samples.setdefault(which, []).append(report["median_ms"])
                weights[which] = report["parameters"]
        medians = {which: statistics.median(times) for which, times in samples.items()}
        best = min(ms for which, ms in medians.items() if which.startswith("torch"))
        for which, ms in medians.items():
            low, _, high = statistics.quantiles(samples[which], n=4, method="inclusive")
            spread = f"{ms:.0f} ({low:.0f} to {high:.0f})"
            print(f"| {name} | {weights[which]:,} | {which} | {spread} | {1e3 * BATCH / ms:.0f} | {best / ms:.2f} |")


main()
