"""The operators of liblra_ops.so, loaded into PyTorch, against PyTorch's own in float64.

torch.ops.load_library is all that a Python user needs. Values and gradients (through autograd) of
linear, feed_forward, layer_norm, batch_norm, convolution, product, attention, packed_attention,
packed_feature_attention and dropout.
"""
import os
import pathlib

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
library = pathlib.Path(os.environ["LRA_PROGRAM"]).resolve().parent / "liblra_ops.so"
torch.ops.load_library(str(library))
ops = torch.ops.lra

# Largest allowed difference, relative to the largest value.
VALUE = {torch.float32: 1e-5, torch.float64: 1e-12}
GRADIENT = {torch.float32: 1e-4, torch.float64: 1e-11}


def difference(actual, expected):
    return ((actual.double() - expected).abs().max() / expected.abs().max().clamp_min(1e-9)).item()


def run(function, inputs, dtype):
    leaves = [t.detach().to(dtype).requires_grad_() for t in inputs]
    value = function(*leaves)
    # A fixed, uneven weight per output: a plain sum would hide exchanged gradients.
    weights = torch.cos(torch.arange(value.numel(), dtype=dtype)).view(value.shape)
    return value.detach(), torch.autograd.grad((value * weights).sum(), leaves)


def check(name, ours, reference, inputs):
    expected, expected_grads = run(reference, inputs, torch.float64)
    for dtype in (torch.float32, torch.float64):
        value, grads = run(ours, inputs, dtype)
        worst = difference(value, expected)
        differences = list(map(difference, grads, expected_grads))
        assert value.shape == expected.shape, f"{name}: shape {value.shape}"
        assert worst <= VALUE[dtype], f"{name} {dtype}: values differ by {worst:.2e}"
        # One by one: max() passes over a NaN that is not the first.
        assert all(d <= GRADIENT[dtype] for d in differences), (
            f"{name} {dtype}: gradients differ by {differences}")
        print(f"ok: {name} {dtype}: values {worst:.1e}, gradients {max(differences):.1e}")


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def dense_attention(q, k, v, allowed, scale, bias=0):
    """Softmax attention over [B, L, H, E]; a query that may see nothing gives zero."""
    scores = torch.einsum("blhe,bshe->bhls", q, k) * scale + bias
    scores = scores.masked_fill(~allowed, float("-inf"))
    weights = torch.where(allowed.any(-1, keepdim=True), scores, 0.0).softmax(-1)
    weights = torch.where(allowed, weights, 0.0)
    return torch.einsum("bhls,bshe->blhe", weights, v)


