"""Arrays as they come: NumPy, torch, pandas, polars, PIL, lists. All become flat rows in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exceptions import DataError, NotFiniteError, ShapeError

Rows = NDArray[np.float64]


class Given:
    """What was given: an array ``[examples, ...]``, and the names of its columns where it has them.

    A data frame stays one until its numbers are asked for: which model takes it says what text in it means.
    """

    def __init__(
        self, array: Rows | None = None, columns: list[str] | None = None, *, frame: Any = None, what: str = "the input"
    ) -> None:
        self._array, self.columns, self.frame, self._what = array, columns, frame, what

    @property
    def array(self) -> Rows:
        """The numbers; text is refused."""
        if self._array is None:
            self._array = np.ascontiguousarray(numbers(self.frame.to_numpy(), self._what), dtype=np.float64)
        return self._array


def _is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def _is_picture(x: Any) -> bool:
    return type(x).__module__.startswith("PIL.") and hasattr(x, "getbands")


def _picture(x: Any) -> Rows:
    """An image [channels, height, width], 255 as 1: as the command line reads files."""
    pixels = np.asarray(x.convert("RGB") if x.mode not in ("L", "RGB") else x, dtype=np.float64) / 255.0
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)


def numbers(x: Any, what: str = "the input") -> NDArray[Any]:
    """An array of numbers, whatever it came as; the dtype is kept."""
    if hasattr(x, "detach") and hasattr(x, "cpu"):
        x = x.detach().cpu().resolve_conj() if hasattr(x, "resolve_conj") else x.detach().cpu()
        if str(x.dtype) == "torch.bfloat16":
            x = x.float()
        x = x.numpy()
    try:
        array = np.asarray(x)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{what} cannot be read as an array: {error}\nhint: give a NumPy array, a tensor, a data frame, or rows of "
            "equal length"
        ) from error
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{what} holds something that is no number: {error}\nhint: code categories as numbers first, the way the "
                "model was trained"
            ) from error
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"{what} is of dtype {array.dtype}\nhint: give real numbers; code categories as numbers first, the way the "
            "model was trained"
        )
    return array


def given(x: Any, what: str = "the input") -> Given:
    """What a user gave as inputs."""
    if isinstance(x, Given):
        return x
    if _is_picture(x):
        return Given(_picture(x)[None])
    if isinstance(x, (list, tuple)) and x and all(_is_picture(item) for item in x):
        pictures = [_picture(item) for item in x]
        if len({picture.shape for picture in pictures}) > 1:
            raise ShapeError(
                f"the images have different shapes: {sorted({p.shape for p in pictures})}\nhint: resize them to one size"
            )
        return Given(np.stack(pictures))
    if _is_frame(x):
        return Given(columns=[str(name) for name in x.columns], frame=x, what=what)
    return Given(np.ascontiguousarray(numbers(x, what), dtype=np.float64))


def rows(x: Given, shape: tuple[int, ...], what: str = "the input") -> Rows:
    """Flat rows of a model that takes this shape; refuses others, and numbers that are none."""
    array = x.array
    if array.shape[1:] != shape or array.ndim == 0:
        found = tuple(array.shape)
        if found == shape:
            hint = f"give a batch: x[None] has shape {(1, *shape)}"
        elif array.ndim == len(shape) + 1 and len(shape) == 3 and (found[3], found[1], found[2]) == shape:
            hint = "axes are [example, channel, height, width]: use np.moveaxis(x, -1, 1)"
        else:
            hint = f"give an array of shape [examples, {', '.join(map(str, shape))}]"
        raise ShapeError(f"{what} has shape {found}, but the model takes {('N', *shape)}\nhint: {hint}")
    flat = array.reshape(array.shape[0], int(np.prod(shape)))
    if not np.isfinite(flat).all():
        row, feature = (int(i) for i in np.argwhere(~np.isfinite(flat))[0])
        name = x.columns[feature] if x.columns else (
            f"feature {feature}" if len(shape) == 1 else f"place {tuple(int(i) for i in np.unravel_index(feature, shape))}"
        )
        raise NotFiniteError(
            f"{what} is {flat[row, feature]} in row {row} at {name}\nhint: remove the row, or fill in the value"
        )
    return np.ascontiguousarray(flat)
