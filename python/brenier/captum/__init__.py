"""Captum's classes with Captum's arguments: replace ``from captum.attr import X`` by ``from brenier.captum import X``.

A module is exported to ONNX in eval mode and explained there, without an autograd graph in memory; it is exported again when
its weights change. Other functions are asked as they are, with torch's gradients. ``docs/python.md`` says what differs.
"""

from __future__ import annotations

from ._gradients import (
    LRP,
    Deconvolution,
    DeepLift,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    NoiseTunnel,
    Saliency,
)
from ._layers import LayerGradCam, LayerIntegratedGradients
from ._perturbation import FeatureAblation, KernelShap, Lime, Occlusion, ShapleyValueSampling

__all__ = [
    "LRP",
    "Deconvolution",
    "DeepLift",
    "FeatureAblation",
    "GradientShap",
    "GuidedBackprop",
    "InputXGradient",
    "IntegratedGradients",
    "KernelShap",
    "LayerGradCam",
    "LayerIntegratedGradients",
    "Lime",
    "NoiseTunnel",
    "Occlusion",
    "Saliency",
    "ShapleyValueSampling",
]
