#!/usr/bin/env python3
"""JAX's attention on the CPU, judged: jax.nn.dot_product_attention, forward and its own vector-Jacobian product. Nobody
here wrote it.

    python examples/judge_jax.py

Exits with 0 if every judgement is what this page of code says it is.
"""
import sys

import jax
import jax.numpy as jnp

import plumbline as pl


def attention(broken=False):
    """A function of the operation's inputs, by their names. softmax_scale is 1: queries arrive scaled."""

    def fn(query, key, value, cotangents, segment_ids=None, positions=None):
        tokens = query.shape[1]
        seen = jnp.tril(jnp.ones((tokens, tokens), bool), -1 if broken else 0)[None, None]
        if segment_ids is not None:
            seen = seen & (segment_ids[:, :, None] == segment_ids[:, None])[:, None]

        def forward(query, key, value):
            return jax.nn.dot_product_attention(query, key, value, mask=seen, scale=1.0, implementation="xla")

        output, back = jax.vjp(forward, query, key, value)
        grads = back(cotangents["output"].astype(output.dtype))
        return {"output": output, **dict(zip(("grad.query", "grad.key", "grad.value"), grads))}

    return fn


# XLA on the CPU takes numbers below the normal ones as 0; said nowhere, and found by the family "subnormals".
XLA_F32 = {"name": "xla_cpu_f32", "preset": "ieee_f32", "flush_to_zero": True}
XLA_BF16 = {"name": "xla_cpu_bf16", "preset": "bf16_f32acc", "flush_to_zero": True}
JUDGEMENTS = [  # what, dtype, contract, suite, broken, expected
    ("float32", "F32", XLA_F32, "default", False, True),
    ("bfloat16", "BF16", XLA_BF16, "default", False, True),
    ("float32 that keeps small numbers", "F32", "ieee_f32", ["subnormals"], False, False),
    ("a row that does not see itself", "F32", XLA_F32, ["gaussian"], True, False),
]


def main():
    surprises = 0
    for what, dtype, contract, suite, broken, expected in JUDGEMENTS:
        found = pl.verify(attention(broken), "mla_attention", suite, contract=contract, dtype=dtype, arrays="jax",
                          dims={"D": 8, "Dv": 8}, quiet=True)
        print(f"JAX {jax.__version__}, {what}: {found}\n")
        surprises += found.ok != expected
    return surprises


if __name__ == "__main__":
    sys.exit(main())
