"""Interleaves measurements of several programs and prints a table of medians.

    python drive.py FOLDER [--program PATH] [--engines rten,ort] [--rounds 15]

FOLDER is what export.py wrote. Without --program only PyTorch is measured.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
WIDTHS = (16, 64)
LAYOUTS = ("nchw", "channels_last")
MEMORY_WIDTH = 64
# Programs that were asked for the same thing must agree on the mean absolute value of the result.
AGREEMENT = 1e-3


class Program:
    def __init__(self, name, command, environment):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def measure(self, what):
        try:
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"{self.name} stopped with status {self.process.wait()}")
        report = json.loads(line)
        if report["what"] != what:
            raise SystemExit(f"{self.name} answered {report['what']!r} to {what!r}")
        return report

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def commands(arguments, width):
    """Name and command of each program, PyTorch first."""
    inputs = str(arguments.folder / "inputs.npy")
    for layout in LAYOUTS:
        yield f"torch {layout}", [sys.executable, str(HERE / "peer.py"), str(width), inputs, layout]
    if arguments.program:
        model = str(arguments.folder / f"resnet{width}.onnx")
        for engine in filter(None, arguments.engines.split(",")):
            yield f"brenier {engine}", [str(arguments.program), model, inputs, engine]


def check_agreement(width, what, reports):
    means = {name: r["mean_abs"] for name, r in reports.items() if "mean_abs" in r}
    if not means:
        return
    low, high = min(means.values()), max(means.values())
    if high - low > AGREEMENT * high:
        raise SystemExit(f"the {what} results at width {width} differ: {means}")


def timings(arguments, environment, width):
    programs = [Program(n, c, environment) for n, c in commands(arguments, width)]
    samples = {}
    for what in ("forward", "gradient"):
        reports = {}
        for program in programs:
            for _ in range(arguments.warmup):
                reports[program.name] = program.measure(what)
        check_agreement(width, what, reports)
        for round_ in range(arguments.rounds):
            # Another program goes first each round; the pause lets idle worker threads stop spinning.
            turn = round_ % len(programs)
            for program in programs[turn:] + programs[:turn]:
                time.sleep(arguments.pause)
                report = program.measure(what)
                samples.setdefault(what, {}).setdefault(program.name, []).append(
                    report["milliseconds"]
                )
    for program in programs:
        program.close()
    return samples


def memory(arguments, environment):
    """Peaks of processes that computed nothing but gradients at the larger width."""
    peaks = {}
    for name, command in commands(arguments, MEMORY_WIDTH):
        program = Program(name, command, environment)
        for _ in range(arguments.memory_repeats):
            report = program.measure("gradient")
        program.close()
        peaks[name] = (report["peak_rss_mb"], report.get("start_rss_mb"))
    return peaks


def spread(values):
    if len(values) < 3:
        return f"{statistics.median(values):.1f}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def row(cells):
    print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, help="the built gradient_speed example")
    parser.add_argument("--engines", default="rten,ort")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds before each measurement")
    parser.add_argument("--memory-repeats", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="also write every sample to this file")
    arguments = parser.parse_args()

    threads = str(arguments.threads)
    environment = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RTEN_NUM_THREADS", "RAYON_NUM_THREADS"):
        environment[name] = threads

    names = [name for name, _ in commands(arguments, WIDTHS[0])]
    peers = [name for name in names if name.startswith("torch")]
    others = [name for name in names if name not in peers]

    everything = {}
    print(
        f"Milliseconds for 50 inputs, {threads} threads: median (quartiles) of {arguments.rounds} rounds. "
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the start.\n"
    )
    row(["width", "what", *names, *(f"{name} / faster torch" for name in others)])
    row(["---"] * (2 + len(names) + len(others)))
    for width in WIDTHS:
        everything[width] = timings(arguments, environment, width)
        for what, samples in everything[width].items():
            medians = {name: statistics.median(samples[name]) for name in names}
            best = min(medians[name] for name in peers)
            cells = [spread(samples[name]) for name in names]
            cells += [f"{medians[name] / best:.2f}" for name in others]
            row([str(width), what, *cells])
            sys.stdout.flush()

    peaks = memory(arguments, environment)
    leanest = min(peaks[name][0] for name in peers)
    print(
        f"\nMegabytes of peak resident memory, gradient at width {MEMORY_WIDTH}, "
        "in processes that did nothing else.\n"
    )
    row(["program", "peak", "before the first measurement", "difference", "peak / leaner torch"])
    row(["---"] * 5)
    for name, (peak, start) in peaks.items():
        known = start is not None
        row(
            [
                name,
                f"{peak:.0f}",
                f"{start:.0f}" if known else "",
                f"{peak - start:.0f}" if known else "",
                f"{peak / leanest:.2f}",
            ]
        )
    if arguments.json:
        record = {"milliseconds": everything, "peak_rss_mb": peaks}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
