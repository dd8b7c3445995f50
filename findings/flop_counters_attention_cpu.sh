#!/usr/bin/env bash
# torch.utils.flop_counter of torch 2.13.0, fvcore 0.1.5, thop 0.1.1, calflops 0.3.2 and ptflops 0.7.5 on a CPU: operations of
# exact attention by scaled_dot_product_attention. Guess: 4 L^2 D beside the projections, so 16 times as many for four times the
# tokens. Seen: no counter counts any of them, nor those of a convolution by FFT: every model is linear in the length.
# So quadratic and sub-quadratic models look alike; on a GPU torch's counter knows the kernels of attention by their names.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy fvcore==0.1.5.post20221221 thop==0.1.1.post2209072238 \
  calflops==0.3.2 ptflops==0.7.5 transformers==5.24.0
"$folder/venv/bin/python" - <<'PYTHON'
import calflops
import ptflops
import thop
import torch
from fvcore.nn import FlopCountAnalysis
from torch.utils.flop_counter import FlopCounterMode

D = 64

class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(D, 3 * D)

    def forward(self, x):
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)[:, 0]

class Convolution(Attention):
    def forward(self, x):
        u, kernel, _ = self.qkv(x).chunk(3, -1)
        n = 2 * x.shape[1]
        return torch.fft.irfft(torch.fft.rfft(u, n, 1) * torch.fft.rfft(kernel, n, 1), n, 1)[:, : x.shape[1]]

def by_torch(model, x):
    with FlopCounterMode(display=False) as counter:
        model(x)
    return counter.get_total_flops()

counters = {
    "torch": by_torch,
    "fvcore": lambda m, x: 2 * FlopCountAnalysis(m, x).unsupported_ops_warnings(False).total(),
    "thop": lambda m, x: 2 * thop.profile(m, (x,), verbose=False)[0],
    "calflops": lambda m, x: calflops.calculate_flops(m, args=[x], print_results=False, output_as_string=False)[0],
    "ptflops": lambda m, x: 2 * ptflops.get_model_complexity_info(
        m, tuple(x.shape[1:]), as_strings=False, print_per_layer_stat=False, backend="aten")[0]}
for name, count in counters.items():
    for model in (Attention().eval(), Convolution().eval()):
        short, long = (count(model, torch.randn(1, length, D)) for length in (512, 2048))
        projections = 2 * 2048 * D * 3 * D
        print(f"{name:8} {type(model).__name__:11} {long / short:.2f} times as many for 4 times the tokens; "
              f"{long / projections:.2f} of the projection's, true for attention {1 + 4 * 2048**2 * D / projections:.0f}")
        assert 3.99 < long / short < 4.01 and long < 1.1 * projections
PYTHON
