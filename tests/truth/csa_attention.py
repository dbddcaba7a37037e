"""Truth for csa_attention: the softmax of mla_attention.py over a window of tokens and the blocks beside it."""
import tape
from case import BadCase, Rows
from mla import plain, seed_all
from mla_attention import Attention, Sink, chosen_keys
from tape import Leaves


def row_keys(case, rows, b, t):
    """What a real row attends to: ("kv", s) once, ("compressed", j) as often as it counts."""
    keys = {("kv", s): 1 for s in rows.window(b, t, case.options["window"])}
    keys.update({("compressed", j): n for j, n in chosen_keys(case, rows, b, t).items()})
    return keys


def rows_of_case(case):
    B, T = case.shape("in.query")[:2]
    if case.options["window"] < 0:
        raise BadCase("window < 0")
    return Rows(case, B, T, True, [case.shape("in.kv")[1]], case.shape("in.compressed")[1])


def csa_attention(case):
    leaf = Leaves(case)
    B, T, H, D = case.shape("in.query")
    rows = rows_of_case(case)
    count = {"kv": rows.S, "compressed": rows.K}

    def latent(b, key, h):
        name, n = key
        return leaf.row(name, (b * count[name] + n) * D, D)

    attention = Attention(case, rows, H, D, lambda b, t, h: leaf.row("query", ((b * T + t) * H + h) * D, D), latent,
                          latent, lambda b, t: row_keys(case, rows, b, t), Sink(case, leaf), case.options)
    output, lse, largest = attention.run()
    seed_all(case, "output", output)
    seed_all(case, "lse", lse)
    result = {"out.output": ((B, T, H, D), plain(output)), "out.lse": ((B, T, H), plain(lse)),
              "out.max_logit": ((B, T, H), largest)}
    tape.backward()
    result.update(leaf.gradients(("query", "kv", "compressed", "sink")))
    return result
