"""Runs both programs in turn and prints a table: python drive.py WORK PROGRAM ROUNDS."""

import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Quantus takes single values, 3072 of them, and wants a step that divides 1024: 24 fractions are the nearest to 20.
FEATURES, FRACTIONS = 128, 24


def main():
    work, program, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    commands = {"Quantus": [sys.executable, str(HERE / "peer.py"), work, str(FEATURES)]}
    for engine in ("ort", "rten"):
        commands[f"brenier {engine}"] = [program, work, engine, str(FRACTIONS)]
    reports = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            reports[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
    peer = statistics.median(report["seconds"] for report in reports["Quantus"])
    print(f"deletion and insertion of 200 images at {FRACTIONS} fractions for 10 methods, median of {rounds} rounds\n")
    print("| program | seconds | times as fast | mean deletion area | mean insertion area |")
    print("|---|---|---|---|---|")
    for name, all_ in reports.items():
        seconds = statistics.median(report["seconds"] for report in all_)
        areas = all_[0]
        print(f"| {name} | {seconds:.1f} | {peer / seconds:.1f} | {areas['deletion']:.5f} | {areas['insertion']:.5f} |")
    first = reports["Quantus"][0]
    for name, all_ in reports.items():
        for what in ("deletion", "insertion"):
            if abs(all_[0][what] - first[what]) > 1e-3 * max(1.0, abs(first[what])):
                sys.exit(f"{name} computes another {what} than Quantus: {all_[0][what]} and {first[what]}")


main()
