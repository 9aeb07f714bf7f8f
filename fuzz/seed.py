"""Copies the smaller models of fixtures/ into fuzz/corpus/read, where `cargo fuzz run read` starts from."""

import pathlib
import shutil

root = pathlib.Path(__file__).parent.parent
corpus = root / "fuzz" / "corpus" / "read"
corpus.mkdir(parents=True, exist_ok=True)
for model in sorted((root / "fixtures").rglob("*.onnx")):
    if model.stat().st_size <= 32_768:
        name = "-".join(model.relative_to(root / "fixtures").parts)
        shutil.copyfile(model, corpus / name)
