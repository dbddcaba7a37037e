#!/usr/bin/env python3
"""PyTorch's attention on the CPU, judged: its eager composition (the math backend) and its fused kernel, forward and
backward by autograd, in float32 and bfloat16. Nobody here wrote either.

    python examples/judge_torch.py

Exits with 0 if every judgement is what this page of code says it is.
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import plumbline as pl


def attention(backend, broken=False):
    """A function of the operation's inputs, by their names. softmax_scale is 1: queries arrive scaled."""

    def fn(query, key, value, cotangents, segment_ids=None, positions=None):
        query, key, value = (each.detach().requires_grad_() for each in (query, key, value))
        tokens = query.shape[1]
        seen = torch.ones(tokens, tokens, dtype=torch.bool).tril()[None]
        if segment_ids is not None:
            seen = seen & (segment_ids[:, :, None] == segment_ids[:, None])
        with sdpa_kernel(backend):
            output = scaled_dot_product_attention(
                *(each.transpose(1, 2) for each in (query, key, value)), attn_mask=seen[:, None],
                scale=1.02 if broken else 1.0, enable_gqa=query.shape[2] != key.shape[2]).transpose(1, 2)
        grads = torch.autograd.grad(output, (query, key, value), cotangents["output"])
        return {"output": output, **dict(zip(("grad.query", "grad.key", "grad.value"), grads))}

    return fn


# The fused kernel multiplies bfloat16 in hardware, which takes numbers below the normal ones as 0.
FUSED_BF16 = {"name": "torch_fused_bf16", "preset": "bf16_f32acc", "flush_to_zero": True}
JUDGEMENTS = [  # what, backend, dtype, contract, broken, expected
    ("eager, float32", SDPBackend.MATH, "F32", "ieee_f32", False, True),
    ("fused, float32", SDPBackend.FLASH_ATTENTION, "F32", "ieee_f32", False, True),
    ("eager, bfloat16", SDPBackend.MATH, "BF16", "bf16_f32acc", False, True),
    ("fused, bfloat16", SDPBackend.FLASH_ATTENTION, "BF16", FUSED_BF16, False, True),
    ("eager, scale off by 2 %", SDPBackend.MATH, "F32", "ieee_f32", True, False),
]


def main():
    surprises = 0
    for what, backend, dtype, contract, broken, expected in JUDGEMENTS:
        found = pl.verify(attention(backend, broken), "mla_attention", contract=contract, dtype=dtype, arrays="torch",
                          dims={"D": 8, "Dv": 8}, quiet=True)
        print(f"PyTorch {torch.__version__}, {what}: {found}\n")
        surprises += found.ok != expected
    return surprises


if __name__ == "__main__":
    sys.exit(main())
