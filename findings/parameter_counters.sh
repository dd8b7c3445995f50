#!/usr/bin/env bash
# torchsummary 1.5.1, thop 0.1.1, torchinfo 1.8.0, ptflops 0.7.5, calflops 0.3.2, fvcore 0.1.5 (torch 2.13.0, CPU): parameters of two
# diagonal state-space layers, whose poles and kernels are parameters of the layer itself. Guess: all count the same. Seen:
# torchsummary and thop count those of Linear and LayerNorm alone, half of the model. torchinfo counts all, but its bytes are those of
# that half. Nobody counts a complex parameter as two numbers.
# So a state-space model may be given twice the parameters of a Transformer "of equal size"; compare the sum over parameters().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 numpy torchsummary==1.5.1 thop==0.1.1.post2209072238 torchinfo==1.8.0 ptflops==0.7.5 \
  calflops==0.3.2 fvcore==0.1.5.post20221221 transformers==5.24.0
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import contextlib
import io
import re

import calflops
import fvcore.nn
import ptflops
import thop
import torch
import torchinfo
import torchsummary

WIDTH, STATES, LENGTH = 64, 32, 128

class StateSpace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_decay = torch.nn.Parameter(torch.zeros(WIDTH, STATES))
        self.frequency = torch.nn.Parameter(torch.randn(WIDTH, STATES))
        self.readout = torch.nn.Parameter(torch.randn(WIDTH, STATES, dtype=torch.cfloat))
        self.output = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        n = x.shape[1]
        pole = torch.complex(-self.log_decay.exp(), self.frequency)
        kernel = torch.einsum("dn,dnl->ld", self.readout, torch.exp(pole[..., None] * torch.arange(n))).real
        y = torch.fft.irfft(torch.fft.rfft(x, 2 * n, 1) * torch.fft.rfft(kernel, 2 * n, 0), 2 * n, 1)
        return self.output(y[:, :n])

model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), StateSpace(), StateSpace(), torch.nn.LayerNorm(WIDTH)).eval()
x = torch.randn(1, LENGTH, WIDTH)
total = sum(parameter.numel() for parameter in model.parameters())
layers = sum(parameter.numel() for module in model.modules() if isinstance(module, (torch.nn.Linear, torch.nn.LayerNorm))
             for parameter in module.parameters())
total_bytes = sum(parameter.nbytes for parameter in model.parameters())

def by_torchsummary():
    with contextlib.redirect_stdout(io.StringIO()) as text:
        torchsummary.summary(model, (LENGTH, WIDTH), device="cpu")
    return int(re.search(r"Total params: ([\d,]+)", text.getvalue())[1].replace(",", ""))

info = torchinfo.summary(model, input_data=x, verbose=0)
found = {"torchsummary": (by_torchsummary(), layers),
         "thop": (thop.profile(model, (x,), verbose=False)[1], layers),
         "torchinfo": (info.total_params, total),
         "torchinfo's bytes": (info.total_param_bytes, 4 * layers),
         "ptflops": (ptflops.get_model_complexity_info(model, (LENGTH, WIDTH), as_strings=False, print_per_layer_stat=False,
                                                       backend="pytorch")[1], total),
         "calflops": (calflops.calculate_flops(model, args=[x], print_results=False, output_as_string=False)[2], total),
         "fvcore": (fvcore.nn.parameter_count(model)[""], total)}
print(f"the model: {total} parameters in {total_bytes} bytes, {layers} of them in Linear and LayerNorm")
assert layers < 0.6 * total
for name, (count, expected) in found.items():
    print(f"{name:18} {int(count)}")
    assert count == expected, name
PYTHON
