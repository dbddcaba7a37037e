"""Random cases of linear, the norms, rope, stage_routing and mla_projection; helpers of random_mla_cases.py."""
import math

import losses
import operations
import safetensors_io as st
from random_inputs import floats, put, put_f8, sizes
from safetensors_io import Tensor


def cot(rng, tensors, name, shape, dtype=None):
    tensors["cot." + name] = floats(rng, shape, 1.0, dtype or rng.choice(("F32", "F64", "BF16")))


def nonzero(rng, shape, width):
    """No row of zeros, no constant row."""
    return floats(rng, shape, width, rng.choice(("F32", "F64", "BF16")), "normal")


# ---------------------------------------------------------------------------------------------------
# linear, norms, rope, routing
# ---------------------------------------------------------------------------------------------------

def make_linear(rng):
    tensors, options = {}, {}
    n = sizes(rng, set(), rows=(1, 7), I=(1, 6), G=(1, 4), O=(1, 8))
    if rng.random() < 0.04:
        n["rows"] = 0
    shape = (n["I"], n["G"], n["O"])
    put(rng, tensors, "in.x", floats(rng, (n["rows"], n["I"]), 1.5))
    begin, end = 0, n["O"]
    if rng.random() < 0.6:
        begin = rng.randrange(n["O"])
        end = rng.randint(begin + 1, n["O"])
        options["slice_bounds"] = [begin, end]
        put(rng, tensors, "in.weight", floats(rng, shape, 1.0))
    elif rng.random() < 0.3:
        put_f8(rng, tensors, "in.weight", shape)
    else:
        put(rng, tensors, "in.weight", floats(rng, shape, 1.0))
    if rng.random() < 0.5:
        put(rng, tensors, "in.bias", floats(rng, shape[1:], 1.0))
    cot(rng, tensors, "y", (n["rows"], n["G"], end - begin))
    return options, {}, tensors


def make_norm(rng, layer):
    tensors, options = {}, {}
    shape = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(0, 3))) + (rng.choice((1, 2, 3, 5, 7, 8)),)
    if layer and shape[-1] == 1:
        options["eps"] = rng.choice((1e-6, 0.25))
    elif rng.random() < 0.7:
        options["eps"] = rng.choice((1e-6, 1e-5, 1e-3, 0.5, 0, 1e-20))
    if options.get("eps") == 0:
        tensors["in.x"] = nonzero(rng, shape, 1.0)
    else:
        put(rng, tensors, "in.x", floats(rng, shape, rng.choice((1.0, 30.0, 1e-3, 1e-8))))
    if rng.random() < 0.7:
        put(rng, tensors, "in.weight", floats(rng, shape[-1:], 1.0))
    if layer and rng.random() < 0.6:
        put(rng, tensors, "in.bias", floats(rng, shape[-1:], 1.0))
    cot(rng, tensors, "y", shape)
    return options, {}, tensors


def rope_options(rng, dim, free=True, inverse=True):
    """`free`: whether placement and the like may be named at all."""
    o = {"theta": rng.choice((10000.0, 10000, 100.0, 160000.0, 1.5, 0.75, 500000.0)), "dim": dim}
    if free and rng.random() < 0.6:
        o["placement"] = rng.choice(("trailing", "leading"))
    if rng.random() < 0.7:
        o["pairing"] = rng.choice(("interleaved", "half"))
    if rng.random() < 0.5:
        o["output"] = rng.choice(("same", "half"))
    if inverse and rng.random() < 0.4:
        o["inverse"] = rng.random() < 0.7
    if rng.random() < 0.3:
        o["attention_factor"] = rng.choice((1.0, 0.9, 1.25, 2))
    if rng.random() < 0.45:
        fast, slow = rng.choice(((32.0, 1.0), (32, 1), (4.0, 1.0), (2.5, 0.5), (64.0, 48.0), (1.0, 1.0), (1.0, 8.0)))
        o["yarn"] = {"factor": rng.choice((4.0, 40, 8.0, 1.0, 0.5)), "beta_fast": fast, "beta_slow": slow,
                     "original_max_position": rng.choice((4096, 64, 8, 4, 512, 1))}
        if rng.random() < 0.5:
            o["yarn"]["truncate"] = rng.random() < 0.4
    elif rng.random() < 0.2:
        o["yarn"] = None
    return o


def put_positions(rng, tensors, B, S):
    if rng.random() < 0.6:
        top = rng.choice((9, 300, 100000, 2000000))
        tensors["in.positions"] = Tensor("I32", (B, S), [rng.randint(0, top) for _ in range(B * S)])


