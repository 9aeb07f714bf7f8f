"""Processor time of scores and input gradients of real networks, Brenier's engines against PyTorch.

    python compare.py PROGRAM [PROGRAM ..] [--networks resnet18,..] [--batches 1,4] [--rounds 9] [--engine rten]

PROGRAM is the example `gradient_speed`, or several builds of it. All programs take turns, one thread each. What is compared is the
processor time of all threads (from /proc), so that other work on the machine counts less; the table has medians (quartiles), and
ratios of medians to the faster of PyTorch's two layouts, batch normalisation folded.
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

import networks

LAYOUTS = ("nchw", "channels_last")


def peer(name, path, layout):
    """PyTorch's side: a line of standard input is a measurement."""
    import torch

    torch.set_num_threads(1)
    form = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}[layout]
    model = networks.build(name).to(memory_format=form)
    inputs = torch.from_numpy(np.load(path)).contiguous(memory_format=form)
    rows = torch.arange(len(inputs))

    def forward():
        with torch.inference_mode():
            return model(inputs)

    def gradient():
        x = inputs.detach().requires_grad_()
        return torch.autograd.grad(model(x)[rows, rows].sum(), x)[0]

    work = {"forward": forward, "gradient": gradient}
    for line in sys.stdin:
        result = work[line.strip()]()
        print(json.dumps({"what": line.strip(), "mean_abs": result.abs().mean().item()}), flush=True)


def export(name, path):
    import torch

    warnings.filterwarnings("ignore")
    torch.onnx.export(
        networks.build(name),
        (torch.zeros(2, *networks.size(name)),),
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

    def measure(self, what, repetitions=1):
        begin = self.processor_milliseconds()
        for _ in range(repetitions):
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.name} stopped with status {self.process.wait()}")
        return (self.processor_milliseconds() - begin) / repetitions, json.loads(line)["mean_abs"]


def compare(name, batch, arguments, folder):
    model, path = arguments.models / f"{name}.onnx", f"{folder}/inputs.npy"
    if not model.exists():
        export(name, model)
    shape = (batch, *networks.size(name))
    np.save(path, np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    peers = [Program(f"torch {form}", [sys.executable, __file__, "peer", name, path, form]) for form in LAYOUTS]
    ours = [
        Program(f"brenier {i}", [str(program), str(model), path, arguments.engine])
        for i, program in enumerate(arguments.programs)
    ]
    programs = peers + ours
    for what in ("forward", "gradient"):
        means = {program.name: program.measure(what, 2)[1] for program in programs}
        if max(means.values()) - min(means.values()) > 1e-3 * max(means.values()):
            raise SystemExit(f"the programs disagree on the {what} of {name}: {means}")
        repetitions = 5 if name == "residual16" else 1
        samples = {program.name: [] for program in programs}
        for round_ in range(arguments.rounds):
            turn = round_ % len(programs)
            for program in programs[turn:] + programs[:turn]:
                samples[program.name].append(program.measure(what, repetitions)[0])
        medians = {key: statistics.median(values) for key, values in samples.items()}
        best = min(medians[program.name] for program in peers)
        cells = []
        for values in samples.values():
            low, middle, high = statistics.quantiles(values, n=4)
            cells.append(f"{middle:.1f} ({low:.1f} to {high:.1f})")
        ratios = [f"{medians[program.name] / best:.2f}" for program in ours]
        print("| " + " | ".join([name, str(batch), what, *cells, *ratios]) + " |", flush=True)
    for program in programs:
        program.process.stdin.close()
        program.process.wait()


def main():
    if sys.argv[1:2] == ["peer"]:
        return peer(*sys.argv[2:5])
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path, nargs="+")
    parser.add_argument("--networks", default="residual16,residual64,resnet18,mobilenet_v3_small")
    parser.add_argument("--batches", default="1,4")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--engine", default="rten")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("target/bench-networks"))
    arguments = parser.parse_args()
    arguments.models.mkdir(parents=True, exist_ok=True)
    names = [f"brenier {i}" for i in range(len(arguments.programs))]
    columns = [*(f"torch {form}, ms" for form in LAYOUTS), *(f"{name}, ms" for name in names)]
    columns += [f"{name} / faster torch" for name in names]
    print("| network | batch | what | " + " | ".join(columns) + " |")
    print("| --- " * (3 + len(columns)) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.networks.split(","):
            for batch in map(int, arguments.batches.split(",")):
                compare(name, batch, arguments, folder)


if __name__ == "__main__":
    main()
