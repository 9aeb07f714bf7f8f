"""Models of scikit-learn, XGBoost and LightGBM as ONNX."""

from __future__ import annotations

from typing import Any

from .exceptions import ModelError


def converted(model: Any, columns: int | None, frame: Any = None) -> bytes:
    """The bytes of the ONNX model; of a pipeline that was fitted on a data frame, with an input for each column of ``frame``."""
    by_name = frame is not None and hasattr(model, "steps") and hasattr(model, "feature_names_in_")
    if columns is None:
        columns = getattr(model, "n_features_in_", None)
    if columns is None:
        raise ModelError(
            f"the number of columns of {type(model).__name__} is not known\nhint: fit it first, or give input_shape=, such as "
            "input_shape=(4,)"
        )
    family = type(model).__module__.split(".")[0]
    try:
        if family == "sklearn":
            from skl2onnx import to_onnx
            from skl2onnx.common.data_types import FloatTensorType

            options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
            if by_name:
                proto = to_onnx(model, frame[list(model.feature_names_in_)][:1], options=_final(model))
            else:
                proto = to_onnx(model, initial_types=[("x", FloatTensorType([None, int(columns)]))], options=options)
        else:
            import onnxmltools
            from onnxmltools.convert.common.data_types import FloatTensorType

            convert = onnxmltools.convert_xgboost if family == "xgboost" else onnxmltools.convert_lightgbm
            extra = {"zipmap": False} if family == "lightgbm" else {}
            proto = convert(model, initial_types=[("x", FloatTensorType([None, int(columns)]))], **extra)
    except ImportError as error:
        package = "skl2onnx" if family == "sklearn" else "onnxmltools"
        raise ModelError(
            f"a model of {family} is converted by {package}, which is not installed\nhint: pip install {package} onnxruntime, "
            "or give the function that predicts: brenier.Model(model.predict_proba, input_shape=...)"
        ) from error
    return bytes(proto.SerializeToString())


def _final(pipeline: Any) -> dict[int, dict[str, bool]] | None:
    """Probabilities as an array, not as a list of dicts."""
    final = pipeline.steps[-1][1]
    return {id(final): {"zipmap": False}} if hasattr(final, "classes_") else None
