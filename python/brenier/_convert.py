"""Models of scikit-learn, XGBoost and LightGBM as ONNX."""

from __future__ import annotations

from typing import Any

from .exceptions import ModelError


def converted(model: Any, columns: int | None) -> bytes:
    """The bytes of the ONNX model."""
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
