"""Mechanisms that hash, sort, project or use features, by the packages that compute them.

Signatures are those of packages.exact. Where a package hides padding in another way than we do, or
not at all, the driver compares without padding.
"""
import functools
from unittest import mock

import torch
from kornia.feature.loftr.loftr_module.linear_attention import LinearAttention
from linformer import LinformerSelfAttention
from performer_pytorch import SelfAttention, performer_pytorch
from reformer_pytorch import LSHSelfAttention
from sinkhorn_transformer import sinkhorn_transformer

from definitions import draws
from packages.carry import HEAD_DIM, HEADS, WIDTH, call, joined, project


def linear_transformer(x, valid, w, settings):
    """kornia"""
    q, k, v = (t.transpose(1, 2) for t in project(x, w["qkv.weight"], 3))
    mask = valid.to(x.dtype)
    return joined(LinearAttention(settings["eps"])(q, k, v, mask, mask).flatten(2), w)


def linformer(x, valid, w, settings):
    """linformer, with one projection for keys and values

    It knows no padding; without biases, zero tokens have zero keys and values, as hidden ones do.
    """
    module = LinformerSelfAttention(WIDTH, len(w["projection"]), k=settings["rank"], heads=HEADS)
    key, value = w["key_value.weight"].chunk(2)
    weights = {"to_q.weight": w["query.weight"], "to_k.weight": key, "to_v.weight": value,
               "proj_k": w["projection"], "proj_v": w["projection"],
               "to_out.weight": w["output.weight"]}
    return call(module, weights, x * valid[:, :, None])


def performer(x, valid, w, settings):
    """performer-pytorch, without the 1e-4 that it adds to every softmax feature"""
    relu = settings["features"] == "relu"
    module = SelfAttention(WIDTH, heads=HEADS, dim_head=HEAD_DIM, generalized_attention=relu,
                           nb_features=settings["num_features"], feature_redraw_interval=None)
    module.fast_attention.projection_matrix = None if relu else w["features"]
    query, key, value = w["qkv.weight"].chunk(3)
    if relu:  # undoes a factor of the package that its paper has for softmax features alone
        query, key = query * HEAD_DIM**0.25, key * HEAD_DIM**0.25
    weights = {"to_q.weight": query, "to_k.weight": key, "to_v.weight": value,
               "to_out.weight": w["output.weight"]}
    exact = functools.partial(performer_pytorch.softmax_kernel, eps=0)
    with mock.patch.object(performer_pytorch, "softmax_kernel", exact):
        return call(module, weights, x)


def reformer(x, valid, w, settings):
    """reformer-pytorch, with our rotations, equal buckets alone, and no pair counted twice"""
    module = LSHSelfAttention(WIDTH, heads=HEADS, bucket_size=settings["chunk"],
                              n_hashes=settings["rounds"], causal=settings["causal"],
                              random_rotations_per_head=True, attend_across_buckets=False,
                              allow_duplicate_attention=False, full_attn_thres=0)
    assert settings["buckets"] * settings["chunk"] == x.shape[1]  # the package has no other number
    drawn = draws.reformer_rotations(0, HEADS, settings["rounds"], HEAD_DIM,
                                     settings["buckets"] // 2)
    # [H, rounds, E, N] -> [B H, E, rounds, N]
    rotations = torch.from_numpy(drawn).to(x.dtype).transpose(1, 2).repeat(len(x), 1, 1, 1)

    def given(shape, **options):
        assert shape == rotations.shape, shape
        return rotations

    query, value = w["query_value.weight"].chunk(2)
    weights = {"toqk.weight": query, "tov.weight": value, "to_out.weight": w["output.weight"]}
    with mock.patch.object(torch, "randn", given):
        return call(module, weights, x)


def sinkhorn(x, valid, w, settings):
    """sinkhorn-transformer: its soft permutation and attention behind our sort logits

    Its own are logarithms of max(0, .) + 1e-6 of a map of queries and keys, with noise in
    evaluation too. It takes sorted keys for sorted values: ours must be equal.
    """
    module = sinkhorn_transformer.SinkhornSelfAttention(
        WIDTH, settings["block"], x.shape[1], heads=HEADS, non_permutative=False,
        sinkhorn_iter=settings["iterations"], temperature=settings["temperature"],
        use_simple_sort_net=True)
    module.sinkhorn_attention.sort_net.act = torch.nn.Identity()
    query, key, value = w["qkv.weight"].chunk(3)
    assert torch.equal(key, value)
    sort = w["sort"].transpose(1, 2)[None]  # [1, H, E, blocks]
    weights = {"to_q.weight": query, "to_kv.weight": torch.cat([key, value]),
               "to_out.weight": w["output.weight"],
               "sinkhorn_attention.sort_net.linear": torch.cat([torch.zeros_like(sort), sort], 2)}

    def without_noise(logits, iterations, temperature):
        return sinkhorn_transformer.sinkhorn_sorting_operator(logits / temperature, iterations)

    with mock.patch.object(sinkhorn_transformer, "gumbel_sinkhorn", without_noise):
        return call(module, weights, x)
