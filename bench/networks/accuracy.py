"""Errors of input gradients against PyTorch in f64, Brenier's beside PyTorch's own in f32.

    python accuracy.py PROGRAM NETWORK [--inputs 16] [--arithmetic fast]

PROGRAM is the example `gradient_speed`. An input's error is the distance of its gradient from the exact one, relative to the exact
one's length. Single ReLUs that flip make errors of some inputs much larger than the typical one, in any f32 arithmetic.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

import networks


def gradient(model, inputs):
    x = inputs.detach().requires_grad_()
    scores = model(x)
    rows = torch.arange(len(inputs))
    return torch.autograd.grad(scores[rows, rows % scores.shape[1]].sum(), x)[0].double().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("network")
    parser.add_argument("--inputs", type=int, default=16)
    parser.add_argument("--arithmetic", default="fast")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("target/bench-networks"))
    arguments = parser.parse_args()
    shape = (arguments.inputs, *networks.size(arguments.network))
    inputs = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    torch.set_num_threads(1)
    model = networks.build(arguments.network)
    plain = gradient(model, torch.from_numpy(inputs))
    exact = gradient(model.double(), torch.from_numpy(inputs).double())
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/inputs.npy", inputs)
        command = [arguments.program, arguments.models / f"{arguments.network}.onnx", f"{folder}/inputs.npy", "rten"]
        command += [f"{folder}/gradients.npy", arguments.arithmetic]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, input="gradient\n", text=True, check=True, env=environment, stdout=subprocess.DEVNULL)
        ours = np.load(f"{folder}/gradients.npy").astype(np.float64).reshape(shape)
    for name, found in (("torch f32", plain), (f"brenier {arguments.arithmetic}", ours)):
        gaps = [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, exact)]
        print(f"{arguments.network}, {name}: median {np.median(gaps):.1e}, largest {max(gaps):.1e} of {len(gaps)}")


if __name__ == "__main__":
    main()
