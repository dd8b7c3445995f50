"""Published definitions of the layers that packages implement, with the weights of their modules.

Each function maps a module and x [B, L, D] to [B, L, D], with dense L x L arrays or token by token,
and without padding. Linear maps are those of the module.
"""
import torch
from torch.nn.functional import linear, silu, softplus

from packages.carry import HEAD_DIM, HEADS


def heads(t):
    """[B, L, H E] -> [B, H, L, E]"""
    return t.unflatten(2, (HEADS, -1)).transpose(1, 2)


def merged(t):
    """[B, H, L, E] -> [B, L, H E]"""
    return t.transpose(1, 2).flatten(2)


def attend(q, k, v, allowed=True):
    scores = q @ k.mT / q.shape[-1]**0.5
    return scores.masked_fill(~torch.as_tensor(allowed), float("-inf")).softmax(-1) @ v


def distance(length):
    """[L, L]: query minus key"""
    t = torch.arange(length)
    return t[:, None] - t


def transformer(module, x):
    q, k, v = map(heads, linear(x, module.in_proj_weight, module.in_proj_bias).chunk(3, -1))
    return module.out_proj(merged(attend(q, k, v)))


def local(module, x):
    block = torch.arange(x.shape[1]) // module.inner.window_size
    return merged(attend(*map(heads, module.qkv(x).chunk(3, -1)), block[:, None] == block))


def longformer(module, x):
    q, k, v = (heads(part(x)) for part in (module.query, module.key, module.value))
    return merged(attend(q, k, v, distance(x.shape[1]).abs() <= module.one_sided_attn_window_size))


def linear_transformer(module, x):
    q, k, v = map(heads, module.qkv(x).chunk(3, -1))
    q, k = (torch.nn.functional.elu(t) + 1 for t in (q, k))
    weights = q @ k.mT
    return merged(weights @ v / weights.sum(-1, keepdim=True))


def linformer(module, x):
    k, v = module.proj_k.T @ module.to_k(x), module.proj_v.T @ module.to_v(x)
    return module.to_out(merged(attend(heads(module.to_q(x)), heads(k), heads(v))))


def performer(module, x):
    def features(t):
        t = t / HEAD_DIM**0.25
        return (t @ module.fast_attention.projection_matrix.T - (t * t).sum(-1, keepdim=True) / 2).exp()

    q, k, v = (heads(part(x)) for part in (module.to_q, module.to_k, module.to_v))
    weights = features(q) @ features(k).mT
    return module.to_out(merged(weights @ v / weights.sum(-1, keepdim=True)))


def by_buckets(q, v, buckets, chunk):
    """Pairs of the same bucket, and of the same chunk of sorted tokens or the one before, in any round.

    q and v [B, H, L, E], buckets [B, H, rounds, L]
    """
    place = buckets.argsort(stable=True, dim=-1).argsort(-1) // chunk
    back = place[..., :, None] - place[..., None, :]
    allowed = (buckets[..., :, None] == buckets[..., None, :]) & ((back == 0) | (back == 1))
    itself = torch.eye(q.shape[2], dtype=bool)
    allowed = allowed.any(2) & ~itself
    allowed = allowed | itself & ~allowed.any(-1, keepdim=True)
    return merged(attend(q, torch.nn.functional.normalize(q, dim=-1), v, allowed))


def reformer(module, x):
    q, v = heads(module.toqk(x)), heads(module.tov(x))
    buckets = module.lsh_attn.hash_vectors(x.shape[1] // module.bucket_size, q.flatten(0, 1))
    buckets = buckets.view(*q.shape[:2], -1, q.shape[2])
    return module.to_out(by_buckets(q, v, buckets, module.bucket_size))


def reformer_of_transformers(module, x):
    q, v = heads(module.query_key(x)), heads(module.value(x))
    module._set_num_buckets(x.shape[1])
    buckets = module._hash_vectors(q, module.num_hashes, None).view(*q.shape[:2], -1, q.shape[2])
    return by_buckets(q, v, buckets, module.chunk_length)


def sinkhorn(module, x):
    """Sort logits are those of the package: of the means of the queries and keys of blocks."""
    inner = module.sinkhorn_attention
    q, k, v = map(heads, (module.to_q(x), *module.to_kv(x).chunk(2, -1)))
    q, k, v = (t.unflatten(2, (-1, inner.bucket_size)) for t in (q, k, v))  # [B, H, N, block, E]
    logits = q.mean(3) @ k.mean(3).mT / HEAD_DIM**0.5 / inner.temperature
    for _ in range(inner.sinkhorn_iter):
        logits = logits - logits.logsumexp(-1, keepdim=True)
        logits = logits - logits.logsumexp(-2, keepdim=True)
    k, v = (torch.cat([torch.einsum("bhnl,bhlre->bhnre", logits.exp(), t), t], 3) for t in (k, v))
    return module.to_out(merged(attend(q, k, v).flatten(2, 3)))


def softmax_features(module, x):
    """Shen et al. 2021, Efficient attention"""
    q, k, v = (heads(part(x)) for part in (module.to_q, module.to_k, module.to_v))
    return module.to_out(merged(q.softmax(-1) @ (k.softmax(-2).mT @ v)))


def six_steps(a):
    """Towards the pseudoinverse, as in the paper's algorithm: each matrix by its own largest sums."""
    identity = torch.eye(a.shape[-1])
    z = a.mT / (a.sum(-2).amax(-1) * a.sum(-1).amax(-1))[..., None, None]
    for _ in range(6):
        az = a @ z
        z = z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az))) / 4
    return z