def check_layers():
    functional = torch.nn.functional
    x, w, b = normal(3, 7, 11), normal(5, 11), normal(5)
    check("linear", ops.linear, functional.linear, [x, w, b])
    check("linear without bias", ops.linear, functional.linear, [x, w])

    def reference(x, w1, b1, w2, b2):
        hidden = functional.gelu(functional.linear(x, w1, b1), approximate="tanh")
        return functional.linear(hidden, w2, b2)

    check("feed_forward", ops.feed_forward, reference, [x, w, b, normal(11, 5), normal(11)])
    check("layer_norm", lambda x, w, b: ops.layer_norm(x, w, b, 1e-6),
          lambda x, w, b: functional.layer_norm(x, (11,), w, b, 1e-6), [x, normal(11), normal(11)])
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])

    def batch_norm(x, w, b):
        rows = x[mask]
        y = functional.batch_norm(rows, None, None, w, b, training=True)
        return torch.zeros_like(x).masked_scatter(mask[..., None], y)

    check("batch_norm", lambda x, w, b: ops.batch_norm(x, mask.to(torch.uint8), w, b)[0],
          batch_norm, [x, normal(11), normal(11)])

    def convolution(x, kernel):
        """Lags -2 to 4, as a convolution of each channel in PyTorch, which counts them backwards."""
        x = functional.pad((x * mask[..., None]).transpose(1, 2), (4, 2))
        y = functional.conv1d(x, kernel.flip(1)[:, None], groups=11)
        return y.transpose(1, 2) * mask[..., None]

    check("convolution", lambda x, k: ops.convolution(x, mask.to(torch.uint8), k, 2), convolution,
          [x, normal(11, 7)])
    def states(v, a):
        """Both directions of x[t] = a x[t - 1] + v[t], step by step."""
        v, a = torch.complex(*(v * mask[:, :, None, None]).unbind(2)), torch.complex(*a)
        directions = []
        for order in (range(7), range(6, -1, -1)):
            x, rows = torch.zeros_like(v[:, 0]), {}
            for t in order:
                rows[t] = x = (a * x + v[:, t]) * mask[:, t, None]
            directions.append(torch.stack([rows[t] for t in range(7)], 1))
        x = torch.stack(directions, 2)
        return torch.stack([x.real, x.imag], 3)

    check("state_scan", lambda v, a: ops.state_scan(v, a, True, mask.to(torch.uint8)), states,
          [normal(3, 7, 2, 5), 0.5 * normal(2, 5)])

    def selective(x, dt, a, b, c, dt_bias, bias, skip):
        """From the end of each example, step by step; 5 channels in each of 2 groups."""
        b, c = (t.repeat_interleave(5, 2) for t in (b, c))  # [B, L, D, N]
        step = functional.softplus(dt + dt_bias)
        h, rows = 0, []
        for t in reversed(range(7)):
            decay = (step[:, t, :, None] * a.T).exp()
            h = decay * h + (step * x)[:, t, :, None] * (b[:, t] + bias.T)
            h = h * mask[:, t, None, None]
            rows.insert(0, ((c[:, t] * h).sum(2) + skip * x[:, t]) * mask[:, t, None])
        return torch.stack(rows, 1)

    check("selective_scan", lambda *t: ops.selective_scan(*t, True, mask.to(torch.uint8)), selective,
          [normal(3, 7, 10), normal(3, 7, 10), -normal(4, 10).abs(), normal(3, 7, 2, 4),
           normal(3, 7, 2, 4), normal(10), normal(4, 10), normal(10)])
    def matrices(q, k, v, log_decay, beta):
        """The delta rule from the end of each example, step by step."""
        state, rows = 0, []
        for t in reversed(range(7)):
            decayed = log_decay[:, t, :, :, None].exp() * state
            error = v[:, t] - (decayed * k[:, t, :, :, None]).sum(2)
            state = decayed + k[:, t, :, :, None] * (beta[:, t, :, None] * error)[:, :, None]
            state = state * mask[:, t, None, None, None]
            rows.insert(0, (state * q[:, t, :, :, None]).sum(2))
        return torch.stack(rows, 1)

    check("matrix_scan", lambda *t: ops.matrix_scan(*t, 2, mask.to(torch.uint8)), matrices,
          [normal(3, 7, 2, 4), normal(3, 7, 2, 4), normal(3, 7, 2, 5), -normal(3, 7, 2, 4).abs(), normal(3, 7, 2)])
    check("product", ops.product, torch.matmul, [normal(2, 3, 40, 9), normal(2, 3, 9, 17)])


