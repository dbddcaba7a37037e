"""self_check.py [--count N] [--seed S]: the truth against itself and against numbers worked by hand.

 - the discriminating case (own teacher 1/2, 1/2; joint teacher 7/12, 5/12; the gradient changes sign);
 - `grad.*` of random cases (away from the ReLU's kink) against central differences: of the loss and row losses
   for gradient of_value, of the surrogate it defines for p_minus_t, of the scores for indexer_scores.
"""
import argparse
import sys
from fractions import Fraction

import mpmath

import losses
import random_cases
from safetensors_io import Tensor

STEP = Fraction(1, 10 ** 18)
mpf = mpmath.mpf


def discriminating(teacher):
    """Two heads, two visible blocks, window + sink mass 4 and 12; logits through width-2 vectors."""
    S, m, one, zero = 8, 4, Fraction(1), Fraction(0)
    with mpmath.workdps(60):
        # window of one token with logit ln 2 / ln 6 for head 0 / 1, sink the same: mass 4 and 12
        ln2, ln3, ln6 = (Fraction(mpmath.nstr(mpmath.log(n), 55)) for n in (2, 3, 6))
    query = [one, zero, ln2, zero, one, ln6]
    tensors = {
        "in.query": Tensor("F64", (1, 1, 2, 3), query),
        "in.compressed": Tensor("F64", (1, 2, 3), [ln3, zero, zero, zero, ln3, zero]),
        "in.kv": Tensor("F64", (1, S, 3), [zero, zero, one] * S),
        "in.sink": Tensor("F64", (2,), [ln2, ln6]),
        "in.scores": Tensor("F64", (1, 1, 2), [Fraction(1, 5), Fraction(-1, 10)]),
    }
    options = {"preset": "exact", "teacher": teacher, "window": 1, "m": m}
    return losses.evaluate(losses.Case({"op": "csa_indexer_loss", "options": options}, tensors))


def objective(case, weights):
    """What grad.* differentiates, from the outputs alone (for p_minus_t: the surrogate, from target and z)."""
    with mpmath.workdps(60):
        if case.op == "indexer_scores":
            return mpmath.fsum(w * x for w, x in zip(weights, losses.indexer_scores(case)["out.scores"][1]))
        loss = losses.Loss(case)
        result = loss.run()
        rows = list(result["out.row_loss"][1])
        if loss.o["gradient"] == "p_minus_t":
            target, student = result["out.target"][1], result["out.student"][1]
            for here in range(len(rows)):
                b, t, row = here // loss.T, here % loss.T, here * loss.width
                if all(x == 0 for x in student[row:row + loss.width]):
                    continue
                columns = loss.chosen(b, t, loss.rows.visible(b, t))
                z = {s: loss.student_logit(b, t, s, column) for s, column in columns.items()}
                rows[here] = losses.log_sum_exp(z.values()) - mpmath.fsum(
                    target[row + column] * z[s] for s, column in columns.items())
        total = mpmath.mpf(0)
        if weights[0] is not None:
            real_rows = sum(loss.rows.is_real(b, t) for b in range(loss.B) for t in range(loss.T))
            count = {"sum": 1, "mean_all": loss.B * loss.T, "mean_valid": sum(result["out.row_valid"][1]),
                     "mean_real": real_rows}[loss.o["reduction"]]
            total += weights[0] * losses.real(losses.number(loss.o["coefficient"])) * mpmath.fsum(rows) / max(count, 1)
        if weights[1] is not None:
            total += mpmath.fsum(losses.real(w) * x for w, x in zip(weights[1], rows) if not isinstance(x, int))
        return total


def has_kink(case):
    """Some q.k is exactly 0 under a ReLU (hidden products count too; that only skips a case)."""
    names = ("in.q", "in.k", "in.w") if case.op == "indexer_scores" else ("in.index_q", "in.index_k", "in.index_w")
    if names[0] not in case.tensors or not case.options.get("relu", True):
        return False
    scorer = losses.Scorer(case, *names, case.options)
    for b in range(scorer.B):
        for t in range(scorer.T):
            for a in range(scorer.A):
                for s in range(scorer.K):
                    i, j = scorer._places(b, t, a, s)
                    cells = scorer.q[i:i + scorer.e] + scorer.k[j:j + scorer.e]
                    if all(losses._finite(x) for x in cells) and losses.dot(scorer.q, i, scorer.k, j, scorer.e) == 0:
                        return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=99)
    arguments = parser.parse_args()
    failed = False

    own, joint = discriminating("own"), discriminating("joint")
    with mpmath.workdps(60):
        for result, t0, kl in ((own, mpf(1) / 2, "0.0112080639"), (joint, mpf(7) / 12, "0.000161978477")):
            t = result["out.target"][1]
            if abs(t[0] - t0) > 1e-30 or abs(result["out.loss"][1][0] - mpf(kl)) > 1e-10:
                print("FAIL discriminating case", t, result["out.loss"])
                failed = True
        if not (own["grad.scores"][1][0] > 0 > joint["grad.scores"][1][0]):
            print("FAIL the gradient does not change sign")
            failed = True

    tested = elements = 0
    number = 0
    while tested < arguments.count:
        plumbline, tensors = random_cases.make(arguments.seed, number)
        number += 1
        op = plumbline["op"]
        if op == "topk":
            continue
        # a scale in front of stored numbers cannot be stepped, nor can a constant
        if any(n.endswith(".scale") for n in tensors):
            continue
        case = losses.Case(plumbline, tensors)
        if has_kink(case):
            continue
        result = losses.evaluate(case)
        if op == "indexer_scores":
            weights = [losses.real(x) for x in tensors["cot.scores"].values]
        else:
            loss_cot = tensors["cot.loss"].values[0] if "cot.loss" in tensors else None
            row_cot = tensors["cot.row_loss"].values if "cot.row_loss" in tensors else None
            if loss_cot is None and row_cot is None:
                loss_cot = 1
            weights = (None if loss_cot is None else losses.real(loss_cot), row_cot)
        tested += 1
        for name in [n for n in result if n.startswith("grad.")]:
            source = "in." + name[len("grad."):]
            live = [i for i, g in enumerate(result[name][1]) if not (isinstance(g, int))]
            for i in live[:: max(1, len(live) // 4)][:5]:
                values = []
                for sign in (1, -1):
                    moved = dict(tensors)
                    cells = list(tensors[source].values)
                    cells[i] = cells[i] + sign * STEP
                    moved[source] = Tensor("F64", tensors[source].shape, cells)
                    values.append(objective(losses.Case(plumbline, moved), weights))
                with mpmath.workdps(60):
                    slope = (values[0] - values[1]) / (2 * losses.real(STEP))
                    got = result[name][1][i]
                    scale = max(abs(x) for x in result[name][1]) + mpf(10) ** -8
                    elements += 1
                    if abs(slope - got) > scale * mpf(10) ** -24:
                        failed = True
                        print("FAIL case %d %s[%d]: %s, difference %s" % (
                            number - 1, name, i, mpmath.nstr(got, 20), mpmath.nstr(slope, 20)))
    print("%d cases, %d elements against differences: %s" % (tested, elements, "FAIL" if failed else "ok"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
