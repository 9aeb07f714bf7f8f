"""The networks that are timed, with batch normalisation folded, the same weights every time."""

import sys
import pathlib

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "gradient"))

NAMES = ("residual16", "residual64", "resnet18", "mobilenet_v3_small", "resnet50", "efficientnet_b0", "vit_tiny")


def size(name):
    return (3, 32, 32) if name.startswith("residual") else (3, 224, 224)


def fold(module):
    """Batch normalisation behind a convolution goes into its weights, wherever the two are neighbours."""
    children = list(module.named_children())
    for (first, conv), (second, norm) in zip(children, children[1:]):
        if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            setattr(module, first, fuse_conv_bn_eval(conv, norm))
            setattr(module, second, nn.Identity())
    for _, child in children:
        fold(child)
    return module


def statistics_that_matter(model):
    """Random weights leave batch normalisation without effect: give it some."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            shape = module.weight.shape
            module.weight.data = 0.7 + 0.2 * torch.rand(shape, generator=generator)
            module.bias.data = 0.1 * torch.randn(shape, generator=generator)
            module.running_mean = 0.1 * torch.randn(shape, generator=generator)
            module.running_var = 0.5 + torch.rand(shape, generator=generator)
    return model


def build(name):
    torch.manual_seed(0)
    if name.startswith("residual"):
        import models

        model = models.build(int(name.removeprefix("residual")))
    elif name == "vit_tiny":
        import timm

        model = timm.create_model("vit_tiny_patch16_224")
    else:
        import torchvision

        model = statistics_that_matter(getattr(torchvision.models, name)())
    model = fold(model.eval())
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model
