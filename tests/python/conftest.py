"""What several files want. Run by the consumer suite in an environment made for it, or by hand:
PYTHONPATH=build/bindings/python python -m pytest tests/python"""
import math
import os
from pathlib import Path

import numpy as np
import pytest

import plumbline as pl

ROOT = Path(__file__).resolve().parents[2]
# None: tests of the command line say that they miss it.
PROGRAM = os.environ.get("PLUMBLINE_PROGRAM")


@pytest.fixture
def program():
    assert PROGRAM, "PLUMBLINE_PROGRAM: found nothing, expected the path of the program"
    return PROGRAM


def two_teachers(preset):
    """The row of docs/discriminating-case.md."""
    ln = math.log
    kv = np.zeros((1, 8, 2))
    kv[0, 7] = ln(2), ln(7)
    inputs = {
        "query": np.eye(2).reshape(1, 1, 2, 2), "compressed": np.array([[[ln(3), 0], [0, ln(3)]]]), "kv": kv,
        "sink": np.array([ln(2), ln(5)]), "scores": np.array([[[0.2, -0.1]]])}
    return inputs, {"preset": preset, "m": 4, "window": 1}


def attention(query, key, value, sink=None, valid=None, row_mask=None, segment_ids=None, positions=None, stored=None):
    """Causal attention in float32 by somebody who knows nothing of plumbline."""
    batch, rows, heads, _ = query.shape
    tokens, group = key.shape[1], heads // key.shape[2]
    key, value = np.repeat(key, group, 2), np.repeat(value, group, 2)
    seen = np.arange(tokens)[None] <= np.arange(rows)[:, None] + tokens - rows
    seen = np.broadcast_to(seen, (batch, rows, tokens)).copy()
    if valid is not None:
        seen &= valid
    if segment_ids is not None:
        seen &= segment_ids[:, tokens - rows:, None] == segment_ids[:, None]
    if row_mask is not None:
        seen &= row_mask[..., None]
    with np.errstate(all="ignore"):
        logits = np.einsum("bthd,bshd->bths", query, key).astype(np.float32)
        logits = np.where(seen[:, :, None], logits, -np.inf)
        largest = logits.max(-1, keepdims=True)
        if sink is not None:
            largest = np.maximum(largest, sink[:, None])
        largest = np.where(np.isfinite(largest), largest, 0)
        weights = np.exp(logits - largest)
        total = weights.sum(-1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink[:, None] - largest)
        weights = np.where(total > 0, weights / total, 0).astype(np.float32)
        if stored is not None:
            weights = pl.tensor(weights, stored).numpy()
        value = np.where(np.isfinite(value), value, 0)
        output = np.einsum("bths,bshd->bthd", weights, value).astype(np.float32)
    return output
