"""The U-Net of `brenier::flow::UnetConfig` in PyTorch, layer for layer."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, channels, out, time, groups):
        super().__init__()
        self.norm0 = nn.GroupNorm(groups, channels)
        self.conv0 = nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm1 = nn.GroupNorm(groups, out)
        self.conv1 = nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, e):
        h = self.conv0(F.silu(self.norm0(x))) + self.time(e)[:, :, None, None]
        return self.skip(x) + self.conv1(F.silu(self.norm1(h)))


class Attention(nn.Module):
    def __init__(self, channels, heads, groups):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(groups, channels)
        self.query, self.key, self.value, self.out = (nn.Linear(channels, channels) for _ in range(4))

    def forward(self, x):
        n, c, h, w = x.shape
        tokens = self.norm(x).reshape(n, c, h * w).transpose(1, 2)

        def split(layer):
            return layer(tokens).reshape(n, h * w, self.heads, c // self.heads).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(split(self.query), split(self.key), split(self.value))
        mixed = mixed.transpose(1, 2).reshape(n, h * w, c)
        return x + self.out(mixed).transpose(1, 2).reshape(n, c, h, w)


class Unet(nn.Module):
    def __init__(self, channels=3, size=32, width=32, levels=(1, 2, 2), patch=1, attention_at=8, heads=2, groups=8):
        super().__init__()
        self.patch, self.frequencies = patch, 30.0 ** torch.linspace(0, 1, width // 2)
        points, time, resolution = channels * patch * patch, 4 * width, size // patch
        self.time0, self.time1 = nn.Linear(width, time), nn.Linear(time, time)
        self.input = nn.Conv2d(points, width, 3, padding=1)

        def block(inputs, outputs):
            layers = [Residual(inputs, outputs, time, groups)]
            if resolution <= attention_at:
                layers.append(Attention(outputs, heads, groups))
            return nn.ModuleList(layers)

        at, skips, self.down, self.up = width, [width], nn.ModuleList(), nn.ModuleList()
        for level, multiple in enumerate(levels):
            self.down.append(block(at, width * multiple))
            at = width * multiple
            skips.append(at)
            if level + 1 < len(levels):
                self.down.append(nn.Conv2d(at, at, 3, stride=2, padding=1))
                skips.append(at)
                resolution //= 2
        self.middle0, self.middle1 = block(at, at), Residual(at, at, time, groups)
        for level in reversed(range(len(levels))):
            for _ in range(2):
                self.up.append(block(at + skips.pop(), width * levels[level]))
                at = width * levels[level]
            if level > 0:
                self.up.append(nn.Conv2d(at, at, 3, padding=1))
                resolution *= 2
        self.norm, self.output = nn.GroupNorm(groups, at), nn.Conv2d(at, points, 3, padding=1)

    def forward(self, x, t):
        phase = t[:, None] * self.frequencies
        e = torch.cat([phase.sin(), phase.cos()], 1)
        e = F.silu(self.time1(F.silu(self.time0(e))))

        def run(layers, h):
            for layer in layers:
                h = layer(h, e) if isinstance(layer, Residual) else layer(h)
            return h

        h = self.input(F.pixel_unshuffle(x, self.patch) if self.patch > 1 else x)
        skips = [h]
        for layer in self.down:
            h = layer(h) if isinstance(layer, nn.Conv2d) else run(layer, h)
            skips.append(h)
        h = self.middle1(run(self.middle0, h), e)
        for layer in self.up:
            if isinstance(layer, nn.Conv2d):
                h = layer(F.interpolate(h, scale_factor=2, mode="nearest"))
            else:
                h = run(layer, torch.cat([h, skips.pop()], 1))
        v = self.output(F.silu(self.norm(h)))
        return F.pixel_shuffle(v, self.patch) if self.patch > 1 else v
