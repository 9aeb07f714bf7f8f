"""Times training steps of the U-Net in PyTorch: python peer.py nchw|channels_last BATCH STEPS WIDTH PATCH LEVELS.

Prints a line of JSON like `training_speed`: rectified-flow loss, clipping, AdamW, on random data.
"""

import json
import sys
import time

import torch

from unet import Unet

layout, batch, steps, width, patch, levels = sys.argv[1:]
batch, steps = int(batch), int(steps)
torch.manual_seed(0)
torch.set_num_threads(2)
model = Unet(width=int(width), patch=int(patch), levels=tuple(int(m) for m in levels.split(",")))
form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
model = model.to(memory_format=form)
optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
times = []
for _ in range(steps + 2):
    began = time.perf_counter()
    z0 = torch.randn(batch, 3, 32, 32).to(memory_format=form)
    z1 = torch.randn(batch, 3, 32, 32).to(memory_format=form)
    t = torch.rand(batch)
    x = z0 + (z1 - z0) * t[:, None, None, None]
    loss = ((model(x, t) - (z1 - z0)) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    times.append(1e3 * (time.perf_counter() - began))
times = sorted(times[2:])
print(
    json.dumps(
        {
            "parameters": sum(p.numel() for p in model.parameters()),
            "best_ms": times[0],
            "median_ms": times[len(times) // 2],
        }
    )
)
