"""Explains the first test images one by one and prints a table: python drive.py PROGRAM CIFAR10_FOLDER ROUNDS."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

IMAGES = 7
ASSETS = pathlib.Path(__file__).parents[2] / "assets" / "cifar10"


def images(folder):
    """The first test images, [7, 3, 32, 32] from 0 to 1: of the binary version, or of PNG sprites."""
    records = folder / "test_batch.bin"
    if records.exists():
        raw = np.fromfile(records, np.uint8).reshape(-1, 3073)[:IMAGES, 1:].reshape(-1, 3, 32, 32)
    else:
        Image.MAX_IMAGE_PIXELS = None
        raw = np.asarray(Image.open(folder / "test_batch.png").convert("RGB"))[:IMAGES]
        raw = raw.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(raw).astype(np.float32) / 255


def main():
    program, folder, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    models = ["classifier-smooth.onnx", "classifier.onnx"]
    seconds, gradients = {model: [] for model in models}, {model: [] for model in models}
    with tempfile.TemporaryDirectory() as work:
        files = []
        for i, image in enumerate(images(folder)):
            files.append(f"{work}/{i}.npy")
            np.save(files[-1], image[None])
        for _ in range(rounds):
            for file in files:
                for model in models:
                    command = [program, "explain", "-m", ASSETS / model, "-f", ASSETS / "flow-2rf.onnx", file]
                    began = time.perf_counter()
                    done = subprocess.run([*command, "--format", "json"], check=True, capture_output=True, text=True)
                    seconds[model].append(time.perf_counter() - began)
                    gradients[model].append(json.loads(done.stdout)[0]["gradient_evaluations"])
    print("| classifier | seconds, median | least | most | gradients |\n|---|---|---|---|---|")
    for model in models:
        times, counts = seconds[model], gradients[model]
        row = [f"{v:.2f}" for v in (statistics.median(times), min(times), max(times))]
        print(f"| `{model}` | {' | '.join(row)} | {min(counts)} to {max(counts)} |")


main()
