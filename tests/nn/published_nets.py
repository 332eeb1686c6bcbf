"""The published networks once more, written from their papers and the names of two libraries, as functions.

They make up the tensors that they need as they go, by the name and shape that the library has for them, and
apply them. So one forward pass gives a state dict of that library and what its network makes of an image.
Shares no code with radreason or MONAI.

    torchvision  torchvision/models/{resnet,densenet,efficientnet}.py of pytorch/vision
    timm         timm/models/{_efficientnet_blocks,efficientnet}.py of huggingface/pytorch-image-models
"""

import torch
from torch.nn import functional

PARAMETERS = {"resnet50": 25_557_032, "densenet121": 7_978_856, "efficientnet-b4": 19_341_616}
"""As torchvision states them ("num_params") for its files."""


class Made:
    """Tensors by name, made up when they are first asked for."""

    def __init__(self, seed=0):
        self.state = {}
        self.generator = torch.Generator().manual_seed(seed)

    def drawn(self, name, *shape, low=-1.0, high=1.0):
        noise = torch.rand(shape, generator=self.generator, dtype=torch.float64)
        return self.state.setdefault(name, low + (high - low) * noise)

    def conv(self, x, name, out, size, stride=1, groups=1, bias=False):
        fan = x.shape[1] // groups * size**2
        weight = self.drawn(f"{name}.weight", out, x.shape[1] // groups, size, size)
        weight.mul_((3 / fan) ** 0.5)
        added = self.drawn(f"{name}.bias", out) if bias else None
        return functional.conv2d(x, weight, added, stride, size // 2, groups=groups)

    def norm(self, x, name, eps):
        c = x.shape[1]
        weight, bias = self.drawn(f"{name}.weight", c, low=0.5), self.drawn(f"{name}.bias", c)
        mean, var = self.drawn(f"{name}.running_mean", c), self.drawn(f"{name}.running_var", c, low=0.5)
        self.state[f"{name}.num_batches_tracked"] = torch.tensor(7)
        return functional.batch_norm(x, mean, var, weight, bias, eps=eps)

    def linear(self, name, before):
        self.drawn(f"{name}.weight", 1000, before)
        self.drawn(f"{name}.bias", 1000)

    @property
    def parameters(self):
        buffers = ("running_mean", "running_var", "num_batches_tracked")
        return sum(t.numel() for name, t in self.state.items() if not name.endswith(buffers))


def resnet50(made, x):
    x = functional.relu(made.norm(made.conv(x, "conv1", 64, 7, 2), "bn1", 1e-5))
    x = functional.max_pool2d(x, 3, 2, 1)
    maps = []
    for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True), 1):
        for block in range(blocks):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = functional.relu(made.norm(made.conv(x, f"{at}.conv1", width, 1), f"{at}.bn1", 1e-5))
            y = functional.relu(made.norm(made.conv(y, f"{at}.conv2", width, 3, stride), f"{at}.bn2", 1e-5))
            y = made.norm(made.conv(y, f"{at}.conv3", 4 * width, 1), f"{at}.bn3", 1e-5)
            if block == 0:
                x = made.norm(
                    made.conv(x, f"{at}.downsample.0", 4 * width, 1, stride), f"{at}.downsample.1", 1e-5
                )
            x = functional.relu(x + y)
        maps.append(x)
    made.linear("fc", 2048)
    return maps


