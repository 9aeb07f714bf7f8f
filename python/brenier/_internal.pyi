"""The native half: flat rows in float64 and settings as JSON. Use the package itself."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Flow", "Model", "VERSION", "evaluate", "explain", "export", "heat_map", "inspect", "load", "method", "methods", "metrics", "reasons", "reflow",
    "save", "shift", "text", "token_credit", "train_flow",
]

_Rows: TypeAlias = NDArray[np.float64]
_Path: TypeAlias = str | PathLike[str]
_Found: TypeAlias = tuple[_Rows, _Rows, _Rows | None, _Rows | None, str]

VERSION: Final[str]

@final
class Model:
    @staticmethod
    def from_file(path: _Path, options: str) -> Model: ...
    @staticmethod
    def from_bytes(content: bytes, options: str) -> Model: ...
    @staticmethod
    def from_functions(
        shape: Sequence[int], scores: Callable[..., Any], gradients: Callable[..., Any] | None = None
    ) -> Model: ...
    def shape(self) -> list[int]: ...
    def outputs(self) -> int | None: ...
    def notices(self) -> list[str]: ...
    def classes(self) -> list[str]: ...
    def metadata(self) -> dict[str, str]: ...
    def hash(self) -> str | None: ...
    def scores(self, rows: _Rows) -> _Rows: ...
    def gradients(self, rows: _Rows, targets: Sequence[int]) -> tuple[NDArray[np.float64], _Rows]: ...
    def layer(
        self, rows: _Rows, targets: Sequence[int], name: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class Flow:
    @staticmethod
    def open(path: _Path | None, content: bytes | None, engine: str) -> Flow: ...
    def shape(self) -> list[int]: ...
    def is_diffusion(self) -> bool: ...
    def reference(self) -> str | None: ...
    def hash(self) -> str: ...
    def carry(self, rows: _Rows, times: tuple[float, float], tolerance: float, normal: bool) -> _Rows: ...
    def calibration(self) -> str | None: ...
    def calibrated(self, held_out: _Rows, rows: int, seed: int, progress: Any | None) -> bytes: ...

def text(
    model: Model, tokenizer: _Path, texts: Sequence[str], baseline: str | None = None, max_tokens: int | None = None
) -> tuple[Model, _Rows, _Rows, _Rows, list[str], str, list[str]]: ...
def token_credit(model: Model, ids: str, rows: _Rows) -> _Rows: ...
def method(name: str, settings: str, given: Sequence[str]) -> str: ...
def methods() -> list[dict[str, Any]]: ...
def metrics() -> list[dict[str, Any]]: ...
def inspect(path: _Path | None = None, content: bytes | None = None) -> str: ...
def explain(
    model: Model,
    rows: _Rows,
    method: str,
    targets: tuple[str, Sequence[int]],
    *,
    baselines: _Rows | None = None,
    background: _Rows | None = None,
    flows: Sequence[Flow] = ...,
    against: tuple[_Rows, _Rows] | None = None,
    progress: Callable[[int], object] | None = None,
) -> _Found: ...
def evaluate(
    model: Model,
    rows: _Rows,
    methods: Sequence[str],
    metrics: Sequence[str],
    settings: str,
    targets: Sequence[int] | None,
    *,
    baselines: _Rows | None = None,
    background: _Rows | None = None,
    flows: Sequence[Flow] = ...,
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def export(model: Model, settings: str, references: _Rows | None = None) -> bytes: ...
def shift(
    model: Model,
    target: int,
    before: tuple[str, _Rows],
    after: tuple[str, _Rows],
    columns: Sequence[str] | None,
    config: str,
) -> tuple[str, list[str]]: ...
def train_flow(rows: dict[str, Any], settings: str, folder: _Path, progress: Any | None) -> str: ...
def reflow(flow: Flow, rows: dict[str, Any], settings: str, folder: _Path, progress: Any | None) -> str: ...
def save(
    place: _Path,
    shape: Sequence[int],
    values: _Rows,
    inputs: _Rows,
    references: _Rows | None,
    standard_errors: _Rows | None,
    certificates: str,
    parquet_names: str | None = None,
) -> None: ...
def load(place: _Path) -> tuple[list[int], _Found, str | None]: ...
def reasons(
    values: _Rows,
    inputs: _Rows,
    references: _Rows | None,
    standard_errors: _Rows | None,
    certificates: str,
    features: Sequence[str],
    classes: Sequence[str],
    count: int,
    side: str,
    sentence: str | None,
) -> str: ...
def heat_map(shape: Sequence[int], values: _Rows, inputs: _Rows, certificate: str) -> bytes: ...
