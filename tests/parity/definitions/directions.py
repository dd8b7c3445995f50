"""Layers that read a sequence in the order of time, and in a second direction from the last token on."""
import torch
from torch.nn import functional


def directions_of(settings):
    return 1 + settings["bidirectional"]


def share(array, direction, settings, axis=0):
    """The part of an array along an axis that belongs to a direction."""
    return array.chunk(directions_of(settings), axis)[direction]


def in_time(run, valid, settings, *arrays):
    """For each direction the results [B, L, ...] of run(direction, rows of the arrays), which gets the tokens of one
    example in the direction's order of time; 0 at padding. The arrays are [B, L, ...]."""
    results, length = [], valid.shape[1]
    for d in range(directions_of(settings)):
        turned = (lambda t: t.flip(0)) if d else (lambda t: t)
        rows = []
        for n, count in enumerate(valid.sum(1).tolist()):
            y = turned(run(d, *(turned(array[n, :count]) for array in arrays)))
            rows.append(torch.cat([y, y.new_zeros(length - count, *y.shape[1:])]))
        results.append(torch.stack(rows))
    return results


def in_halves(run, valid, settings, *arrays):
    """The same where each direction has its own half of the channels or heads, axis 2; the results are joined there."""
    return torch.cat(in_time(lambda d, *rows: run(d, *(share(t, d, settings, 1) for t in rows)),
                             valid, settings, *arrays), 2)


def weighted_past(x, kernel):
    """y[t, e] = sum over j of kernel[e, j] x[t - j, e]; x [L, E] in the order of time."""
    padded = functional.pad(x, (0, 0, kernel.shape[1] - 1, 0))
    return sum(kernel[:, j] * padded[kernel.shape[1] - 1 - j:][:len(x)] for j in range(kernel.shape[1]))


def convolved(x, valid, kernel, settings):
    """The same of [B, L, E], with each direction in its half of the channels."""
    return in_halves(lambda d, rows: weighted_past(rows, share(kernel, d, settings)), valid, settings, x)


def filtered(u, past, future=None):
    """y[i] = sum over j <= i of past[:, i - j] u[j] + sum over j > i of future[:, j - i - 1] u[j]; u [B, L, D].

    Long ones by FFTs of length 2 L, as the papers with long kernels compute it: [D, L, L] of an image needs too much
    memory. Kernels [D, K] are cut, or end with zeros.
    """
    length = u.shape[1]
    past, future = (functional.pad(k, (0, length - k.shape[1]))
                    for k in (past, past[:, :0] if future is None else future))
    if length <= 512:
        lag = torch.arange(length)[:, None] - torch.arange(length)
        matrix = torch.where(lag >= 0, past[:, lag.clamp_min(0)], future[:, (-lag - 1).clamp_min(0)])
        return torch.einsum("dij,bjd->bid", matrix, u)
    kernel = torch.fft.rfft(torch.cat([past, future.flip(1)], 1))
    return torch.fft.irfft(torch.fft.rfft(u.mT, 2 * length) * kernel, 2 * length)[..., :length].mT