def densenet121(made, x):
    x = functional.relu(made.norm(made.conv(x, "features.conv0", 64, 7, 2), "features.norm0", 1e-5))
    x = functional.max_pool2d(x, 3, 2, 1)
    maps = []
    for block, layers in enumerate((6, 12, 24, 16), 1):
        for layer in range(1, layers + 1):
            at = f"features.denseblock{block}.denselayer{layer}"
            y = made.conv(functional.relu(made.norm(x, f"{at}.norm1", 1e-5)), f"{at}.conv1", 128, 1)
            y = made.conv(functional.relu(made.norm(y, f"{at}.norm2", 1e-5)), f"{at}.conv2", 32, 3)
            x = torch.cat([x, y], 1)
        at = f"features.transition{block}" if block < 4 else "features"
        x = functional.relu(made.norm(x, f"{at}.norm{'' if block < 4 else 5}", 1e-5))
        maps.append(x)
        if block < 4:
            x = functional.avg_pool2d(made.conv(x, f"{at}.conv", x.shape[1] // 2, 1), 2)
    made.linear("classifier", 1024)
    return maps


STAGES = [  # expansion, kernel, stride, channels, blocks: B4 is B0 times 1.4 in width and 1.8 in depth
    (1, 3, 1, 24, 2),
    (6, 3, 2, 32, 4),
    (6, 5, 2, 56, 4),
    (6, 3, 2, 112, 6),
    (6, 5, 1, 160, 6),
    (6, 5, 2, 272, 8),
    (6, 3, 1, 448, 2),
]


def efficientnet_b4(made, x, names):
    eps = 1e-3  # as the paper's own; what torchvision trained has 1e-5
    stem, head, linear, parts = names
    x = functional.silu(made.norm(made.conv(x, stem[0], 48, 3, 2), stem[1], eps))
    maps = []
    for stage, (expansion, kernel, stride, channels, blocks) in enumerate(STAGES):
        for block in range(blocks):
            expand, depthwise, reduce, back, project = parts(stage, block)
            y, before = x, x.shape[1]
            if expansion > 1:
                y = functional.silu(made.norm(made.conv(y, expand[0], before * expansion, 1), expand[1], eps))
            step = stride if block == 0 else 1
            y = made.conv(y, depthwise[0], y.shape[1], kernel, step, groups=y.shape[1])
            y = functional.silu(made.norm(y, depthwise[1], eps))
            gate = functional.silu(made.conv(y.mean((2, 3), keepdim=True), reduce, before // 4, 1, bias=True))
            y = y * torch.sigmoid(made.conv(gate, back, y.shape[1], 1, bias=True))
            y = made.norm(made.conv(y, project[0], channels, 1), project[1], eps)
            x = x + y if step == 1 and before == channels else y
        maps.append(x)
    made.norm(made.conv(x, head[0], 1792, 1), head[1], eps)
    made.linear(linear, 1792)
    return [maps[1], maps[2], maps[4], maps[6]]


def _timm(stage, block):
    at = f"blocks.{stage}.{block}"
    se = f"{at}.se.conv_reduce", f"{at}.se.conv_expand"
    if stage == 0:  # DepthwiseSeparableConv
        return None, (f"{at}.conv_dw", f"{at}.bn1"), *se, (f"{at}.conv_pw", f"{at}.bn2")
    return (
        (f"{at}.conv_pw", f"{at}.bn1"),
        (f"{at}.conv_dw", f"{at}.bn2"),
        *se,
        (f"{at}.conv_pwl", f"{at}.bn3"),
    )


def _torchvision(stage, block):
    at = f"features.{stage + 1}.{block}.block"
    steps = [None, 0, 1, 2] if stage == 0 else [0, 1, 2, 3]
    expand, depthwise, squeeze, project = (f"{at}.{step}" for step in steps)
    return (
        (f"{expand}.0", f"{expand}.1"),
        (f"{depthwise}.0", f"{depthwise}.1"),
        f"{squeeze}.fc1",
        f"{squeeze}.fc2",
        (f"{project}.0", f"{project}.1"),
    )


TIMM = ("conv_stem", "bn1"), ("conv_head", "bn2"), "classifier", _timm
TORCHVISION = ("features.0.0", "features.0.1"), ("features.8.0", "features.8.1"), "classifier.1", _torchvision

PUBLISHED = {
    ("resnet50", "torchvision and timm"): resnet50,
    ("densenet121", "torchvision and timm"): densenet121,
    ("efficientnet-b4", "timm"): lambda made, x: efficientnet_b4(made, x, TIMM),
    ("efficientnet-b4", "torchvision"): lambda made, x: efficientnet_b4(made, x, TORCHVISION),
}
