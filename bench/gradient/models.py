"""The residual network that is timed: CIFAR-shaped, six basic blocks, width `w`."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTHS = (16, 64)
CLASSES = 10
SHAPE = (3, 32, 32)


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)
            )

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(SHAPE[0], w, 3, 1, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU()
        )
        self.blocks = nn.Sequential(
            Block(w, w, 1),
            Block(w, w, 1),
            Block(w, 2 * w, 2),
            Block(2 * w, 2 * w, 1),
            Block(2 * w, 4 * w, 2),
            Block(4 * w, 4 * w, 1),
        )
        self.fc = nn.Linear(4 * w, CLASSES)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1)
        return self.fc(torch.flatten(x, 1))


def build(w):
    """The same weights every time, with running statistics that matter; eval mode, frozen."""
    torch.manual_seed(w)
    model = ResNet(w)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if isinstance(module, nn.BatchNorm2d):
                module.weight.copy_(0.7 + 0.2 * torch.rand_like(module.weight))
                module.bias.copy_(0.1 * torch.randn_like(module.bias))
                module.running_mean.copy_(0.1 * torch.randn_like(module.running_mean))
                module.running_var.copy_(0.5 + torch.rand_like(module.running_var))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()
