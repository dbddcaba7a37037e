"""PyTorch's tensors go in and out with their dtypes and strides. Run in an environment that has PyTorch."""
import numpy as np
import torch

import plumbline as pl


def norm(x):
    return pl.evaluate("rms_norm", {"x": x})["y"].high


x = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
for each in (x, x.t(), x[:, ::2], x.expand(3, 8), x[:1].expand(3, 8), x.to(torch.float16)[::2], x.double()):
    assert np.array_equal(norm(each), norm(each.detach().double().numpy())), each.shape

for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
    weight = torch.randn(8, 1, 1).to(dtype)
    y = pl.evaluate("linear", {"x": x, "weight": weight})["y"].high.ravel()
    assert np.allclose(y, (x.detach().double() @ weight.double()[:, :, 0]).ravel().numpy(), rtol=1e-14, atol=1e-14)

held = pl.Case("rms_norm", {"x": x}).inputs["x"]
assert held.dtype == "BF16" and torch.equal(held.torch(), x.detach())
assert torch.equal(torch.from_dlpack(held), x.detach())

y = torch.nn.functional.rms_norm(x, (8,), eps=1e-6)
pl.assert_passes(pl.check("rms_norm", {"x": x}, {"y": y}, contract="bf16_f32acc"))
print("PyTorch's tensors: fine")
