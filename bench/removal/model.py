"""A residual network for CIFAR-10 of 20 layers, in plain PyTorch."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = torch.relu(self.norm1(self.first(x)))
        return torch.relu(self.norm2(self.second(y)) + self.short(x))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
        for stage, outputs in enumerate((16, 32, 64)):
            for block in range(3):
                layers.append(Block(width, outputs, 2 if stage and not block else 1))
                width = outputs
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def network(seed=0):
    """Random weights: how long an evaluation takes does not depend on what the network has learned."""
    torch.manual_seed(seed)
    return ResNet20().eval()
