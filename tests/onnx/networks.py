#!/usr/bin/env python3
"""networks.py [NAME...]: writes the networks of `networks/`, one folder a network, in the layout that `tvmc onnx-suite` runs.

Real architectures at a small scale, as PyTorch's two exporters write them, with extents that vary where the name ends in `_dynamic`;
expected outputs are ONNX Runtime's. Needs torch, onnx and onnxruntime. The files are in the repository: run this only to add one.
"""
import math, os, shutil, sys, warnings
import numpy as np, onnx, onnxruntime, torch, torch.nn as nn, torch.nn.functional as F
from onnx import numpy_helper

warnings.filterwarnings("ignore")
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "networks")
TOLERANCE = "1e-4 1e-5"

def conv_bn(i, o, k, stride=1, groups=1, act=F.relu):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)
        def forward(self, x):
            x = self.norm(self.conv(x))
            return act(x) if act else x
    return Block()

class Bottleneck(nn.Module):
    def __init__(self, i, w, o, stride):
        super().__init__()
        self.a, self.b, self.c = conv_bn(i, w, 1), conv_bn(w, w, 3, stride), conv_bn(w, o, 1, act=None)
        self.down = conv_bn(i, o, 1, stride, act=None) if stride > 1 or i != o else None
    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + (x if self.down is None else self.down(x)))

class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 8
        for width, count, stride in ((4, 2, 1), (8, 2, 2), (12, 2, 2)):
            for k in range(count):
                layers.append(Bottleneck(i, width, 4 * width, stride if k == 0 else 1)); i = 4 * width
        self.stem, self.body, self.head = conv_bn(3, 8, 7, 2), nn.Sequential(*layers), nn.Linear(i, 10)
    def forward(self, x):
        x = self.body(F.max_pool2d(self.stem(x), 3, 2, 1))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

class SqueezeExcite(nn.Module):
    def __init__(self, c, r):
        super().__init__(); self.a, self.b = nn.Conv2d(c, r, 1), nn.Conv2d(r, c, 1)
    def forward(self, x):
        return x * torch.sigmoid(self.b(F.silu(self.a(F.adaptive_avg_pool2d(x, 1)))))

class MBConv(nn.Module):
    def __init__(self, i, o, k, stride, act, excite):
        super().__init__()
        self.expand, self.depth = conv_bn(i, 4 * i, 1, act=act), conv_bn(4 * i, 4 * i, k, stride, 4 * i, act)
        self.excite, self.project = SqueezeExcite(4 * i, i) if excite else nn.Identity(), conv_bn(4 * i, o, 1, act=None)
        self.skip = stride == 1 and i == o
    def forward(self, x):
        y = self.project(self.excite(self.depth(self.expand(x))))
        return x + y if self.skip else y

class MobileNet(nn.Module):
    def __init__(self, act, excite):
        super().__init__()
        blocks, i = [], 6
        for o, k, stride in ((6, 3, 1), (10, 5, 2), (10, 5, 1), (14, 3, 2)):
            blocks.append(MBConv(i, o, k, stride, act, excite)); i = o
        self.net = nn.Sequential(conv_bn(3, 6, 3, 2, act=act), *blocks, conv_bn(i, 32, 1, act=act))
        self.head = nn.Linear(32, 10)
    def forward(self, x):
        return self.head(self.net(x).mean((2, 3)))

class SqueezeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.fires = nn.ModuleList(nn.ModuleList([nn.Conv2d(i, s, 1), nn.Conv2d(s, e, 1), nn.Conv2d(s, e, 3, padding=1)])
                                   for i, s, e in ((8, 4, 8), (16, 4, 8), (16, 6, 12)))
        self.head = nn.Conv2d(24, 10, 1)
    def forward(self, x):
        x = F.relu(self.stem(x))
        for squeeze, one, three in self.fires:
            x = F.max_pool2d(x, 3, 2, ceil_mode=True)
            s = F.relu(squeeze(x)); x = torch.cat([F.relu(one(s)), F.relu(three(s))], 1)
        return torch.flatten(F.adaptive_avg_pool2d(F.relu(self.head(x)), 1), 1)