def check_attention():
    batch, length, heads, width = 2, 70, 3, 20
    shape = (batch, length, heads, width)
    scale = width**-0.5
    q, k, v = normal(*shape), normal(*shape), normal(*shape)
    i = torch.arange(length)
    lengths = torch.tensor([length, 41])
    valid = i[None, :] < lengths[:, None]
    mask = valid.to(torch.uint8)
    masked = valid[:, None, :, None] & valid[:, None, None, :]
    block = 16
    num_blocks = -(-length // block)
    cases = {
        "all keys": ({}, torch.ones(1, 1, length, length, dtype=torch.bool)),
        "padding": ({"key_mask": mask, "query_mask": mask}, masked),
        "causal": ({"sizes": [0, 0, -1, 0]}, (i[:, None] >= i[None, :])[None, None]),
        "window": ({"sizes": [0, 0, 5, 3]},
                   ((i[None, :] >= i[:, None] - 5) & (i[None, :] <= i[:, None] + 3))[None, None]),
        "own block, padding": (
            {"offsets": torch.arange(num_blocks + 1), "sizes": [block, block, -1, -1],
             "key_blocks": torch.arange(num_blocks, dtype=torch.int32),
             "key_mask": mask, "query_mask": mask},
            (i[:, None] // block == i[None, :] // block)[None, None] & masked),
    }
    for name, (options, allowed) in cases.items():
        check(f"attention, {name}",
              lambda q, k, v: ops.attention(q, k, v, scale=scale, **options),
              lambda q, k, v: dense_attention(q, k, v, allowed, scale), [q, k, v])
        check(f"attention with a bias, {name}",
              lambda q, k, v, bias: ops.attention(q, k, v, scale=scale, bias=bias, **options),
              lambda q, k, v, bias: dense_attention(q, k, v, allowed, scale, bias),
              [q, k, v, normal(heads, length, length)])
        check(f"packed_attention, {name}",
              lambda qkv: ops.packed_attention(qkv, scale=scale, **options),
              lambda qkv: dense_attention(*qkv.unbind(2), allowed, scale),
              [torch.stack([q, k, v], 2)])


def check_feature_attention():
    mask = (torch.arange(9)[None, :] < torch.tensor([[9], [4]])).to(torch.uint8)
    maps = {"elu": (lambda x: torch.nn.functional.elu(x) + 1, 0.0, 1e-6),
            "relu": (lambda x: x.relu() + 1e-3, 1e-3, 0.0)}
    for name, (phi, offset, eps) in maps.items():
        def reference(qkv):
            q, k, v = qkv.unbind(2)
            weights = torch.einsum("blhe,bshe->bhls", phi(q), phi(k)) * mask[:, None, None, :]
            weights = weights / (weights.sum(-1, keepdim=True) + eps)
            return torch.einsum("bhls,bshe->blhe", weights, v)

        check(f"packed_feature_attention, {name}",
              lambda qkv: ops.packed_feature_attention(qkv, name, mask, offset, eps), reference,
              [normal(2, 9, 3, 3, 6)])
    try:
        ops.packed_feature_attention(normal(2, 9, 3, 3, 6), "gelu")
    except RuntimeError as error:
        assert "unknown features 'gelu'" in str(error), error
    else:
        raise AssertionError("unknown features were taken")


def check_dropout():
    rate, key = 0.3, 12345
    rounded = round(rate * 65536) / 65536  # decisions are made in 16 bits
    scale = torch.tensor(1 / (1 - rounded)).item()  # a float32
    ones = torch.ones(400, 250)
    # The mask depends on the key and the place only, so it can be read off ones.
    kept = ops.dropout(ones, rate, key)
    share = (kept == 0).double().mean().item()
    deviation = (rate * (1 - rate) / ones.numel()) ** 0.5
    assert abs(share - rate) < 5 * deviation, f"dropout drops {share:.4f} of the values"
    assert set(kept.unique().tolist()) == {0.0, kept.max().item()}
    assert abs(kept.max().item() - scale) < 1e-6, f"kept values are scaled by {kept.max().item()}"
    assert torch.equal(kept, ops.dropout(ones, rate, key)), "not the same values twice"
    assert not torch.equal(kept, ops.dropout(ones, rate, key + 1)), "the key changes nothing"
    factor = torch.where(kept == 0, 0.0, scale).double()
    check("dropout", lambda x: ops.dropout(x, rate, key), lambda x: x * factor.to(x.dtype),
          [normal(400, 250)])


check_layers()
check_attention()
check_feature_attention()
check_dropout()
