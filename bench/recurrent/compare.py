"""Processor time of an LSTM's scores and input gradients, Brenier's built-in engine against PyTorch.

    python compare.py PROGRAM [--rounds 15] [--units 128] [--steps 100] [--batch 8] [--engines rten]

PROGRAM is the example `gradient_speed`. The programs take turns, and each turn is a few repetitions. What is compared is the
processor time of all threads (from /proc), so that other work on the machine counts little; the table has medians, and the
ratio of medians. One thread each.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy as np

FEATURES, CLASSES = 32, 10


def build(units):
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(FEATURES, units, batch_first=True)
            self.head = torch.nn.Linear(units, CLASSES)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    torch.manual_seed(0)
    return Network().eval()


def peer(units, path):
    """PyTorch's side, in the protocol of bench/gradient."""
    import torch

    torch.set_num_threads(1)
    model = build(units)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    inputs = torch.from_numpy(np.load(path))
    rows = torch.arange(len(inputs))

    def forward():
        with torch.inference_mode():
            return model(inputs)

    def gradient():
        x = inputs.detach().requires_grad_()
        return torch.autograd.grad(model(x)[rows, rows % CLASSES].sum(), x)[0]

    work = {"forward": forward, "gradient": gradient}
    for line in sys.stdin:
        result = work[line.strip()]()
        print(json.dumps({"what": line.strip(), "mean_abs": result.abs().mean().item()}), flush=True)


def export(units, inputs, path):
    import torch

    warnings.filterwarnings("ignore")
    torch.onnx.export(
        build(units),
        (torch.from_numpy(inputs[:2]),),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["x"],
        output_names=["scores"],
        dynamic_axes={"x": {0: "batch"}, "scores": {0: "batch"}},
    )


class Program:
    def __init__(self, name, command):
        self.name = name
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def processor_milliseconds(self):
        threads = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6

    def measure(self, what, repetitions):
        begin = self.processor_milliseconds()
        for _ in range(repetitions):
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.name} stopped with status {self.process.wait()}")
        return (self.processor_milliseconds() - begin) / repetitions, json.loads(line)["mean_abs"]


def main():
    if sys.argv[1:2] == ["peer"]:
        return peer(int(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--engines", default="rten")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, path = f"{folder}/lstm.onnx", f"{folder}/inputs.npy"
        shape = (arguments.batch, arguments.steps, FEATURES)
        inputs = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        np.save(path, inputs)
        export(arguments.units, inputs, model)
        programs = [Program("torch", [sys.executable, __file__, "peer", str(arguments.units), path])]
        for engine in arguments.engines.split(","):
            programs.append(Program(engine, [str(arguments.program), model, path, engine]))
        print("| what | " + " | ".join(f"{p.name}, ms" for p in programs) + " | ratio |")
        print("| --- | " + " | ".join("---" for _ in programs) + " | --- |")
        for what in ("forward", "gradient"):
            means = {p.name: p.measure(what, 3)[1] for p in programs}
            if max(means.values()) - min(means.values()) > 1e-3 * max(means.values()):
                raise SystemExit(f"the programs disagree on the {what}: {means}")
            samples = {p.name: [] for p in programs}
            for round_ in range(arguments.rounds):
                for program in programs[round_ % 2 :] + programs[: round_ % 2]:
                    samples[program.name].append(program.measure(what, arguments.repetitions)[0])
            medians = {name: statistics.median(values) for name, values in samples.items()}
            cells = []
            for name, values in samples.items():
                low, _, high = statistics.quantiles(values, n=4)
                cells.append(f"{medians[name]:.1f} ({low:.1f} to {high:.1f})")
            ratios = [f"{name} {medians[name] / medians['torch']:.2f}" for name in medians if name != "torch"]
            print(f"| {what} | " + " | ".join(cells) + " | " + ", ".join(ratios) + " |", flush=True)
        for program in programs:
            program.process.stdin.close()
            program.process.wait()


if __name__ == "__main__":
    main()