class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__(); self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
    def forward(self, x, bias=None, past=None):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.heads, D // self.heads).transpose(1, 2) for t in self.qkv(x).split(D, 2))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = q @ k.transpose(-1, -2) / math.sqrt(D // self.heads)
        y = torch.softmax(a if bias is None else a + bias, -1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D)), k, v

class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.a, self.n1, self.n2 = Attention(d, heads), nn.LayerNorm(d), nn.LayerNorm(d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x, bias=None, past=None):
        y, k, v = self.a(self.n1(x), bias, past); x = x + y
        return x + self.f2(F.gelu(self.f1(self.n2(x)))), k, v

class Encoder(nn.Module):
    def __init__(self, d=16, vocabulary=50):
        super().__init__()
        self.word, self.place = nn.Embedding(vocabulary, d), nn.Embedding(64, d)
        self.norm, self.layers = nn.LayerNorm(d), nn.ModuleList(Layer(d, 4) for _ in range(2))
    def forward(self, ids, mask):
        x = self.norm(self.word(ids) + self.place.weight[: ids.shape[1]][None])
        bias = (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
        for l in self.layers: x = l(x, bias)[0]
        m = mask[:, :, None].to(torch.float32)
        return x, (x * m).sum(1) / m.sum(1)

class Prefill(nn.Module):
    def __init__(self, d=16):
        super().__init__(); self.layers, self.norm = nn.ModuleList(Layer(d, 4) for _ in range(2)), nn.LayerNorm(d)
    def forward(self, x):
        T = x.shape[1]; kv = []
        bias = torch.triu(torch.full((T, T), -1e9), 1)
        for l in self.layers: x, k, v = l(x, bias); kv += [k, v]
        return (self.norm(x), *kv)

class Decode(Prefill):
    def forward(self, x, *past):
        kv = []
        for n, l in enumerate(self.layers): x, k, v = l(x, None, past[2 * n: 2 * n + 2]); kv += [k, v]
        return (self.norm(x), *kv)

class Detector(nn.Module):
    def __init__(self):
        super().__init__(); silu = F.silu
        self.a, self.b, self.c = conv_bn(3, 8, 3, 2, act=silu), conv_bn(8, 12, 3, 2, act=silu), conv_bn(12, 16, 3, 2, act=silu)
        self.pool, self.up = conv_bn(64, 16, 1, act=silu), conv_bn(28, 12, 3, act=silu)
        self.heads = nn.ModuleList(nn.Conv2d(c, 16 + 3, 1) for c in (12, 16))
        self.register_buffer("bins", torch.arange(4, dtype=torch.float32).view(1, 4, 1, 1))
    def forward(self, x):
        b = self.b(self.a(x)); c = self.c(b); p = [c]
        for _ in range(3): p.append(F.max_pool2d(p[-1], 5, 1, 2))
        c = self.pool(torch.cat(p, 1))
        b = self.up(torch.cat([F.interpolate(c, scale_factor=2.0, mode="nearest"), b], 1))
        y = torch.cat([h(f).flatten(2) for h, f in zip(self.heads, (b, c))], 2)
        box, score = y.split([16, 3], 1)
        box = (box.reshape(x.shape[0], 4, 4, -1).softmax(2).transpose(1, 2) * self.bins).sum(1)
        return torch.cat([box, score.sigmoid()], 1)

class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = conv_bn(3, 6, 3, 2, act=F.hardswish), conv_bn(6, 10, 3, 2, act=F.hardswish)
        self.up, self.out = nn.ConvTranspose2d(10, 6, 2, 2), nn.Conv2d(12, 1, 3, padding=1)
    def forward(self, x):
        a = self.a(x); b = self.b(a); u = torch.cat([self.up(b), a], 1)
        return torch.sigmoid(F.interpolate(self.out(u), size=x.shape[2:], mode="bilinear", align_corners=False))

class Recognizer(nn.Module):
    """A line of text: its width varies."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.layer = conv_bn(3, 8, 3, 2, act=F.hardswish), conv_bn(8, 16, 3, 2, act=F.hardswish), Layer(16, 2)
        self.head = nn.Linear(16, 20)
    def forward(self, x):
        x = F.avg_pool2d(self.b(self.a(x)), (4, 2)).squeeze(2).transpose(1, 2)
        return torch.softmax(self.head(self.layer(x)[0]), -1)

class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(8, 12, 3, padding=1), nn.Conv1d(12, 12, 3, stride=2, padding=1)
        self.rnn, self.head = nn.GRU(12, 10, 2, batch_first=True, bidirectional=True), nn.Linear(20, 6)
    def forward(self, x):
        y, _ = self.rnn(F.relu(self.c2(F.relu(self.c1(x)))).transpose(1, 2))
        return torch.log_softmax(self.head(y), -1)

class Stream(nn.Module):
    def __init__(self):
        super().__init__(); self.f0, self.rnn, self.f1 = nn.Linear(9, 12), nn.LSTM(12, 12, 2), nn.Linear(12, 9)
    def forward(self, x, h, c):
        y, (h, c) = self.rnn(torch.relu(self.f0(x)), (h, c))
        return torch.sigmoid(self.f1(y)), h, c

class Voice(nn.Module):
    """A sampling rate chooses the branch, as in voice detectors: both capture what stands before."""
    def __init__(self):
        super().__init__(); self.a, self.b, self.cell = nn.Conv1d(1, 6, 8, 4), nn.Conv1d(1, 6, 4, 2), nn.LSTM(6, 6)
    def forward(self, x, h, c, rate: torch.Tensor):
        y = F.pad(x.unsqueeze(1), (4, 4), mode="reflect")
        if bool(rate == 16000):
            y = torch.relu(self.a(y))
        else:
            y = torch.relu(self.b(y[:, :, ::2]))
        y, (h, c) = self.cell(y.permute(2, 0, 1), (h, c))
        return torch.sigmoid(y.mean(0)), h, c

def randn(*shape): return torch.randn(*shape, generator=G)
def ids(*shape): return torch.randint(0, 50, shape, generator=G)
def mask(b, t):
    m = torch.ones(b, t, dtype=torch.int64); m[:, 2 * t // 3:] = 0; return m
def state(n): return [randn(1, 4, n, 4) for _ in range(4)]
B, T, H, W = ("batch", "time", "height", "width")

# name: network, sets of inputs, names of inputs, extents that vary
NETS = {
    "resnet": (lambda: ResNet(), lambda: [[randn(1, 3, 32, 32)], [randn(3, 3, 32, 32)]], ["x"], {"x": {0: B}}),
    "mobilenet": (lambda: MobileNet(F.relu6, False), lambda: [[randn(1, 3, 32, 32)], [randn(2, 3, 32, 32)]], ["x"], {"x": {0: B}}),
    "efficientnet": (lambda: MobileNet(F.silu, True), lambda: [[randn(1, 3, 32, 32)], [randn(2, 3, 32, 32)]], ["x"], {"x": {0: B}}),
    "squeezenet": (lambda: SqueezeNet(), lambda: [[randn(1, 3, 36, 36)], [randn(2, 3, 36, 36)]], ["x"], {"x": {0: B}}),
    "encoder": (lambda: Encoder(), lambda: [[ids(1, 12), mask(1, 12)], [ids(3, 7), mask(3, 7)]], ["ids", "mask"], {"ids": {0: B, 1: T}, "mask": {0: B, 1: T}}),
    "prefill": (lambda: Prefill(), lambda: [[randn(1, 9, 16)], [randn(1, 16, 16)]], ["x"], {"x": {1: T}}),
    "decode": (lambda: Decode(), lambda: [[randn(1, 1, 16), *state(6)], [randn(1, 1, 16), *state(17)]], ["x", "k0", "v0", "k1", "v1"], {k: {2: T} for k in ("k0", "v0", "k1", "v1")}),
    "detector": (lambda: Detector(), lambda: [[randn(1, 3, 64, 64)], [randn(1, 3, 32, 96)]], ["x"], {"x": {2: H, 3: W}}),
    "segmenter": (lambda: Segmenter(), lambda: [[randn(1, 3, 32, 32)], [randn(1, 3, 16, 48)]], ["x"], {"x": {2: H, 3: W}}),
    "recognizer": (lambda: Recognizer(), lambda: [[randn(1, 3, 16, 64)], [randn(2, 3, 16, 96)]], ["x"], {"x": {0: B, 3: W}}),
    "speech": (lambda: Speech(), lambda: [[randn(1, 8, 20)], [randn(1, 8, 33)]], ["x"], {"x": {2: T}}),
    "stream": (lambda: Stream(), lambda: [[randn(1, 1, 9), randn(2, 1, 12), randn(2, 1, 12)], [randn(4, 1, 9), randn(2, 1, 12), randn(2, 1, 12)]], ["x", "h", "c"], {"x": {0: T}}),
    "voice": (lambda: torch.jit.script(Voice()), lambda: [[randn(1, 64), randn(1, 1, 6), randn(1, 1, 6), torch.tensor(16000)], [randn(1, 64), randn(1, 1, 6), randn(1, 1, 6), torch.tensor(8000)]], ["x", "h", "c", "rate"], {}),
}

def randomize(net):
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.copy_(torch.randn(m.num_features, generator=G) * 0.1); m.running_var.copy_(torch.rand(m.num_features, generator=G) * 0.5 + 0.75)
            m.weight.data.copy_(torch.rand(m.num_features, generator=G) * 0.5 + 0.75); m.bias.data.copy_(torch.randn(m.num_features, generator=G) * 0.1)

def write(name, model, sets, inputs):
    folder = os.path.join(HERE, name); shutil.rmtree(folder, ignore_errors=True); os.makedirs(folder)
    for node in model.graph.node: node.doc_string = ""; del node.metadata_props[:]
    for g in [model.graph]:
        del g.metadata_props[:]; del g.value_info[:]
        for v in [*g.input, *g.output]: del v.metadata_props[:]
    onnx.save(model, f"{folder}/model.onnx"); open(f"{folder}/tolerance", "w").write(TOLERANCE + "\n")
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx")
    for k, args in enumerate(sets):
        os.makedirs(f"{folder}/set_{k}"); feed = {n: a.numpy() for n, a in zip(inputs, args)}
        for i, n in enumerate(i.name for i in session.get_inputs()):
            open(f"{folder}/set_{k}/input_{i}.pb", "wb").write(numpy_helper.from_array(feed[n], n).SerializeToString())
        for i, (o, a) in enumerate(zip(session.get_outputs(), session.run(None, feed))):
            open(f"{folder}/set_{k}/output_{i}.pb", "wb").write(numpy_helper.from_array(a, o.name).SerializeToString())
    print(name, os.path.getsize(f"{folder}/model.onnx"), flush=True)

for name, (make, make_sets, inputs, varying) in NETS.items():
    if sys.argv[1:] and name not in sys.argv[1:]: continue
    torch.manual_seed(7); G = torch.Generator().manual_seed(7)
    net, sets = make().eval(), None
    with torch.no_grad(): randomize(net)
    for p in net.parameters(): p.requires_grad_(False)
    sets = make_sets(); args = tuple(sets[0]); temp = os.path.join(HERE, "temp.onnx")
    for suffix, dynamo, axes in (("", False, {}), ("_dynamic", False, varying), ("_dynamo", True, {}), ("_dynamo_dynamic", True, varying)):
        if axes is varying and not varying: continue
        if dynamo and isinstance(net, torch.jit.ScriptModule): continue
        try:
            if dynamo:
                shapes = None
                if axes:
                    dims = {d: torch.export.Dim(d, min=2, max=4096) for e in axes.values() for d in e.values()}
                    each = [{i: dims[d] for i, d in axes.get(n, {}).items()} for n in inputs]
                    shapes = tuple(each) if not isinstance(net, Decode) else (each[0], tuple(each[1:]))
                torch.onnx.export(net, tuple(sets[1] if axes else args), temp, input_names=inputs, dynamo=True, external_data=False, verbose=False, dynamic_shapes=shapes)
            else:
                torch.onnx.export(net, args, temp, input_names=inputs, opset_version=17, dynamo=False, dynamic_axes=axes)
            write(name + suffix, onnx.load(temp), sets if axes or name == "voice" else sets[:1], inputs)
        except Exception as e:
            print("FAIL", name + suffix, repr(e)[:300], flush=True)
    if os.path.exists(temp): os.remove(temp)
