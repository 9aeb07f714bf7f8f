"""Quantus' side: python peer.py WORK STEP_FEATURES prints seconds and the mean area of deletion and insertion."""

import json
import pathlib
import sys
import time

import numpy as np
import quantus
import torch
from model import network


def main():
    work, step = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    model = network()
    model.load_state_dict(torch.load(work / "weights.pt"))
    x, y, credit = (np.load(work / f"{name}.npy") for name in ("inputs", "targets", "credit"))
    metric = quantus.PixelFlipping(
        features_in_step=step, perturb_baseline="black", abs=False, normalise=False, return_aggregate=False,
        disable_warnings=True, display_progressbar=False,
    )
    with torch.no_grad():
        whole = model(torch.from_numpy(x))[torch.arange(len(x)), torch.from_numpy(y)].numpy()
    began = time.perf_counter()
    deletion, insertion = [], []
    with torch.no_grad():
        for a in credit:
            call = dict(model=model, x_batch=x, y_batch=y, softmax=False, channel_first=True, batch_size=len(x))
            deletion.append(np.asarray(metric(a_batch=a, **call)))
            # Putting the highest back into black is taking the lowest away, read from the end.
            insertion.append(np.asarray(metric(a_batch=-a, **call)))
    seconds = time.perf_counter() - began

    def area(curves):
        """Trapezoids over the fractions, the untouched image at one end."""
        return np.trapezoid(np.concatenate([whole[:, None], curves], 1), axis=1).mean() / curves.shape[1]

    print(json.dumps({
        "seconds": seconds,
        "deletion": float(np.mean([area(curves) for curves in deletion])),
        "insertion": float(np.mean([area(curves) for curves in insertion])),
    }))


main()
