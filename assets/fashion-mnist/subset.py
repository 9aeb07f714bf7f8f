"""Cuts the images of the demo out of Fashion-MNIST: subset.py FOLDER-WITH-FASHION-MNIST

The first 2,600 training images and the first 100 test images, with their labels, as IDX files beside this script.
"""

import gzip
import sys
from pathlib import Path

KEPT = {"train": 2600, "t10k": 100}

here = Path(__file__).parent
source = Path(sys.argv[1])
for part, count in KEPT.items():
    for kind, row in (("images-idx3", 28 * 28), ("labels-idx1", 1)):
        name = f"{part}-{kind}-ubyte"
        packed = source / f"{name}.gz"
        data = gzip.decompress(packed.read_bytes()) if packed.exists() else (source / name).read_bytes()
        axes = data[3]
        header = data[:4] + count.to_bytes(4, "big") + data[8 : 4 + 4 * axes]
        begin = 4 + 4 * axes
        # No time stamp: the same bytes every time.
        (here / f"{name}.gz").write_bytes(gzip.compress(header + data[begin : begin + count * row], mtime=0))