def landmarks(q, k, v, count, inverse):
    """Xiong et al. 2021"""
    q_mean, k_mean = (t.unflatten(2, (count, -1)).mean(3) for t in (q, k))
    weights = (q_mean @ k_mean.mT / HEAD_DIM**0.5).softmax(-1)
    return attend(q, k_mean, inverse(weights)) @ attend(q_mean, k, v)


def nystrom(module, x, inverse=six_steps):
    q, k, v = map(heads, module.to_qkv(x).chunk(3, -1))
    return module.to_out(merged(landmarks(q, k, v, module.num_landmarks, inverse) + module.res_conv(v)))


def nystrom_of_transformers(module, x):
    q, k, v = (heads(part(x)) for part in (module.query, module.key, module.value))
    return merged(landmarks(q, k, v, module.num_landmarks, six_steps) + module.conv(v))


def hierarchical(module, x):
    """Zhu and Soricut 2021: pairs of adjacent blocks as they are, others by the means of 2, 4, ... tokens, all in
    one sum"""
    q, k, v = map(heads, module.to_qkv(x).chunk(3, -1))
    weights, size, missing = 0, 1, torch.ones(x.shape[1], x.shape[1], dtype=bool)
    while missing.any():
        q_mean, k_mean = (t.unflatten(2, (-1, size)).mean(3).repeat_interleave(size, 2) for t in (q, k))
        block = torch.arange(x.shape[1]) // (size * module.block_size)
        level = missing & ((block[:, None] - block).abs() <= 1)
        weights = weights + (q_mean @ k_mean.mT * module.scale).exp() * level
        missing, size = missing & ~level, 2 * size
    return module.to_out(merged(weights @ v / weights.sum(-1, keepdim=True)))


def scan(decay, values):
    """h[t] = decay[t] h[t - 1] + values[t], of [B, L, ...]"""
    h, rows = 0, []
    for a, v in zip(decay.unbind(1), values.unbind(1)):
        h = a * h + v
        rows.append(h)
    return torch.stack(rows, 1)


