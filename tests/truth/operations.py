"""Every operation the truth knows: OPERATIONS, ON_REQUEST, and evaluate(case)."""
import mpmath

import csa
import dsa_indexer
import losses
import mla
import mla_attention
import mla_layer
import mla_step
import tape
from case import BadCase, Case, load, real  # noqa: F401

OPERATIONS = dict(losses.OPERATIONS)
OPERATIONS.update({
    "linear": mla.linear, "rms_norm": mla.rms_norm, "layer_norm": mla.layer_norm, "rope": mla.rope,
    "mla_projection": mla.mla_projection, "dsa_indexer": dsa_indexer.dsa_indexer, "stage_routing": mla.stage_routing,
    "mla_attention": mla_attention.mla_attention, "merge_attention": mla_attention.merge_attention,
    "mla_layer": mla_layer.mla_layer, "mla_step": mla_step.mla_step,
    "csa_compress": csa.csa_compress, "csa_indexer": csa.csa_indexer})

ON_REQUEST = {name: () for name in OPERATIONS}
ON_REQUEST.update(losses.ON_REQUEST)
ON_REQUEST.update({
    "mla_attention": ("max_logit",), "dsa_indexer": ("scores", "selected"),
    "csa_indexer": ("scores", "selected"),
    "mla_layer": ("query", "key", "value", "q_latent", "kv_latent", "k_pe", "attention_output", "attention_lse",
                  "attention_max_logit", "indexer_index_q", "indexer_index_k", "indexer_index_w",
                  "indexer_scores", "indexer_indices", "indexer_selected", "row_loss", "row_valid", "log_mass",
                  "head_sum", "target", "student")})
ON_REQUEST["mla_step"] = ON_REQUEST["mla_layer"]

INTEGERS = ("indices", "indexer_indices", "state.length", "state.positions", "state.segment_ids")
FLAGS = ("prior_present", "selected", "row_valid", "indexer_selected", "computes_loss", "warm_up", "attends_all", "lm_loss")
WITH_STEPS = ("csa_compress", "csa_indexer")  # a gradient under schedule.step too
WITHOUT_GRADIENT = ("topk", "stage_routing", "mla_step")


def has_gradient(plumbline):
    schedule = plumbline.get("schedule", {})
    forward_only = plumbline["op"] not in WITH_STEPS and (schedule.get("prefill") or schedule.get("step"))
    return plumbline["op"] not in WITHOUT_GRADIENT and not forward_only


def evaluate(case, dps=60):
    """Every output and gradient of `case`, computed with `dps` decimal digits; None where anything goes."""
    with mpmath.workdps(dps):
        tape.restart()
        try:
            return OPERATIONS[case.op](case)
        finally:
            tape.restart()
