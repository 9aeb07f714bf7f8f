"""PyTorch's side of the comparison: eager mode, one measurement for each line on stdin.

    python peer.py WIDTH INPUTS.npy LAYOUT

LAYOUT is nchw or channels_last. The protocol is in README.md.
"""

import json
import os
import resource
import sys
import time

import numpy as np
import torch

import models


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    width, path, layout = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    form = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}[layout]
    model = models.build(width).to(memory_format=form)
    inputs = torch.from_numpy(np.load(path)).contiguous(memory_format=form)
    rows = torch.arange(len(inputs))
    targets = rows % models.CLASSES

    def forward():
        with torch.inference_mode():
            return model(inputs)

    def gradient():
        x = inputs.detach().requires_grad_()
        picked = model(x)[rows, targets].sum()
        return torch.autograd.grad(picked, x)[0]

    work = {"forward": forward, "gradient": gradient}
    start = peak_megabytes()
    for line in sys.stdin:
        what = line.strip()
        begin = time.perf_counter()
        result = work[what]()
        elapsed = time.perf_counter() - begin
        report = {
            "what": what,
            "milliseconds": 1000 * elapsed,
            "peak_rss_mb": peak_megabytes(),
            "start_rss_mb": start,
            "mean_abs": result.abs().mean().item(),
        }
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