def make_rope(rng):
    tensors = {}
    B, S, H = (rng.choice((1, 2, 3)) for _ in range(3))
    D = rng.randint(2, 11)
    dim = 2 * rng.randint(1, D // 2)
    put(rng, tensors, "in.x", floats(rng, (B, S, H, D), 1.5))
    put_positions(rng, tensors, B, S)
    cot(rng, tensors, "y", (B, S, H, D))
    return {"rope": rope_options(rng, dim)}, {}, tensors


def make_stage_routing(rng):
    options = {"use_indexer": rng.random() < 0.7, "sparse": rng.random() < 0.5,
               "coefficient": rng.choice((0, 0.0, 1, 0.25, 1e-300, -1.0))}
    if rng.random() < 0.8:
        options["model"] = rng.choice(("v32", "v4"))
    if rng.random() < 0.8:
        options["mode"] = rng.choice(("train", "prefill", "autoregressive"))
    return options, {}, {}


# ---------------------------------------------------------------------------------------------------
# projection weights, shared with the layer
# ---------------------------------------------------------------------------------------------------

def put_projection(rng, tensors, options, B, S, taken=(), direct=None, inverse=True):
    n = sizes(rng, set(taken) | {B, S}, E=(1, 7), Rq=(1, 5), Rkv=(1, 5), H=(1, 4), dn=(1, 5), dv=(1, 5))
    n["dr"] = rng.choice((2, 2, 4, 6))
    E, Rq, Rkv, H, dn, dv, dr = (n[x] for x in ("E", "Rq", "Rkv", "H", "dn", "dv", "dr"))
    options.update(nope_dim=dn, rope_dim=dr, v_dim=dv, rope=rope_options(rng, dr, inverse=inverse))
    if rng.random() < 0.5:
        options["eps"] = rng.choice((1e-6, 1e-5, 0.25))
    if rng.random() < 0.3:
        options["mscale"] = rng.choice((1, 0.707, 2.0, 0))
    for name in ("max_position", "original_max_position"):
        if rng.random() < 0.5:
            options[name] = rng.choice((0, 64, 256, 4096))
    long, short = options.get("max_position", 0), options.get("original_max_position", 0)
    if long and short and long > short and not options["rope"].get("yarn"):
        options["rope"]["yarn"] = {"factor": 4.0, "beta_fast": 32, "beta_slow": 1.0, "original_max_position": 64}
    width = rng.choice((0.5, 1.0, 2.0))
    n["direct"] = direct = rng.random() < 0.35 if direct is None else direct
    shapes = {"wkv_a": (E, Rkv + dr), "kv_norm": (Rkv,), "wkv_b": (Rkv, H, dn + dv)}
    biases = {"bkv_a": (Rkv + dr,), "bkv_b": (H, dn + dv)}
    if direct:
        shapes["wq"] = (E, H, dn + dr)
        biases["bq"] = (H, dn + dr)
    else:
        shapes.update(wq_a=(E, Rq), q_norm=(Rq,), wq_b=(Rq, H, dn + dr))
        biases.update(bq_a=(Rq,), bq_b=(H, dn + dr))
    for name, shape in list(shapes.items()) + [x for x in biases.items() if rng.random() < 0.4]:
        put(rng, tensors, "in." + name, floats(rng, shape, width))
    put(rng, tensors, "in.x", floats(rng, (B, S, E), rng.choice((1.0, 1.0, 3.0, 0.01))))
    return n


def give(rng, tensors, name, forward, source=None):
    """given.<name>: the forward's own value, rounded."""
    shape, values = forward["out." + (source or name)]
    dtype = rng.choice(("F32", "F64"))
    tensors["given." + name] = Tensor(dtype, tuple(shape), [
        math.nan if x is None else st.round_to(dtype, float(x)) for x in values])


def evaluated(op, options, tensors):
    return operations.evaluate(losses.Case({"op": op, "options": options}, tensors), 30)


def make_mla_projection(rng):
    tensors, options = {}, {}
    B, S = rng.choice((1, 2)), rng.choice((1, 2, 3, 5, 6))
    if rng.random() < 0.03:
        S = 0
    n = put_projection(rng, tensors, options, B, S)
    put_positions(rng, tensors, B, S)
    width = n["dn"] + n["dr"]
    shapes = {"query": (B, S, n["H"], width), "key": (B, S, n["H"], width), "value": (B, S, n["H"], n["dv"]),
              "kv_latent": (B, S, n["Rkv"]), "k_pe": (B, S, n["dr"])}
    if not n["direct"]:
        shapes["q_latent"] = (B, S, n["Rq"])
    names = rng.sample(sorted(shapes), rng.randint(1, len(shapes)))
    for name in names:
        cot(rng, tensors, name, shapes[name])
    if rng.random() < 0.25 and S:
        forward = evaluated("mla_projection", options, tensors)
        for name in ("q_latent", "kv_latent", "k_pe"):
            if name in shapes and rng.random() < 0.5:
                give(rng, tensors, name, forward)
    return options, ({"sliced": rng.random() < 0.7} if rng.random() < 0.6 else {}), tensors
