"""Remedies of the library that name flags of the command line, in arguments of this package."""

from __future__ import annotations

import re

# The one table: what the library's messages say, and what is said here.
_WORDS: dict[str, str] = {
    "--among": "among=",
    "--background DATA": "background=",
    "--background": "background=",
    "--engine ort": "engine='ort'",
    "--flow": "flow=",
    "--input-shape 3,224,224": "input_shape=(3, 224, 224)",
    "--input-shape 12": "input_shape=(12,)",
    "--input-shape": "input_shape=",
    "--inversion-steps": "inversion_steps=",
    "--keep-softmax": "keep_softmax=True",
    "--layer": "layer=",
    "--method ddim": "method='ddim'",
    "--method": "method=",
    "(--model)": "(the model)",
    "--metric-steps": "steps=",
    "--reference": "reference=",
    "--scale 255": "preprocessing={'scale': 255}",
    "--solver-tolerance": "solver_tolerance=",
    "--targets": "targets=",
    "--tolerance": "tolerance=",
    "--categorical": "a column of text",
    "--classes": "classes=",
    "--drop": "leaving it out of the table",
    "(brenier calibrate)": "(Flow.calibrate())",
    "`brenier inspect`": "brenier.inspect(model)",
    "`brenier explain -o`": "Explanations.save()",
}
_PATTERN = re.compile("|".join(re.escape(flag) for flag in sorted(_WORDS, key=len, reverse=True)))


def in_arguments(message: str) -> str:
    """The message with arguments where it has flags."""
    return _PATTERN.sub(lambda found: _WORDS[found.group()], message)