def memory(q, k, v, decay, beta=None):
    """S[t]^T q with S~ = decay S[t - 1] and S[t] = S~ + k (v, or beta (v - S~^T k))^T; [B, L, H, ...]"""
    state, rows = 0, []
    for t in range(q.shape[1]):
        state = decay[:, t, :, None, None] * state + torch.zeros(*k.shape[2:], v.shape[3])
        new = v[:, t]
        if beta is not None:
            new = beta[:, t, :, None] * (new - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * new[:, :, None]
        rows.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(rows, 1)


def convolved(module, x):
    return module(x.mT)[..., :x.shape[1]].mT


def rms(x, eps=1e-5):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def mamba(module, x):
    u, z = module.in_proj(x).chunk(2, -1)
    u = silu(convolved(module.conv1d, u))
    states = module.A_log.shape[1]
    rank = module.dt_proj.in_features
    step, b, c = module.x_proj(u).split([rank, states, states], -1)
    step = softplus(module.dt_proj(step))
    h = scan((step[..., None] * -module.A_log.exp()).exp(), (step * u)[..., None] * b[:, :, None])
    return module.out_proj(((h * c[:, :, None]).sum(-1) + module.D * u) * silu(z))


def mamba2(module, x):
    inner, states, count = module.intermediate_size, module.ssm_state_size, module.num_heads
    z, u, step = module.in_proj(x).split([inner, inner + 2 * states, count], -1)
    value, b, c = silu(convolved(module.conv1d, u)).split([inner, states, states], -1)
    value, step = value.unflatten(2, (count, -1)), softplus(step + module.dt_bias)
    b, c = (t[:, :, None].expand(-1, -1, count, -1) for t in (b, c))
    y = memory(c, b, step[..., None] * value, (-step * module.A_log.exp()).exp())
    y = (y + module.D[:, None] * value).flatten(2)
    return module.out_proj(rms(y * silu(z)) * module.norm.weight)


def gated_deltanet(module, x):
    q, k, v, z, b, a = module.fix_query_key_value_ordering(module.in_proj_qkvz(x), module.in_proj_ba(x))
    sizes = [t.flatten(2).shape[2] for t in (q, k, v)]
    u = torch.cat([t.flatten(2) for t in (q, k, v)], -1)
    q, k, v = (t.unflatten(2, (b.shape[2], -1)) for t in silu(convolved(module.conv1d, u)).split(sizes, -1))
    q, k = (t * (t.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for t in (q, k))
    decay = (-module.A_log.exp() * softplus(a + module.dt_bias)).exp()
    y = rms(memory(q / q.shape[3]**0.5, k, v, decay, b.sigmoid()), 1e-6) * module.norm.weight
    return module.out_proj((y * silu(z)).flatten(2))


def rg_lru(module, x):
    inner = module.rg_lru
    u = convolved(module.conv_1d, module.linear_x(x))

    def gate(weight, bias):
        blocks = torch.einsum("blhp,hpq->blhq", u.unflatten(2, (len(weight), -1)), weight)
        return (blocks + bias).flatten(2).sigmoid()

    a = (-8 * gate(inner.recurrent_gate_weight, inner.recurrent_gate_bias) * softplus(inner.recurrent_param)).exp()
    scale = (1 - a * a).sqrt()
    scale[:, 0] = 1
    h = scan(a, scale * gate(inner.input_gate_weight, inner.input_gate_bias) * u)
    return module.linear_out(h * module.act_fn(module.linear_y(x)))


def retnet(module, x):
    """Sun et al. 2023, with the decays and angles of its code"""
    q, k, v = (part(x).unflatten(2, (HEADS, -1)) for part in (module.q_proj, module.k_proj, module.v_proj))
    angle = torch.arange(x.shape[1])[:, None, None] * 10000.0**-torch.linspace(0, 1, HEAD_DIM // 2)
    turn = torch.polar(torch.ones_like(angle), angle)
    q, k = (torch.view_as_real(torch.view_as_complex(t.unflatten(3, (-1, 2))) * turn).flatten(3) for t in (q, k))
    decay = (1 - 2.0**(-5 - torch.arange(HEADS))).expand(*q.shape[:3])
    y = memory(q / HEAD_DIM**0.5, k, v, decay)
    y = rms(y - y.mean(-1, keepdim=True), module.group_norm.eps).flatten(2)
    return module.out_proj(y * silu(module.g_proj(x)))


def mlstm(module, x):
    u, z = module.proj_up(x).chunk(2, -1)
    c = silu(convolved(module.conv1d.conv, u))
    q, k, v = module.q_proj(c), module.k_proj(c), module.v_proj(u)
    cell, joined = module.mlstm_cell, torch.cat([q, k, v], -1)
    i, decay = cell.igate(joined), cell.fgate(joined).sigmoid()
    q, k, v = (t.unflatten(2, (HEADS, -1)) for t in (q, k, v))
    k = k * i.exp()[..., None] / k.shape[3]**0.5
    h = memory(q, k, v, decay) / memory(q, k, torch.ones_like(v[..., :1]), decay).abs().clamp(min=1)
    h = rms(h - h.mean(-1, keepdim=True)).flatten(2) * cell.outnorm.weight_proxy
    return module.proj_down((h + module.learnable_skip * c) * silu(z))


def min_gru(module, x):
    c, gate = module.to_hidden_and_gate(x).chunk(2, -1)
    z = gate.sigmoid()
    return module.to_out(scan(1 - z, z * torch.where(c >= 0, c + 0.5, c.sigmoid())))


def mega(module, x):
    """Ma et al. 2023; causal"""
    ema, attention = module.multi_headed_ema, module.single_headed_attn
    alpha, delta = ema.alphas.sigmoid()[:, None], ema.dampen_factors.sigmoid()[:, None]
    inputs = alpha * ema.expansion * x[:, :, None]
    m = (scan((1 - alpha * delta).expand_as(inputs), inputs) * ema.reduction).sum(2)
    q, k = attention.offsetscale(attention.to_qk(m))
    scores = q @ k.mT / q.shape[2]**0.5
    scores = (scores + attention.rel_pos_bias(scores)).masked_fill(distance(x.shape[1]) < 0, float("-inf"))
    attended = scores.softmax(-1) @ attention.to_v(x) * module.to_reset_gate(m)
    h = silu(m @ module.Wh + attended @ module.Uh + module.bh)
    return torch.lerp(x, h, module.to_update_gate(m))


def state_space(poles, b, c, x):
    h = scan(poles.expand(*x.shape[:2], -1), x.to(b.dtype) @ b.T)
    return (h @ c.T).real


def s5(module, x):
    module = module.seq
    poles = (module.Lambda * module.log_step.exp()).exp()
    b = ((poles - 1) / module.Lambda)[:, None] * torch.view_as_complex(module.B)
    return state_space(poles, b, module.C, x) + module.D * x


def lru(module, x):
    poles = torch.exp(torch.complex(-module.nu_log.exp(), module.theta_log.exp()))
    return state_space(poles, module.gamma_log.exp()[:, None] * module.B, module.C, x) + linear(x, module.D)


def fourier(module, x):
    """Lee-Thorp et al. 2021, by matrices"""
    def matrix(n):
        return torch.fft.fft(torch.eye(n))

    return (matrix(x.shape[1]) @ x.to(torch.complex64) @ matrix(x.shape[2])).real

