"""Truth for csa_indexer, as an operation and as the stage of a layer."""
import tape
from case import Rows
from csa_compress import Compressor, Projected
from dsa_indexer import Indexer, given_selection
from losses import score_factor
from mla import Rope, per_token, plain, seed_all
from tape import Leaves, constant

CSA_INDEXER_WEIGHTS = ("q_proj", "kv_proj", "gate_proj", "position_bias", "kv_norm_weight", "weights_proj")


class CsaIndexer(Indexer):
    """Queries and head weights of tokens, keys of blocks; `prior(b)` as in Compressor."""

    def __init__(self, case, leaf, options, rows, x, q_latent, prefix="", prior=lambda b: None):
        self.case, self.leaf, self.o, self.rows, self.prefix = case, leaf, options, rows, prefix
        self.x, self.q_latent = x, q_latent
        self.Rq, self.A, self.e = case.shape("in.%sq_proj" % prefix)
        self.turn = Rope(options["rope"], self.e)
        self.factor = score_factor(options, self.A, self.e)
        self.kept = {}
        e = self.e
        self.raw = Projected(leaf, x, prefix, 2 * e)
        self.compressor = Compressor(
            rows, options, e, self.raw, lambda i: leaf.row(prefix + "position_bias", i * 2 * e, 2 * e),
            lambda: leaf.row(prefix + "kv_norm_weight", 0, e), prior)

    def position(self, b, s):
        return self.rows.position[b][s]

    def index_q(self, b, s):
        def make():
            out, e = [], self.e
            for a in range(self.A):
                out += self.turn(self._times(self.q_latent(b, s), "q_proj", range(a * e, (a + 1) * e), self.A * e),
                                 self.position(b, s))
            return out
        return self._once("index_q", b, s, self.A * self.e, make)

    def index_k(self, b, j):
        name = "given.%sindex_k" % self.prefix
        if self.case.has(name):
            begin = (b * self.rows.K + j) * self.e
            key = ("index_k", b, j)
            if key not in self.kept:
                self.kept[key] = [constant(self.case, name, begin + n) for n in range(self.e)]
            return self.kept[key]
        return self.compressor.block(b, j)

    def outputs(self):
        B, S, N = self.rows.B, self.rows.S, self.rows.K
        return {"index_q": ((B, S, self.A, self.e), self.index_q), "index_k": ((B, N, self.e), self.index_k),
                "index_w": ((B, S, self.A), self.index_w)}


def csa_indexer(case):
    leaf, o = Leaves(case), case.options
    B, S, E = case.shape("in.x")
    T = case.shape("in.row_index")[0] if case.has("in.row_index") else S
    rows = Rows(case, B, T, True, [S])
    Rq = case.shape("in.q_latent")[2]
    indexer = CsaIndexer(case, leaf, o, rows, lambda b, s: leaf.row("x", (b * S + s) * E, E),
                         lambda b, s: leaf.row("q_latent", (b * S + s) * Rq, Rq))
    scores, indices, selected = indexer.select()
    indices, selected = given_selection(case, "", rows, indices, selected)
    seed_all(case, "scores", scores)
    result = {"out.scores": ((B, T, rows.K), plain(scores)), "out.indices": ((B, T, o["k"]), indices),
              "out.selected": ((B, T, rows.K), selected)}
    for name, (shape, make) in indexer.outputs().items():
        values = per_token(shape, make, True)
        seed_all(case, name, values)
        result["out." + name] = (shape, plain(values))
    tape.backward()
    result.update(leaf.gradients(("x", "q_latent") + CSA_INDEXER_WEIGHTS))
    return result
