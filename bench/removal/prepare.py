"""Images, one network in two forms, and ten attributions of each image: python prepare.py CIFAR10_FOLDER WORK.

The attributions are shared by both programs, because the evaluation is what is measured. They are gradients of a noisy
input and the like: ten different orders of the pixels.
"""

import pathlib
import sys

import numpy as np
import torch
from model import network
from PIL import Image

IMAGES, METHODS = 200, 10


def images(folder):
    """The first test images, [200, 3, 32, 32] from 0 to 1: of the binary version, or of PNG sprites."""
    records = folder / "test_batch.bin"
    if records.exists():
        raw = np.fromfile(records, np.uint8).reshape(-1, 3073)[:IMAGES, 1:]
        return raw.reshape(-1, 3, 32, 32).astype(np.float32) / 255
    Image.MAX_IMAGE_PIXELS = None
    raw = np.asarray(Image.open(folder / "test_batch.png").convert("RGB"))[:IMAGES]
    return np.ascontiguousarray(raw.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)).astype(np.float32) / 255


def main():
    folder, work = map(pathlib.Path, sys.argv[1:])
    work.mkdir(parents=True, exist_ok=True)
    model, x = network(), images(folder)
    torch.save(model.state_dict(), work / "weights.pt")
    tensor = torch.from_numpy(x)
    torch.onnx.export(
        model, (tensor[:2],), str(work / "model.onnx"), input_names=["x"], output_names=["logits"],
        dynamic_shapes={"x": {0: torch.export.Dim("N", min=1, max=4096)}}, dynamo=True, external_data=False,
    )
    with torch.no_grad():
        targets = model(tensor).argmax(1)
    credit = np.empty((METHODS, *x.shape), np.float32)
    generator = torch.Generator().manual_seed(0)
    for method in range(METHODS):
        noisy = (tensor + 0.03 * method * torch.randn(tensor.shape, generator=generator)).requires_grad_()
        model(noisy)[torch.arange(len(x)), targets].sum().backward()
        credit[method] = (noisy.grad * (tensor if method % 2 else 1.0)).numpy()
    for name, array in (("inputs", x), ("targets", targets.numpy()), ("credit", credit)):
        np.save(work / f"{name}.npy", array)


main()
