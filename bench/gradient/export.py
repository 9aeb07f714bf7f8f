"""Writes resnet16.onnx, resnet64.onnx and inputs.npy.

    python export.py FOLDER
"""

import pathlib
import sys
import warnings

import numpy as np
import torch

import models

ROWS = 50
OPSET = 17


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    inputs = np.random.default_rng(0).standard_normal((ROWS, *models.SHAPE), dtype=np.float32)
    np.save(folder / "inputs.npy", inputs)
    for width in models.WIDTHS:
        torch.onnx.export(
            models.build(width),
            (torch.from_numpy(inputs[:2]),),
            folder / f"resnet{width}.onnx",
            dynamo=False,
            opset_version=OPSET,
            input_names=["x"],
            output_names=["logits"],
            dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}},
        )


if __name__ == "__main__":
    main()
