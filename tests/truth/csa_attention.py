"""Truth for csa_attention: one softmax over window tokens, selected blocks and the sink."""
import tape
from case import Rows
from mla import plain, seed_all
from mla_attention import Attention, Sink, chosen_keys
from tape import Leaves

WINDOW, BLOCK = 0, 1


def csa_attention(case):
    leaf, o = Leaves(case), case.options
    B, T, H, D = case.shape("in.query")
    S, N = case.shape("in.kv")[1], case.shape("in.compressed")[1]
    rows = Rows(case, B, T, True, [S], N)

    def key(b, where, h):
        kind, s = where
        return leaf.row("kv", (b * S + s) * D, D) if kind == WINDOW else leaf.row("compressed", (b * N + s) * D, D)

    def keys(b, t):
        out = {(WINDOW, s): 1 for s in rows.window(b, t, o["window"])}
        out.update({(BLOCK, j): n for j, n in chosen_keys(case, rows, b, t).items()})
        return out

    attention = Attention(case, rows, H, D, lambda b, t, h: leaf.row("query", ((b * T + t) * H + h) * D, D),
                          key, key, keys, Sink(case, leaf), o)
    output, lse, largest = attention.run()
    seed_all(case, "output", output)
    seed_all(case, "lse", lse)
    result = {"out.output": ((B, T, H, D), plain(output)), "out.lse": ((B, T, H), plain(lse)),
              "out.max_logit": ((B, T, H), largest)}
    tape.backward()
    result.update(leaf.gradients(("query", "kv", "compressed", "sink")))
    return result
