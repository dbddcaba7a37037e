# Made by scripts/make_stubs.py from the registry; a test compares.
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._evaluate import Result

Array = Any  # numpy, PyTorch, JAX, anything with __dlpack__ or a buffer

CsaAttentionOptions = TypedDict('CsaAttentionOptions', {
    'softmax_scale': float,
    'lse_base': Literal['e', 2],
    'lse_includes_sink': bool,
    'empty_lse': Literal['-inf', '+inf', 0],
    'strict_selection': bool,
    'duplicates': Literal['error', 'set', 'multiset'],
    'mask': Optional[Dict[str, Any]],
    'S': int,
    'm': int,
    'window': int,
    'grid': Literal['physical', 'document'],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def csa_attention(
    query: Array,
    kv: Array,
    compressed: Array,
    selected: Optional[Array] = ...,
    indices: Optional[Array] = ...,
    sink: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[CsaAttentionOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """softmax attention over a window of tokens, selected compressed blocks and a sink

        output = sum_s p_s kv_s over window and blocks,  p_s = exp(c_s - ln(sum exp c + exp sink)),  c_s = softmax_scale q . kv_s

    inputs
        query [B T H D], real, required, differentiable: queries
        kv [B S D], real, required, differentiable: tokens of the window, each its key and its value
        compressed [B N D], real, required, differentiable: compressed blocks, each its key and its value
        selected [B T N], boolean: selected blocks; without selected and indices all visible ones
        indices [B T k], integer: selected blocks by number, -1 an empty slot
        sink [H], real, differentiable: sink logits, natural and not scaled; may be infinite
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T N], boolean: false hides a key from a row
        mask [B T N], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        output [B T H D], real: a forward pass's own output
        lse [B T H], real: a forward pass's own lse, in the convention of the options
        max_logit [B T H], real: its largest logits

    cotangents
        output [B T H D], real: of the output
        lse [B T H], real: of lse

    outputs
        output [B T H D], real: sum of p kv over window and blocks
        lse [B T H], real: log-sum-exp of the logits, see the lse options
        max_logit [B T H], real, on request: largest logit of the row, natural, without the sink

    options
        softmax_scale: number = 1.0. factor of the logits; 1: queries arrive scaled
        lse_base: e | 2 = "e". base of the logarithm in lse
        lse_includes_sink: bool = false. the sink is a term of lse
        empty_lse: -inf | +inf | 0. lse of a row without keys, as it stands; default -inf, with a counted sink the
            sink
        strict_selection: bool = false. selecting a key that the row does not see is an error
        duplicates: error | set | multiset = "error". a key named twice: an error, one key, or a key of twice the
            weight
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        S: integer. number of tokens, where no tensor tells
        m: integer. tokens per block; required
        window: integer. keys of the sliding window, the current token included; 0 = none; required
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, key_block
    """

CsaCompressOptions = TypedDict('CsaCompressOptions', {
    'm': int,
    'overlap': bool,
    'norm': bool,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'boundary': Literal['positions', 'segments'],
    'grid': Literal['physical', 'document'],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def csa_compress(
    kv: Array,
    gate: Array,
    position_bias: Optional[Array] = ...,
    norm_weight: Optional[Array] = ...,
    prior_kv: Optional[Array] = ...,
    prior_gate: Optional[Array] = ...,
    prior_present: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    *,
    options: Optional[CsaCompressOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """tokens pooled into blocks, as DeepSeek-V4 does

        compressed[b,j,c] = rope(rms_norm(sum_i w_i kv_i)), w = softmax(gate_i + position_bias) over block j-1 (lane A) and j (lane B)

    inputs
        kv [B S D|2D], real, required, differentiable: values of both lanes, A then B; D with overlap false
        gate [B S D|2D], real, required, differentiable: logits of their weights
        position_bias [m D|2D], real, differentiable: added to the gate of token i of a block
        norm_weight [D], real, differentiable: weight of the norm
        prior_kv [B m 2D], real, differentiable: kv of the block before the first token; with prior_gate
        prior_gate [B m 2D], real, differentiable: its gate, without position_bias
        prior_present [B], boolean: false: the first block has no lane A; default all true
        positions [B S], integer: position of each token; default 0 ... S-1
        segment_ids [B S], integer: document of each token
        cu_seqlens [n+1], integer: stands for segment_ids and restarting positions

    cotangents
        compressed [B N D], real: of the blocks
        prior_kv [B m 2D], real: of the copied last block
        prior_gate [B m 2D], real: of its gate
        leftover_kv [B S%m D|2D], real: of the copied rest
        leftover_gate [B S%m D|2D], real: of its gate

    outputs
        compressed [B N D], real: the blocks
        prior_kv [B m 2D], real: for a next call: the last whole block, else the given prior, else 0 (grid
            physical, overlap)
        prior_gate [B m 2D], real: its gate, without position_bias
        prior_present [B], boolean: there is one; to be cleared where a document begins
        leftover_kv [B S%m D|2D], real: tokens of no block, to be put in front of the next call's (grid physical)
        leftover_gate [B S%m D|2D], real: their gate

    options
        m: integer. tokens per block; >= 1; required
        overlap: bool = true. lane A pools the block before; false: one lane, as in HCA
        norm: bool = true. rms_norm of the pooled block, unweighted without norm_weight
        eps: number = 1e-06. of that norm; >= 0
        rope: object. rotation at the position of the block's first token; null: none
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        boundary: positions | segments = "positions". lane A is cut where positions do not follow, or where the
            segment changes
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        mask: object. the padding segment
        mask.padding_segment: integer. tokens of this segment form no block (grid document; without use on the
            physical grid)
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        step
    """

CsaIndexerOptions = TypedDict('CsaIndexerOptions', {
    'k': int,
    'tie': Literal['lowest_index', 'threshold'],
    'm': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'boundary': Literal['positions', 'segments'],
    'grid': Literal['physical', 'document'],
    'score_scale': Literal['heads_and_dim', 'dim', 'none'],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def csa_indexer(
    x: Array,
    q_latent: Array,
    q_proj: Array,
    kv_proj: Array,
    gate_proj: Array,
    position_bias: Array,
    kv_norm_weight: Array,
    weights_proj: Array,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[CsaIndexerOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """the DeepSeek-V4 indexer: scores of blocks and the selected ones

        index_q = rope(q_latent q_proj), index_k = csa_compress(x kv_proj, x gate_proj), index_w = x weights_proj; scores; top-k over blocks

    inputs
        x [B S E], real, required, differentiable: tokens
        q_latent [B S Rq], real, required, differentiable: query latent of the main attention
        q_proj [Rq A e], real, required, differentiable: from the query latent to queries
        kv_proj [E 2e], real, required, differentiable: to the values that are pooled
        gate_proj [E 2e], real, required, differentiable: to their gates
        position_bias [m 2e], real, required, differentiable: added to the gate of token i of a block
        kv_norm_weight [e], real, required, differentiable: weight of the keys' norm
        weights_proj [E A], real, required, differentiable: to the head weights
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T N], boolean: false hides a key from a row
        mask [B T N], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        index_q [B S A e], real: indexer queries
        index_k [B N e], real: indexer keys
        index_w [B S A], real: head weights
        scores [B T N], real: scores, which top-k then takes
        indices [B T k], integer: the selection
        selected [B T N], boolean: the selection as a set

    cotangents
        index_q [B S A e], real: of the indexer queries
        index_k [B N e], real: of the indexer keys
        index_w [B S A], real: of the head weights
        scores [B T N], real: of the scores; not read at hidden ones

    outputs
        index_q [B S A e], real: indexer queries, rotated
        index_k [B N e], real: indexer keys: pooled, normed and rotated
        index_w [B S A], real: head weights
        scores [B T N], real, on request: scores, -inf at hidden blocks
        indices [B T k], integer: selected blocks, best first, -1 after the visible ones
        selected [B T N], boolean, on request: the selected blocks as a set

    options
        k: integer. blocks to select; required
        tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or every score
            >= the k-th
        m: integer. tokens per block; >= 1; required
        eps: number = 1e-06. of the norm of the keys; >= 0
        rope: object. rotary embedding of queries and keys; theta and dim are required
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        boundary: positions | segments = "positions". lane A is cut where positions do not follow, or where the
            segment changes
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        score_scale: heads_and_dim | dim | none = "heads_and_dim". factor of the score: (A e)^-1/2, e^-1/2 or 1
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, step
    """

CsaIndexerLossOptions = TypedDict('CsaIndexerLossOptions', {
    'sparse': bool,
    'teacher': Literal['own', 'joint', 'joint_window'],
    'restrict': Literal['before_softmax', 'after_softmax'],
    'l1': Union[str, Dict[str, Any]],
    'target_log': Union[str, Dict[str, Any]],
    'student_log': Union[str, Dict[str, Any]],
    'gradient': Literal['of_value', 'p_minus_t'],
    'reduction': Literal['sum', 'mean_all', 'mean_valid', 'mean_real'],
    'layout': Literal['dense', 'slots'],
    'coefficient': float,
    'softmax_scale': float,
    'score_scale': Literal['heads_and_dim', 'dim', 'none'],
    'relu': bool,
    'mask': Optional[Dict[str, Any]],
    'S': int,
    'window': int,
    'm': int,
    'grid': Literal['physical', 'document'],
    'nonfinite': Literal['error', 'allow'],
    'preset': Literal['maxtext_v4', 'exact', 'maxtext_v32', 'megatron', 'megatron_csa_eager', 'megatron_csa_fused', 'primus', 'veomni', 'tilelang'],
}, total=False)

def csa_indexer_loss(
    scores: Optional[Array] = ...,
    index_q: Optional[Array] = ...,
    index_k: Optional[Array] = ...,
    index_w: Optional[Array] = ...,
    query: Optional[Array] = ...,
    compressed: Optional[Array] = ...,
    kv: Optional[Array] = ...,
    sink: Optional[Array] = ...,
    selected: Optional[Array] = ...,
    indices: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[CsaIndexerLossOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """KL of the indexer against the head-summed attention over compressed blocks

        loss = coefficient * reduction over rows of sum_s t (ln t - ln p),  t = l1(sum_h P_h),  p = softmax(scores)

    inputs
        scores [B T N|k], real, differentiable: student scores; or the three that make them:
        index_q [B T A e], real, differentiable: indexer queries
        index_k [B N e], real, differentiable: indexer keys, one per block
        index_w [B T A], real, differentiable: indexer head weights
        query [B T H D], real: queries of the main attention, scaled
        compressed [B N D], real: compressed blocks, the teacher's keys
        kv [B S D], real: window keys of a joint teacher
        sink [H], real: sink logits of a joint teacher; may be infinite
        selected [B T N], boolean: selected blocks (sparse)
        indices [B T k], integer: selected blocks by number, -1 an empty slot (sparse)
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T N], boolean: false hides a key from a row
        mask [B T N], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        log_mass [B T H], real: ln Z of each head
        head_sum [B T N|k], real: T, summed over ranks
        target [B T N|k], real: t

    cotangents
        loss scalar, real: of the loss
        row_loss [B T], real: of the row losses

    outputs
        loss scalar, real: coefficient times the reduced row losses
        row_loss [B T], real: sum of t (ln t - ln p) over the row's keys
        row_valid [B T], boolean: the row is real and sees a key
        log_mass [B T H], real: ln Z of each head
        head_sum [B T K], real, on request: T, the sum of P over heads
        target [B T K], real, on request: t
        student [B T K], real, on request: p

    options
        sparse: bool = false. over the selected visible keys (selected or indices) instead of all visible keys
        teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys:
            nothing, window and sink, window
        restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax, or
            after it
        l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the target
        student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        reduction: sum | mean_all | mean_valid | mean_real = "mean_valid". rows to scalar
        layout: dense | slots = "dense". keys side by side, or slot by slot of indices (needs sparse and indices)
        coefficient: number = 1.0. factor of the loss
        softmax_scale: number = 1.0. factor of the teacher's logits; 1: queries arrive scaled
        score_scale: heads_and_dim | dim | none = "heads_and_dim". factor of scores made from index_q, index_k,
            index_w
        relu: bool = true. ReLU in those scores
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        S: integer. number of tokens, where no tensor tells
        window: integer. keys of the sliding window, the current token included; joint teachers need it
        m: integer. tokens per block; required
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    presets
        maxtext_v4: MaxText, compressed sparse attention
        exact: no guard anywhere
        maxtext_v32: MaxText, DeepSeek-V3.2 indexer loss
        megatron: Megatron-LM, DeepSeek-V3.2
        megatron_csa_eager: Megatron-LM, compressed sparse attention, unfused
        megatron_csa_fused: Megatron-LM, compressed sparse attention, compiled
        primus: Primus
        veomni: VeOmni
        tilelang: TileLang's sparse fine-tuning example (kernel)

    schedule
        barrier, head_chunk, key_block
    """

CsaLayerOptions = TypedDict('CsaLayerOptions', {
    'kind': Literal['csa', 'hca', 'window'],
    'm': int,
    'window': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'compress_rope': Optional[Dict[str, Any]],
    'grid': Literal['physical', 'document'],
    'boundary': Literal['positions', 'segments'],
    'indexer': Optional[Dict[str, Any]],
    'loss': Optional[Dict[str, Any]],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def csa_layer(
    x: Array,
    wq_a: Array,
    q_norm: Array,
    wq_b: Array,
    wkv: Array,
    kv_norm: Array,
    o_a: Array,
    o_b: Array,
    kv_proj: Optional[Array] = ...,
    gate_proj: Optional[Array] = ...,
    position_bias: Optional[Array] = ...,
    compress_norm: Optional[Array] = ...,
    sink: Optional[Array] = ...,
    indexer_q_proj: Optional[Array] = ...,
    indexer_kv_proj: Optional[Array] = ...,
    indexer_gate_proj: Optional[Array] = ...,
    indexer_position_bias: Optional[Array] = ...,
    indexer_kv_norm_weight: Optional[Array] = ...,
    indexer_weights_proj: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[CsaLayerOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """a DeepSeek-V4 layer: projections, compressed sparse attention, output, indexer loss

        output = o_b (o_a (inverse rope (csa_attention(query, kv, compressed, top-k of the indexer))));  loss of csa_indexer_loss into the indexer alone

    inputs
        x [B S E], real, required, differentiable: tokens
        wq_a [E Rq], real, required, differentiable: to the query latent
        q_norm [Rq], real, required, differentiable: weight of its norm
        wq_b [Rq H D], real, required, differentiable: from the query latent to queries
        wkv [E D], real, required, differentiable: to window keys, which are values too
        kv_norm [D], real, required, differentiable: weight of their norm
        kv_proj [E C], real, differentiable: to what is compressed; C = 2D, with kind hca D
        gate_proj [E C], real, differentiable: to the gates of the compression
        position_bias [m C], real, differentiable: of the gates, by place in a block
        compress_norm [D], real, differentiable: weight of the blocks' norm
        sink [H], real, differentiable: sink logits; may be infinite
        o_a [G H*D/G r], real, required, differentiable: output projection of each group of heads
        o_b [G*r E], real, required, differentiable: from the groups to the output
        indexer_q_proj [Rq A e], real, differentiable: indexer: from the query latent to queries
        indexer_kv_proj [E 2e], real, differentiable: indexer: to what is compressed
        indexer_gate_proj [E 2e], real, differentiable: indexer: to its gates
        indexer_position_bias [m 2e], real, differentiable: indexer: of the gates
        indexer_kv_norm_weight [e], real, differentiable: indexer: weight of the blocks' norm
        indexer_weights_proj [E A], real, differentiable: indexer: to head weights
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T N], boolean: false hides a key from a row
        mask [B T N], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        query [B S H D], real: queries, rotated and scaled
        kv [B S D], real: window keys
        compressed [B N D], real: compressed blocks
        q_latent [B S Rq], real: query latent after its norm
        attention_output [B T H D], real: a forward pass's own attention output, before the inverse rotation
        attention_lse [B T H], real: its log-sum-exp
        attention_max_logit [B T H], real: its largest logits
        indexer_index_q [B S A e], real: indexer queries
        indexer_index_k [B N e], real: indexer keys
        indexer_index_w [B S A], real: indexer head weights
        indexer_scores [B T N], real: scores, which top-k then takes
        indexer_indices [B T k], integer: the selection
        indexer_selected [B T N], boolean: the selection as a set
        log_mass [B T H], real: of the loss: ln Z of each head
        head_sum [B T N], real: of the loss: T
        target [B T N], real: of the loss: t

    cotangents
        output [B T E], real: of the output; required
        loss scalar, real: of the loss; missing: 0

    outputs
        output [B T E], real: the layer's output
        loss scalar, real: the indexer's loss, 0 without one
        query [B S H D], real, on request: queries, rotated and scaled
        kv [B S D], real, on request: window keys
        compressed [B N D], real, on request: compressed blocks
        q_latent [B S Rq], real, on request: query latent after its norm
        attention_output [B T H D], real, on request: output of the attention, before the inverse rotation
        attention_lse [B T H], real, on request: its log-sum-exp
        attention_max_logit [B T H], real, on request: its largest logits
        indexer_index_q [B S A e], real, on request: indexer queries
        indexer_index_k [B N e], real, on request: indexer keys
        indexer_index_w [B S A], real, on request: indexer head weights
        indexer_scores [B T N], real, on request: scores, -inf at hidden blocks
        indexer_indices [B T k], integer, on request: the selected blocks, best first
        indexer_selected [B T N], boolean, on request: the selected blocks as a set
        row_loss [B T], real, on request: of the loss
        row_valid [B T], boolean, on request: of the loss
        log_mass [B T H], real, on request: of the loss
        head_sum [B T N], real, on request: of the loss
        target [B T N], real, on request: of the loss
        student [B T N], real, on request: of the loss

    options
        kind: csa | hca | window = "csa". blocks of two lanes and an indexer, blocks of one lane that every row
            sees, or no blocks
        m: integer. tokens per block; required, but with kind window not used
        window: integer. keys of the sliding window, the current token included; required
        eps: number = 1e-06. of every norm
        rope: object. rotary embedding of queries, window keys and output; required
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        compress_rope: object. rotary embedding of the blocks; default: rope
        compress_rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        compress_rope.dim: integer. channels that are rotated; even, at most the width; required
        compress_rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        compress_rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i +
            dim/2)
        compress_rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then
            all second parts
        compress_rope.inverse: bool = false. rotate back; output is then the layout of the input
        compress_rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        compress_rope.yarn: object. frequencies changed for a longer context
        compress_rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        compress_rope.yarn.original_max_position: integer. context length of the training; > 0; required
        compress_rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        compress_rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        compress_rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        boundary: positions | segments = "positions". how the compression knows a document's first block
        indexer: object. options of csa_indexer; null: attention sees every visible block
        indexer.k: integer. blocks to select; required
        indexer.tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or
            every score >= the k-th
        indexer.m: integer. tokens per block; default: the layer's
        indexer.eps: number. of the norm of the keys; default: the layer's
        indexer.rope: object. rotary embedding of queries and keys; default: the layer's compress_rope
        indexer.rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        indexer.rope.dim: integer. channels that are rotated; even, at most the width; required
        indexer.rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        indexer.rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        indexer.rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all
            second parts
        indexer.rope.inverse: bool = false. rotate back; output is then the layout of the input
        indexer.rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        indexer.rope.yarn: object. frequencies changed for a longer context
        indexer.rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        indexer.rope.yarn.original_max_position: integer. context length of the training; > 0; required
        indexer.rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        indexer.rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        indexer.rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        indexer.boundary: positions | segments. where lane A is cut; default: the layer's
        indexer.grid: physical | document. how blocks are cut; default: the layer's
        indexer.score_scale: heads_and_dim | dim | none. factor of the score: (A e)^-1/2 (default), e^-1/2 or 1;
            the loss takes it too
        indexer.mask: object. who sees whom; default: the layer's
        indexer.mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        indexer.mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        indexer.mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        indexer.mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        loss: object. options of csa_indexer_loss; null: none
        loss.preset: maxtext_v4 | exact | maxtext_v32 | megatron | megatron_csa_eager | megatron_csa_fused |
            primus | veomni | tilelang = "maxtext_v4". sets the fields below
        loss.sparse: bool = false. over the selected visible keys instead of all visible keys
        loss.teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys
        loss.restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax,
            or after it
        loss.l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        loss.target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            target
        loss.student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        loss.gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        loss.reduction: sum | mean_all | mean_valid | mean_real = "mean_valid". rows to scalar
        loss.coefficient: number = 1.0. factor of the loss; 0: no loss
        loss.softmax_scale: number = 1.0. factor of the teacher's logits
        loss.score_scale: heads_and_dim | dim | none. factor of the student's scores; default: what the indexer
            names, else the preset's
        loss.relu: bool = true. ReLU in those scores
        loss.allow_full_selection: bool = false. a sparse loss may select every key
        loss.window: integer. window of a joint teacher; default: the layer's
        loss.m: integer. tokens per block; that of the layer
        loss.grid: physical | document. that of the layer
        loss.mask: object. who sees whom; default: the layer's
        loss.mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        loss.mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        loss.mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        loss.mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        barrier, head_chunk, key_block, prefill, step
    """

CsaStepOptions = TypedDict('CsaStepOptions', {
    'kind': Literal['csa', 'hca', 'window'],
    'm': int,
    'window': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'compress_rope': Optional[Dict[str, Any]],
    'grid': Literal['physical', 'document'],
    'boundary': Literal['positions', 'segments'],
    'indexer': Optional[Dict[str, Any]],
    'loss': Optional[Dict[str, Any]],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def csa_step(
    x: Array,
    state_kv: Array,
    wq_a: Array,
    q_norm: Array,
    wq_b: Array,
    wkv: Array,
    kv_norm: Array,
    o_a: Array,
    o_b: Array,
    valid: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    state_length: Optional[Array] = ...,
    state_compressed: Optional[Array] = ...,
    state_partial_kv: Optional[Array] = ...,
    state_partial_gate: Optional[Array] = ...,
    state_prior_kv: Optional[Array] = ...,
    state_prior_gate: Optional[Array] = ...,
    state_prior_present: Optional[Array] = ...,
    state_indexer_index_k: Optional[Array] = ...,
    state_indexer_partial_kv: Optional[Array] = ...,
    state_indexer_partial_gate: Optional[Array] = ...,
    state_indexer_prior_kv: Optional[Array] = ...,
    state_indexer_prior_gate: Optional[Array] = ...,
    state_positions: Optional[Array] = ...,
    state_segment_ids: Optional[Array] = ...,
    kv_proj: Optional[Array] = ...,
    gate_proj: Optional[Array] = ...,
    position_bias: Optional[Array] = ...,
    compress_norm: Optional[Array] = ...,
    sink: Optional[Array] = ...,
    indexer_q_proj: Optional[Array] = ...,
    indexer_kv_proj: Optional[Array] = ...,
    indexer_gate_proj: Optional[Array] = ...,
    indexer_position_bias: Optional[Array] = ...,
    indexer_kv_norm_weight: Optional[Array] = ...,
    indexer_weights_proj: Optional[Array] = ...,
    *,
    options: Optional[CsaStepOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """one call of a server: new tokens through a CSA layer and its state

        output of csa_layer for the L new rows, over the state of what came before

    inputs
        x [B L E], real, required: new tokens
        valid [B L N], boolean: not taken: what later calls see cannot depend on it
        row_mask [B L], boolean: not taken
        mask [B L N], real: not taken
        row_index [L], integer: not taken
        cu_seqlens [n+1], integer: not taken: positions and segment_ids say it
        positions [B L], integer: their positions; default length[b] + i
        segment_ids [B L], integer: their documents; default 0
        state.length [B], integer: tokens in the state of each sequence; required
        state.kv [B P D], real, required: window keys
        state.compressed [B Q D], real: blocks, Q = floor(P/m)
        state.partial_kv [B m C], real: raw kv of the tokens in no block yet; C = 2D, with kind hca D
        state.partial_gate [B m C], real: their raw gates
        state.prior_kv [B m C], real: raw kv of the last block; kind csa
        state.prior_gate [B m C], real: its raw gates; kind csa
        state.prior_present [B], boolean: there is a last block; kind csa
        state.indexer_index_k [B Q e], real: indexer keys
        state.indexer_partial_kv [B m 2e], real: as partial_kv
        state.indexer_partial_gate [B m 2e], real: as partial_gate
        state.indexer_prior_kv [B m 2e], real: as prior_kv
        state.indexer_prior_gate [B m 2e], real: as prior_gate
        state.positions [B P], integer: positions of the tokens; required
        state.segment_ids [B P], integer: their documents; required
        wq_a [E Rq], real, required, differentiable: to the query latent
        q_norm [Rq], real, required, differentiable: weight of its norm
        wq_b [Rq H D], real, required, differentiable: from the query latent to queries
        wkv [E D], real, required, differentiable: to window keys, which are values too
        kv_norm [D], real, required, differentiable: weight of their norm
        kv_proj [E C], real, differentiable: to what is compressed; C = 2D, with kind hca D
        gate_proj [E C], real, differentiable: to the gates of the compression
        position_bias [m C], real, differentiable: of the gates, by place in a block
        compress_norm [D], real, differentiable: weight of the blocks' norm
        sink [H], real, differentiable: sink logits; may be infinite
        o_a [G H*D/G r], real, required, differentiable: output projection of each group of heads
        o_b [G*r E], real, required, differentiable: from the groups to the output
        indexer_q_proj [Rq A e], real, differentiable: indexer: from the query latent to queries
        indexer_kv_proj [E 2e], real, differentiable: indexer: to what is compressed
        indexer_gate_proj [E 2e], real, differentiable: indexer: to its gates
        indexer_position_bias [m 2e], real, differentiable: indexer: of the gates
        indexer_kv_norm_weight [e], real, differentiable: indexer: weight of the blocks' norm
        indexer_weights_proj [E A], real, differentiable: indexer: to head weights

    outputs
        output [B T E], real: the layer's output
        loss scalar, real: the indexer's loss, 0 without one
        query [B S H D], real, on request: queries, rotated and scaled
        kv [B S D], real, on request: window keys
        compressed [B N D], real, on request: compressed blocks
        q_latent [B S Rq], real, on request: query latent after its norm
        attention_output [B T H D], real, on request: output of the attention, before the inverse rotation
        attention_lse [B T H], real, on request: its log-sum-exp
        attention_max_logit [B T H], real, on request: its largest logits
        indexer_index_q [B S A e], real, on request: indexer queries
        indexer_index_k [B N e], real, on request: indexer keys
        indexer_index_w [B S A], real, on request: indexer head weights
        indexer_scores [B T N], real, on request: scores, -inf at hidden blocks
        indexer_indices [B T k], integer, on request: the selected blocks, best first
        indexer_selected [B T N], boolean, on request: the selected blocks as a set
        row_loss [B T], real, on request: of the loss
        row_valid [B T], boolean, on request: of the loss
        log_mass [B T H], real, on request: of the loss
        head_sum [B T N], real, on request: of the loss
        target [B T N], real, on request: of the loss
        student [B T N], real, on request: of the loss
        state.length [B], integer: tokens in the state after the call
        state.kv [B P D], real: window keys, 0 beyond the length
        state.compressed [B Q D], real: blocks, 0 beyond their number
        state.partial_kv [B m C], real: tokens in no block, 0 beyond their number
        state.partial_gate [B m C], real: their gates
        state.prior_kv [B m C], real: the last block, 0 where there is none
        state.prior_gate [B m C], real: its gates
        state.prior_present [B], boolean: there is a last block
        state.indexer_index_k [B Q e], real: indexer keys, 0 beyond their number
        state.indexer_partial_kv [B m 2e], real: as partial_kv
        state.indexer_partial_gate [B m 2e], real: as partial_gate
        state.indexer_prior_kv [B m 2e], real: as prior_kv
        state.indexer_prior_gate [B m 2e], real: as prior_gate
        state.positions [B P], integer: positions, 0 beyond the length
        state.segment_ids [B P], integer: documents, 0 beyond the length

    options
        kind: csa | hca | window = "csa". blocks of two lanes and an indexer, blocks of one lane that every row
            sees, or no blocks
        m: integer. tokens per block; required, but with kind window not used
        window: integer. keys of the sliding window, the current token included; required
        eps: number = 1e-06. of every norm
        rope: object. rotary embedding of queries, window keys and output; required
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        compress_rope: object. rotary embedding of the blocks; default: rope
        compress_rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        compress_rope.dim: integer. channels that are rotated; even, at most the width; required
        compress_rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        compress_rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i +
            dim/2)
        compress_rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then
            all second parts
        compress_rope.inverse: bool = false. rotate back; output is then the layout of the input
        compress_rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        compress_rope.yarn: object. frequencies changed for a longer context
        compress_rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        compress_rope.yarn.original_max_position: integer. context length of the training; > 0; required
        compress_rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        compress_rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        compress_rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        boundary: positions | segments = "positions". how the compression knows a document's first block
        indexer: object. options of csa_indexer; null: attention sees every visible block
        indexer.k: integer. blocks to select; required
        indexer.tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or
            every score >= the k-th
        indexer.m: integer. tokens per block; default: the layer's
        indexer.eps: number. of the norm of the keys; default: the layer's
        indexer.rope: object. rotary embedding of queries and keys; default: the layer's compress_rope
        indexer.rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        indexer.rope.dim: integer. channels that are rotated; even, at most the width; required
        indexer.rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        indexer.rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        indexer.rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all
            second parts
        indexer.rope.inverse: bool = false. rotate back; output is then the layout of the input
        indexer.rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        indexer.rope.yarn: object. frequencies changed for a longer context
        indexer.rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        indexer.rope.yarn.original_max_position: integer. context length of the training; > 0; required
        indexer.rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        indexer.rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        indexer.rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        indexer.boundary: positions | segments. where lane A is cut; default: the layer's
        indexer.grid: physical | document. how blocks are cut; default: the layer's
        indexer.score_scale: heads_and_dim | dim | none. factor of the score: (A e)^-1/2 (default), e^-1/2 or 1;
            the loss takes it too
        indexer.mask: object. who sees whom; default: the layer's
        indexer.mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        indexer.mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        indexer.mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        indexer.mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        loss: object. options of csa_indexer_loss; null: none
        loss.preset: maxtext_v4 | exact | maxtext_v32 | megatron | megatron_csa_eager | megatron_csa_fused |
            primus | veomni | tilelang = "maxtext_v4". sets the fields below
        loss.sparse: bool = false. over the selected visible keys instead of all visible keys
        loss.teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys
        loss.restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax,
            or after it
        loss.l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        loss.target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            target
        loss.student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        loss.gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        loss.reduction: sum | mean_all | mean_valid | mean_real = "mean_valid". rows to scalar
        loss.coefficient: number = 1.0. factor of the loss; 0: no loss
        loss.softmax_scale: number = 1.0. factor of the teacher's logits
        loss.score_scale: heads_and_dim | dim | none. factor of the student's scores; default: what the indexer
            names, else the preset's
        loss.relu: bool = true. ReLU in those scores
        loss.allow_full_selection: bool = false. a sparse loss may select every key
        loss.window: integer. window of a joint teacher; default: the layer's
        loss.m: integer. tokens per block; that of the layer
        loss.grid: physical | document. that of the layer
        loss.mask: object. who sees whom; default: the layer's
        loss.mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        loss.mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        loss.mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        loss.mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, key_block
    """

DsaIndexerOptions = TypedDict('DsaIndexerOptions', {
    'k': int,
    'tie': Literal['lowest_index', 'threshold'],
    'score_scale': Literal['heads_and_dim', 'dim', 'none'],
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def dsa_indexer(
    x: Array,
    q_latent: Array,
    wq_b: Array,
    wk: Array,
    k_norm_weight: Array,
    k_norm_bias: Array,
    weights_proj: Array,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[DsaIndexerOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """the DeepSeek-V3.2 indexer: scores of tokens and the selected ones

        index_q = rope(q_latent wq_b), index_k = rope(layer_norm(x wk)), index_w = x weights_proj; scores; top-k

    inputs
        x [B S E], real, required, differentiable: tokens
        q_latent [B S Rq], real, required, differentiable: query latent of the main attention
        wq_b [Rq A e], real, required, differentiable: from the query latent to indexer queries
        wk [E e], real, required, differentiable: to indexer keys
        k_norm_weight [e], real, required, differentiable: weight of the keys' layer norm
        k_norm_bias [e], real, required, differentiable: its bias
        weights_proj [E A], real, required, differentiable: to the head weights
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T S], boolean: false hides a key from a row
        mask [B T S], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        index_q [B S A e], real: indexer queries
        index_k [B S e], real: indexer keys
        index_w [B S A], real: head weights
        scores [B T S], real: scores, which top-k then takes
        indices [B T k], integer: the selection
        selected [B T S], boolean: the selection as a set

    cotangents
        index_q [B S A e], real: of the indexer queries
        index_k [B S e], real: of the indexer keys
        index_w [B S A], real: of the head weights
        scores [B T S], real: of the scores; not read at hidden ones

    outputs
        index_q [B S A e], real: indexer queries, rotated
        index_k [B S e], real: indexer keys, normed and rotated
        index_w [B S A], real: head weights
        scores [B T S], real, on request: scores, -inf at hidden keys
        indices [B T k], integer: selected tokens, best first, -1 after the visible ones
        selected [B T S], boolean, on request: the selected tokens as a set

    options
        k: integer. tokens to select; required
        tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or every score
            >= the k-th
        score_scale: heads_and_dim | dim | none = "heads_and_dim". factor of the score: (A e)^-1/2, e^-1/2 or 1
        eps: number = 1e-06. of the layer norm of the keys
        rope: object. rotary embedding of queries and keys
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "leading". the last dim channels, or the first
        rope.pairing: interleaved | half = "half". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk
    """

DsaIndexerLossOptions = TypedDict('DsaIndexerLossOptions', {
    'sparse': bool,
    'teacher': Literal['own', 'joint', 'joint_window'],
    'restrict': Literal['before_softmax', 'after_softmax'],
    'l1': Union[str, Dict[str, Any]],
    'target_log': Union[str, Dict[str, Any]],
    'student_log': Union[str, Dict[str, Any]],
    'gradient': Literal['of_value', 'p_minus_t'],
    'reduction': Literal['sum', 'mean_all', 'mean_valid', 'mean_real'],
    'layout': Literal['dense', 'slots'],
    'coefficient': float,
    'softmax_scale': float,
    'score_scale': Literal['heads_and_dim', 'dim', 'none'],
    'relu': bool,
    'mask': Optional[Dict[str, Any]],
    'S': int,
    'nonfinite': Literal['error', 'allow'],
    'preset': Literal['maxtext_v32', 'exact', 'maxtext_v4', 'megatron', 'tilelang'],
}, total=False)

def dsa_indexer_loss(
    scores: Optional[Array] = ...,
    index_q: Optional[Array] = ...,
    index_k: Optional[Array] = ...,
    index_w: Optional[Array] = ...,
    query: Optional[Array] = ...,
    key: Optional[Array] = ...,
    selected: Optional[Array] = ...,
    indices: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[DsaIndexerLossOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """KL of the indexer against the head-summed attention over tokens

        loss = coefficient * reduction over rows of sum_s t (ln t - ln p),  t = l1(sum_h P_h),  p = softmax(scores)

    inputs
        scores [B T S|k], real, differentiable: student scores; or the three that make them:
        index_q [B T A e], real, differentiable: indexer queries
        index_k [B S e], real, differentiable: indexer keys
        index_w [B T A], real, differentiable: indexer head weights
        query [B T H D], real: queries of the main attention, scaled
        key [B S Hk D], real: keys of the main attention; head h uses key head floor(h Hk / H)
        selected [B T S], boolean: selected tokens (sparse)
        indices [B T k], integer: selected tokens by number, -1 an empty slot (sparse)
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T S], boolean: false hides a key from a row
        mask [B T S], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        log_mass [B T H], real: ln Z of each head
        head_sum [B T S|k], real: T, summed over ranks
        target [B T S|k], real: t

    cotangents
        loss scalar, real: of the loss
        row_loss [B T], real: of the row losses

    outputs
        loss scalar, real: coefficient times the reduced row losses
        row_loss [B T], real: sum of t (ln t - ln p) over the row's keys
        row_valid [B T], boolean: the row is real and sees a key
        log_mass [B T H], real: ln Z of each head
        head_sum [B T K], real, on request: T, the sum of P over heads
        target [B T K], real, on request: t
        student [B T K], real, on request: p

    options
        sparse: bool = false. over the selected visible keys (selected or indices) instead of all visible keys
        teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys:
            nothing, window and sink, window
        restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax, or
            after it
        l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the target
        student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        reduction: sum | mean_all | mean_valid | mean_real = "mean_all". rows to scalar
        layout: dense | slots = "dense". keys side by side, or slot by slot of indices (needs sparse and indices)
        coefficient: number = 1.0. factor of the loss
        softmax_scale: number = 1.0. factor of the teacher's logits; 1: queries arrive scaled
        score_scale: heads_and_dim | dim | none = "heads_and_dim". factor of scores made from index_q, index_k,
            index_w
        relu: bool = true. ReLU in those scores
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        S: integer. number of tokens, where no tensor tells
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    presets
        maxtext_v32: MaxText, DeepSeek-V3.2 indexer loss
        exact: no guard anywhere
        maxtext_v4: MaxText, compressed sparse attention
        megatron: Megatron-LM, DeepSeek-V3.2
        tilelang: TileLang's sparse fine-tuning example (kernel)

    schedule
        barrier, head_chunk, key_block
    """

IndexerScoresOptions = TypedDict('IndexerScoresOptions', {
    'score_scale': Literal['heads_and_dim', 'dim', 'none'],
    'relu': bool,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def indexer_scores(
    q: Array,
    k: Array,
    w: Array,
    *,
    options: Optional[IndexerScoresOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """scores of the lightning indexer

        score[b,t,s] = c sum_a w[b,t,a] relu(q[b,t,a] . k[b,s])

    inputs
        q [B T A e], real, required, differentiable: indexer queries
        k [B K e], real, required, differentiable: indexer keys
        w [B T A], real, required, differentiable: head weights; may be negative

    cotangents
        scores [B T K], real: of the scores

    outputs
        scores [B T K], real: the scores, unmasked

    options
        score_scale: heads_and_dim | dim | none = "heads_and_dim". factor of the score: (A e)^-1/2, e^-1/2 or 1
        relu: bool = true. ReLU before the sum over heads
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, key_block
    """

LayerNormOptions = TypedDict('LayerNormOptions', {
    'eps': float,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def layer_norm(
    x: Array,
    weight: Optional[Array] = ...,
    bias: Optional[Array] = ...,
    *,
    options: Optional[LayerNormOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """layer norm over the last axis

        y = (x - mean x) (var x + eps)^-1/2 weight + bias

    inputs
        x [n D], real, required, differentiable: rows, behind any leading axes
        weight [D], real, differentiable: factor of each channel
        bias [D], real, differentiable: added to each channel

    cotangents
        y [n D], real: of the normalised rows

    outputs
        y [n D], real: the normalised rows, in the shape of x

    options
        eps: number = 1e-06. added to the mean square or the variance; >= 0
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

LinearOptions = TypedDict('LinearOptions', {
    'slice_bounds': Sequence[int],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def linear(
    x: Array,
    weight: Array,
    bias: Optional[Array] = ...,
    *,
    options: Optional[LinearOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """a projection, whole or a slice of its columns

        y[n,g,o] = sum_i x[n,i] weight[i,g,o] + bias[g,o]

    inputs
        x [n I], real, required, differentiable: rows
        weight [I G O], real, required, differentiable: the weight
        bias [G O], real, differentiable: added to every row

    cotangents
        y [n G O], real: of the product; with slice_bounds O is the width of the slice

    outputs
        y [n G O], real: the product; with slice_bounds O is the width of the slice

    options
        slice_bounds: [begin, end). columns of the last weight axis to contract; default all
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

MergeAttentionOptions = TypedDict('MergeAttentionOptions', {
    'lse_base': Literal['e', 2],
    'lse_includes_sink': bool,
    'empty_lse': Literal['-inf', '+inf', 0],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def merge_attention(
    outputs: Array,
    lse: Array,
    sink: Optional[Array] = ...,
    *,
    options: Optional[MergeAttentionOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """attention over all keys from attentions over parts of them

        output = sum_p exp(lse_p) output_p / (sum_p exp(lse_p) + exp(sink))

    inputs
        outputs [P B T H D], real, required, differentiable: outputs of the parts
        lse [P B T H], real, required, differentiable: their log-sum-exps, without the sink
        sink [H], real, differentiable: sink logits, natural; may be infinite

    cotangents
        output [B T H D], real: of the output
        lse [B T H], real: of lse

    outputs
        output [B T H D], real: sum of the parts by their weights
        lse [B T H], real: log-sum-exp over all keys

    options
        lse_base: e | 2 = "e". base of the logarithm in lse, of parts and result
        lse_includes_sink: bool = false. the sink is a term of the result's lse; it never is of a part's
        empty_lse: -inf | +inf | 0. lse of a part, or a result, without keys: -inf (default) or +inf
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

MlaAttentionOptions = TypedDict('MlaAttentionOptions', {
    'softmax_scale': float,
    'lse_base': Literal['e', 2],
    'lse_includes_sink': bool,
    'empty_lse': Literal['-inf', '+inf', 0],
    'strict_selection': bool,
    'duplicates': Literal['error', 'set', 'multiset'],
    'mask': Optional[Dict[str, Any]],
    'S': int,
    'nope_dim': int,
    'v_dim': int,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def mla_attention(
    query: Array,
    key: Optional[Array] = ...,
    value: Optional[Array] = ...,
    kv_latent: Optional[Array] = ...,
    k_pe: Optional[Array] = ...,
    wkv_b: Optional[Array] = ...,
    bkv_b: Optional[Array] = ...,
    selected: Optional[Array] = ...,
    indices: Optional[Array] = ...,
    sink: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[MlaAttentionOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """softmax attention over selected keys and a sink, also from latents

        output = sum_s p_s v_s,  p_s = exp(c_s - ln(sum exp c + exp sink)),  c_s = softmax_scale q . k_s

    inputs
        query [B T H D], real, required, differentiable: queries
        key [B S Hk D], real, differentiable: keys; head h uses key head floor(h Hk / H)
        value [B S Hk Dv], real, differentiable: values; without it the first v_dim channels of key
        kv_latent [B S Rkv], real, differentiable: instead of key and value: the normalised latent,
        k_pe [B S dr], real, differentiable: the rotated key channels that all heads share,
        wkv_b [Rkv H dn+dv], real, differentiable: the projection of the latent to keys and values,
        bkv_b [H dn+dv], real, differentiable: and its bias
        selected [B T S], boolean: selected keys; without selected and indices all visible ones
        indices [B T k], integer: selected keys by number, -1 an empty slot
        sink [H], real, differentiable: sink logits, natural and not scaled; may be infinite
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T S], boolean: false hides a key from a row
        mask [B T S], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        output [B T H Dv], real: a forward pass's own output
        lse [B T H], real: a forward pass's own lse, in the convention of the options
        max_logit [B T H], real: its largest logits

    cotangents
        output [B T H Dv], real: of the output
        lse [B T H], real: of lse

    outputs
        output [B T H Dv], real: sum of p v
        lse [B T H], real: log-sum-exp of the logits, see the lse options
        max_logit [B T H], real, on request: largest logit of the row, natural, without the sink

    options
        softmax_scale: number = 1.0. factor of the logits; 1: queries arrive scaled
        lse_base: e | 2 = "e". base of the logarithm in lse
        lse_includes_sink: bool = false. the sink is a term of lse
        empty_lse: -inf | +inf | 0. lse of a row without keys, as it stands; default -inf, with a counted sink the
            sink
        strict_selection: bool = false. selecting a key that the row does not see is an error
        duplicates: error | set | multiset = "error". a key named twice: an error, one key, or a key of twice the
            weight
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        S: integer. number of tokens, where no tensor tells
        nope_dim: integer. channels of a key that the latent makes; the latent form needs it
        v_dim: integer. channels of a value; needed by the latent form, and where the value is part of the key
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, key_block, absorbed
    """

MlaLayerOptions = TypedDict('MlaLayerOptions', {
    'nope_dim': int,
    'rope_dim': int,
    'v_dim': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'mscale': float,
    'max_position': int,
    'original_max_position': int,
    'indexer': Optional[Dict[str, Any]],
    'loss': Optional[Dict[str, Any]],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def mla_layer(
    x: Array,
    wkv_a: Array,
    kv_norm: Array,
    wkv_b: Array,
    wo: Array,
    wq: Optional[Array] = ...,
    wq_a: Optional[Array] = ...,
    q_norm: Optional[Array] = ...,
    wq_b: Optional[Array] = ...,
    bq: Optional[Array] = ...,
    bq_a: Optional[Array] = ...,
    bq_b: Optional[Array] = ...,
    bkv_a: Optional[Array] = ...,
    bkv_b: Optional[Array] = ...,
    indexer_wq_b: Optional[Array] = ...,
    indexer_wk: Optional[Array] = ...,
    indexer_k_norm_weight: Optional[Array] = ...,
    indexer_k_norm_bias: Optional[Array] = ...,
    indexer_weights_proj: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[MlaLayerOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """the DeepSeek-V3.2 layer from x to output and indexer loss

        output = wo . mla_attention(mla_projection(x), selected by dsa_indexer);  loss = dsa_indexer_loss

    inputs
        x [B S E], real, required, differentiable: tokens
        wq [E H dn+dr], real, differentiable: direct query weight; or wq_a, q_norm and wq_b
        wq_a [E Rq], real, differentiable: to the query latent
        q_norm [Rq], real, differentiable: weight of its norm
        wq_b [Rq H dn+dr], real, differentiable: from the query latent
        wkv_a [E Rkv+dr], real, required, differentiable: to the key-value latent and the rotary key
        kv_norm [Rkv], real, required, differentiable: weight of the latent's norm
        wkv_b [Rkv H dn+dv], real, required, differentiable: from the latent to keys and values
        bq [H dn+dr], real, differentiable: bias of wq
        bq_a [Rq], real, differentiable: bias of wq_a
        bq_b [H dn+dr], real, differentiable: bias of wq_b
        bkv_a [Rkv+dr], real, differentiable: bias of wkv_a
        bkv_b [H dn+dv], real, differentiable: bias of wkv_b
        wo [H dv E], real, required, differentiable: output projection
        indexer_wq_b [Rq A e], real, differentiable: indexer: from the query latent to queries
        indexer_wk [E e], real, differentiable: indexer: to keys
        indexer_k_norm_weight [e], real, differentiable: indexer: weight of the keys' norm
        indexer_k_norm_bias [e], real, differentiable: indexer: its bias
        indexer_weights_proj [E A], real, differentiable: indexer: to head weights
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T S], boolean: false hides a key from a row
        mask [B T S], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    given (constants in place of what would be computed)
        query [B S H dn+dr], real: queries, scaled
        key [B S H dn+dr], real: keys
        value [B S H dv], real: values
        q_latent [B S Rq], real: query latent after its norm
        kv_latent [B S Rkv], real: key-value latent after its norm
        k_pe [B S dr], real: rotary key after rotation
        attention_output [B T H dv], real: a forward pass's own attention output
        attention_lse [B T H], real: its log-sum-exp
        attention_max_logit [B T H], real: its largest logits
        indexer_index_q [B S A e], real: indexer queries
        indexer_index_k [B S e], real: indexer keys
        indexer_index_w [B S A], real: indexer head weights
        indexer_scores [B T S], real: scores, which top-k then takes
        indexer_indices [B T k], integer: the selection
        indexer_selected [B T S], boolean: the selection as a set
        log_mass [B T H], real: of the loss: ln Z of each head
        head_sum [B T S], real: of the loss: T
        target [B T S], real: of the loss: t

    cotangents
        output [B T E], real: of the output; required
        loss scalar, real: of the loss; missing: 0

    outputs
        output [B T E], real: the layer's output
        loss scalar, real: the indexer's loss, 0 without one
        query [B S H dn+dr], real, on request: queries, scaled
        key [B S H dn+dr], real, on request: keys
        value [B S H dv], real, on request: values
        q_latent [B S Rq], real, on request: query latent after its norm
        kv_latent [B S Rkv], real, on request: key-value latent after its norm
        k_pe [B S dr], real, on request: rotary key after rotation
        attention_output [B T H dv], real, on request: output of the attention
        attention_lse [B T H], real, on request: its log-sum-exp
        attention_max_logit [B T H], real, on request: its largest logits
        indexer_index_q [B S A e], real, on request: indexer queries
        indexer_index_k [B S e], real, on request: indexer keys
        indexer_index_w [B S A], real, on request: indexer head weights
        indexer_scores [B T S], real, on request: scores, -inf at hidden keys
        indexer_indices [B T k], integer, on request: the selected tokens, best first
        indexer_selected [B T S], boolean, on request: the selected tokens as a set
        row_loss [B T], real, on request: of the loss
        row_valid [B T], boolean, on request: of the loss
        log_mass [B T H], real, on request: of the loss
        head_sum [B T S], real, on request: of the loss
        target [B T S], real, on request: of the loss
        student [B T S], real, on request: of the loss

    options
        nope_dim: integer. dn, channels of query and key that are not rotated; required
        rope_dim: integer. dr, channels that are; required, even
        v_dim: integer. dv, channels of a value; required
        eps: number = 1e-06. of the norms of both latents; >= 0
        rope: object. the rotation; theta and dim are required, dim is rope_dim
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        mscale: number = 1.0. the query's factor for a longer context is (0.1 mscale ln(factor) + 1)^2
        max_position: integer = 0. context length; that factor enters where this exceeds the next; 0 = not set
        original_max_position: integer = 0. context length of the training; 0 = not set
        indexer: object. options of dsa_indexer; null: attention sees every visible key
        indexer.k: integer. tokens to select; required
        indexer.tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or
            every score >= the k-th
        indexer.score_scale: heads_and_dim | dim | none. factor of the score: (A e)^-1/2 (default), e^-1/2 or 1;
            the loss takes it too
        indexer.eps: number = 1e-06. of the layer norm of the keys
        indexer.rope: object. rotary embedding of queries and keys; required
        indexer.rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        indexer.rope.dim: integer. channels that are rotated; even, at most the width; required
        indexer.rope.placement: trailing | leading = "leading". the last dim channels, or the first
        indexer.rope.pairing: interleaved | half = "half". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        indexer.rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all
            second parts
        indexer.rope.inverse: bool = false. rotate back; output is then the layout of the input
        indexer.rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        indexer.rope.yarn: object. frequencies changed for a longer context
        indexer.rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        indexer.rope.yarn.original_max_position: integer. context length of the training; > 0; required
        indexer.rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        indexer.rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        indexer.rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        loss: object. options of dsa_indexer_loss; null: none
        loss.preset: maxtext_v32 | exact | maxtext_v4 | megatron | tilelang = "maxtext_v32". sets the fields below
        loss.sparse: bool = false. over the selected visible keys instead of all visible keys
        loss.teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys
        loss.restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax,
            or after it
        loss.l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        loss.target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            target
        loss.student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        loss.gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        loss.reduction: sum | mean_all | mean_valid | mean_real = "mean_all". rows to scalar
        loss.coefficient: number = 1.0. factor of the loss; 0: no loss
        loss.softmax_scale: number = 1.0. factor of the teacher's logits
        loss.score_scale: heads_and_dim | dim | none. factor of the student's scores; default: what the indexer
            names, else the preset's
        loss.relu: bool = true. ReLU in those scores
        loss.allow_full_selection: bool = false. a sparse loss may select every key
        mask: object. who sees whom; indexer and loss take it too
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        barrier, head_chunk, key_block, sliced, absorbed, prefill, step
    """

MlaProjectionOptions = TypedDict('MlaProjectionOptions', {
    'nope_dim': int,
    'rope_dim': int,
    'v_dim': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'mscale': float,
    'max_position': int,
    'original_max_position': int,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def mla_projection(
    x: Array,
    wkv_a: Array,
    kv_norm: Array,
    wkv_b: Array,
    positions: Optional[Array] = ...,
    wq: Optional[Array] = ...,
    wq_a: Optional[Array] = ...,
    q_norm: Optional[Array] = ...,
    wq_b: Optional[Array] = ...,
    bq: Optional[Array] = ...,
    bq_a: Optional[Array] = ...,
    bq_b: Optional[Array] = ...,
    bkv_a: Optional[Array] = ...,
    bkv_b: Optional[Array] = ...,
    *,
    options: Optional[MlaProjectionOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """queries, keys and values of multi-head latent attention

        query = [nope, rope(pe)] c of rms_norm(x wq_a) wq_b; key = [k_nope, rope(k_pe)], value of rms_norm(latent) wkv_b

    inputs
        x [B S E], real, required, differentiable: tokens
        positions [B S], integer: position of each token; default 0 ... S-1
        wq [E H dn+dr], real, differentiable: direct query weight; or wq_a, q_norm and wq_b
        wq_a [E Rq], real, differentiable: to the query latent
        q_norm [Rq], real, differentiable: weight of its norm
        wq_b [Rq H dn+dr], real, differentiable: from the query latent
        wkv_a [E Rkv+dr], real, required, differentiable: to the key-value latent and the rotary key
        kv_norm [Rkv], real, required, differentiable: weight of the latent's norm
        wkv_b [Rkv H dn+dv], real, required, differentiable: from the latent to keys and values
        bq [H dn+dr], real, differentiable: bias of wq
        bq_a [Rq], real, differentiable: bias of wq_a
        bq_b [H dn+dr], real, differentiable: bias of wq_b
        bkv_a [Rkv+dr], real, differentiable: bias of wkv_a
        bkv_b [H dn+dv], real, differentiable: bias of wkv_b

    given (constants in place of what would be computed)
        q_latent [B S Rq], real: stands for the normed query latent
        kv_latent [B S Rkv], real: stands for the normed latent
        k_pe [B S dr], real: stands for the rotated key

    cotangents
        query [B S H dn+dr], real: of the queries
        key [B S H dn+dr], real: of the keys
        value [B S H dv], real: of the values
        q_latent [B S Rq], real: of the query latent
        kv_latent [B S Rkv], real: of the latent
        k_pe [B S dr], real: of the rotary key

    outputs
        query [B S H dn+dr], real: queries, scaled
        key [B S H dn+dr], real: keys
        value [B S H dv], real: values
        q_latent [B S Rq], real: query latent after its norm; none with wq
        kv_latent [B S Rkv], real: latent after its norm, as a cache holds it
        k_pe [B S dr], real: rotary key after rotation, as a cache holds it

    options
        nope_dim: integer. dn, channels of query and key that are not rotated; required
        rope_dim: integer. dr, channels that are; required, even
        v_dim: integer. dv, channels of a value; required
        eps: number = 1e-06. of the norms of both latents; >= 0
        rope: object. the rotation; theta and dim are required, dim is rope_dim
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        mscale: number = 1.0. the query's factor for a longer context is (0.1 mscale ln(factor) + 1)^2
        max_position: integer = 0. context length; that factor enters where this exceeds the next; 0 = not set
        original_max_position: integer = 0. context length of the training; 0 = not set
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        sliced
    """

MlaStepOptions = TypedDict('MlaStepOptions', {
    'nope_dim': int,
    'rope_dim': int,
    'v_dim': int,
    'eps': float,
    'rope': Optional[Dict[str, Any]],
    'mscale': float,
    'max_position': int,
    'original_max_position': int,
    'indexer': Optional[Dict[str, Any]],
    'loss': Optional[Dict[str, Any]],
    'mask': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def mla_step(
    x: Array,
    state_kv_latent: Array,
    state_k_pe: Array,
    wkv_a: Array,
    kv_norm: Array,
    wkv_b: Array,
    wo: Array,
    valid: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_index: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    state_length: Optional[Array] = ...,
    state_indexer_index_k: Optional[Array] = ...,
    state_positions: Optional[Array] = ...,
    state_segment_ids: Optional[Array] = ...,
    wq: Optional[Array] = ...,
    wq_a: Optional[Array] = ...,
    q_norm: Optional[Array] = ...,
    wq_b: Optional[Array] = ...,
    bq: Optional[Array] = ...,
    bq_a: Optional[Array] = ...,
    bq_b: Optional[Array] = ...,
    bkv_a: Optional[Array] = ...,
    bkv_b: Optional[Array] = ...,
    indexer_wq_b: Optional[Array] = ...,
    indexer_wk: Optional[Array] = ...,
    indexer_k_norm_weight: Optional[Array] = ...,
    indexer_k_norm_bias: Optional[Array] = ...,
    indexer_weights_proj: Optional[Array] = ...,
    *,
    options: Optional[MlaStepOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """one call of a server: new tokens through an MLA layer and its caches

        output of mla_layer for the L new rows, over caches of what came before

    inputs
        x [B L E], real, required: new tokens
        valid [B L P], boolean: not taken: what later calls see cannot depend on it
        row_mask [B L], boolean: not taken
        mask [B L P], real: not taken
        row_index [L], integer: not taken
        cu_seqlens [n+1], integer: not taken: positions and segment_ids say it
        positions [B L], integer: their positions; default length[b] + i
        segment_ids [B L], integer: their documents; default 0
        state.length [B], integer: tokens in the caches of each sequence; required
        state.kv_latent [B P Rkv], real, required: key-value latents after their norm
        state.k_pe [B P dr], real, required: rotary keys after rotation
        state.indexer_index_k [B P e], real: indexer keys; with an indexer
        state.positions [B P], integer: positions of the tokens; required
        state.segment_ids [B P], integer: their documents; required
        wq [E H dn+dr], real, differentiable: direct query weight; or wq_a, q_norm and wq_b
        wq_a [E Rq], real, differentiable: to the query latent
        q_norm [Rq], real, differentiable: weight of its norm
        wq_b [Rq H dn+dr], real, differentiable: from the query latent
        wkv_a [E Rkv+dr], real, required, differentiable: to the key-value latent and the rotary key
        kv_norm [Rkv], real, required, differentiable: weight of the latent's norm
        wkv_b [Rkv H dn+dv], real, required, differentiable: from the latent to keys and values
        bq [H dn+dr], real, differentiable: bias of wq
        bq_a [Rq], real, differentiable: bias of wq_a
        bq_b [H dn+dr], real, differentiable: bias of wq_b
        bkv_a [Rkv+dr], real, differentiable: bias of wkv_a
        bkv_b [H dn+dv], real, differentiable: bias of wkv_b
        wo [H dv E], real, required, differentiable: output projection
        indexer_wq_b [Rq A e], real, differentiable: indexer: from the query latent to queries
        indexer_wk [E e], real, differentiable: indexer: to keys
        indexer_k_norm_weight [e], real, differentiable: indexer: weight of the keys' norm
        indexer_k_norm_bias [e], real, differentiable: indexer: its bias
        indexer_weights_proj [E A], real, differentiable: indexer: to head weights

    outputs
        output [B T E], real: the layer's output
        loss scalar, real: the indexer's loss, 0 without one
        query [B S H dn+dr], real, on request: queries, scaled
        key [B S H dn+dr], real, on request: keys
        value [B S H dv], real, on request: values
        q_latent [B S Rq], real, on request: query latent after its norm
        kv_latent [B S Rkv], real, on request: key-value latent after its norm
        k_pe [B S dr], real, on request: rotary key after rotation
        attention_output [B T H dv], real, on request: output of the attention
        attention_lse [B T H], real, on request: its log-sum-exp
        attention_max_logit [B T H], real, on request: its largest logits
        indexer_index_q [B S A e], real, on request: indexer queries
        indexer_index_k [B S e], real, on request: indexer keys
        indexer_index_w [B S A], real, on request: indexer head weights
        indexer_scores [B T S], real, on request: scores, -inf at hidden keys
        indexer_indices [B T k], integer, on request: the selected tokens, best first
        indexer_selected [B T S], boolean, on request: the selected tokens as a set
        row_loss [B T], real, on request: of the loss
        row_valid [B T], boolean, on request: of the loss
        log_mass [B T H], real, on request: of the loss
        head_sum [B T S], real, on request: of the loss
        target [B T S], real, on request: of the loss
        student [B T S], real, on request: of the loss
        state.length [B], integer: tokens in the caches after the call
        state.kv_latent [B P Rkv], real: latents, 0 beyond the length
        state.k_pe [B P dr], real: rotary keys, 0 beyond the length
        state.indexer_index_k [B P e], real: indexer keys, 0 beyond the length
        state.positions [B P], integer: positions, 0 beyond the length
        state.segment_ids [B P], integer: documents, 0 beyond the length

    options
        nope_dim: integer. dn, channels of query and key that are not rotated; required
        rope_dim: integer. dr, channels that are; required, even
        v_dim: integer. dv, channels of a value; required
        eps: number = 1e-06. of the norms of both latents; >= 0
        rope: object. the rotation; theta and dim are required, dim is rope_dim
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        mscale: number = 1.0. the query's factor for a longer context is (0.1 mscale ln(factor) + 1)^2
        max_position: integer = 0. context length; that factor enters where this exceeds the next; 0 = not set
        original_max_position: integer = 0. context length of the training; 0 = not set
        indexer: object. options of dsa_indexer; null: attention sees every visible key
        indexer.k: integer. tokens to select; required
        indexer.tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or
            every score >= the k-th
        indexer.score_scale: heads_and_dim | dim | none. factor of the score: (A e)^-1/2 (default), e^-1/2 or 1;
            the loss takes it too
        indexer.eps: number = 1e-06. of the layer norm of the keys
        indexer.rope: object. rotary embedding of queries and keys; required
        indexer.rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        indexer.rope.dim: integer. channels that are rotated; even, at most the width; required
        indexer.rope.placement: trailing | leading = "leading". the last dim channels, or the first
        indexer.rope.pairing: interleaved | half = "half". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        indexer.rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all
            second parts
        indexer.rope.inverse: bool = false. rotate back; output is then the layout of the input
        indexer.rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        indexer.rope.yarn: object. frequencies changed for a longer context
        indexer.rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        indexer.rope.yarn.original_max_position: integer. context length of the training; > 0; required
        indexer.rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their
            frequency; required
        indexer.rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor;
            required
        indexer.rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole
            pairs
        loss: object. options of dsa_indexer_loss; null: none
        loss.preset: maxtext_v32 | exact | maxtext_v4 | megatron | tilelang = "maxtext_v32". sets the fields below
        loss.sparse: bool = false. over the selected visible keys instead of all visible keys
        loss.teacher: own | joint | joint_window = "own". what stands in the teacher's denominator beside the keys
        loss.restrict: before_softmax | after_softmax = "before_softmax". selection before the teacher's softmax,
            or after it
        loss.l1: none | add eps | clamp eps | zero_below eps = {"eps": 1e-08, "mode": "add"}. how the head sum T
            becomes the target t
        loss.target_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            target
        loss.student_log: exact | add eps | clamp eps | clip lo = {"eps": 1e-08, "mode": "add"}. logarithm of the
            student
        loss.gradient: of_value | p_minus_t = "of_value". derivative of the value, or p - t by definition
        loss.reduction: sum | mean_all | mean_valid | mean_real = "mean_all". rows to scalar
        loss.coefficient: number = 1.0. factor of the loss; 0: no loss
        loss.softmax_scale: number = 1.0. factor of the teacher's logits
        loss.score_scale: heads_and_dim | dim | none. factor of the student's scores; default: what the indexer
            names, else the preset's
        loss.relu: bool = true. ReLU in those scores
        loss.allow_full_selection: bool = false. a sparse loss may select every key
        mask: object. who sees whom; indexer and loss take it too
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas

    schedule
        head_chunk, key_block, sliced, absorbed
    """

RmsNormOptions = TypedDict('RmsNormOptions', {
    'eps': float,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def rms_norm(
    x: Array,
    weight: Optional[Array] = ...,
    *,
    options: Optional[RmsNormOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """root-mean-square norm over the last axis

        y = x (mean x^2 + eps)^-1/2 weight

    inputs
        x [n D], real, required, differentiable: rows, behind any leading axes
        weight [D], real, differentiable: factor of each channel

    cotangents
        y [n D], real: of the normalised rows

    outputs
        y [n D], real: the normalised rows, in the shape of x

    options
        eps: number = 1e-06. added to the mean square or the variance; >= 0
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

RopeOptions = TypedDict('RopeOptions', {
    'rope': Optional[Dict[str, Any]],
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def rope(
    x: Array,
    positions: Optional[Array] = ...,
    *,
    options: Optional[RopeOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """rotary position embedding, with YaRN

        (a, b) -> f (a cos p - b sin p, a sin p + b cos p), p = position theta^(-2i/dim) for pair i

    inputs
        x [B S H D], real, required, differentiable: rows to rotate
        positions [B S], integer: position of each token; default 0 ... S-1

    cotangents
        y [B S H D], real: of the rotated rows

    outputs
        y [B S H D], real: the rotated rows

    options
        rope: object. the rotation; theta and dim are required
        rope.theta: number. base: pair i turns by position * theta^(-2i/dim); > 0; required
        rope.dim: integer. channels that are rotated; even, at most the width; required
        rope.placement: trailing | leading = "trailing". the last dim channels, or the first
        rope.pairing: interleaved | half = "interleaved". pair i is channels (2i, 2i+1), or (i, i + dim/2)
        rope.output: same | half = "same". half: results of interleaved pairs as all first parts, then all second
            parts
        rope.inverse: bool = false. rotate back; output is then the layout of the input
        rope.attention_factor: number = 1.0. factor of the rotated channels, of the inverse too
        rope.yarn: object. frequencies changed for a longer context
        rope.yarn.factor: number. context is longer than in training by this factor; > 0; required
        rope.yarn.original_max_position: integer. context length of the training; > 0; required
        rope.yarn.beta_fast: number. pairs that turn more often than this over that length keep their frequency;
            required
        rope.yarn.beta_slow: number. pairs that turn less often than this are slowed by the whole factor; required
        rope.yarn.truncate: bool = true. the ends of the ramp between them are rounded outwards to whole pairs
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

StageRoutingOptions = TypedDict('StageRoutingOptions', {
    'model': Literal['v32', 'v4'],
    'mode': Literal['train', 'prefill', 'autoregressive'],
    'use_indexer': bool,
    'sparse': bool,
    'coefficient': float,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def stage_routing(
    *,
    options: Optional[StageRoutingOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """which keys attention sees and which losses a stage computes

        computes_loss = train and use_indexer and coefficient > 0;  warm_up = computes_loss and not sparse;  lm_loss = not warm_up

    outputs
        computes_loss scalar, boolean: training with an indexer and a coefficient above 0
        warm_up scalar, boolean: dense warm-up: the loss is computed and not sparse
        attends_all scalar, boolean: attention sees every visible key, not the selected ones
        lm_loss scalar, boolean: the language model's own loss is trained

    options
        model: v32 | v4 = "v32". whose layer
        mode: train | prefill | autoregressive = "train". training, or one of the two calls of a server
        use_indexer: bool. the layer has an indexer; required
        sparse: bool. the indexer loss is over the selected keys; required
        coefficient: number. factor of the indexer loss; required
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """

TopkOptions = TypedDict('TopkOptions', {
    'k': int,
    'keys': Literal['tokens', 'blocks'],
    'tie': Literal['lowest_index', 'threshold'],
    'nan': Literal['last', 'error'],
    'm': int,
    'grid': Literal['physical', 'document'],
    'mask': Optional[Dict[str, Any]],
    'S': int,
    'nonfinite': Literal['error', 'allow'],
}, total=False)

def topk(
    scores: Array,
    row_index: Optional[Array] = ...,
    segment_ids: Optional[Array] = ...,
    positions: Optional[Array] = ...,
    cu_seqlens: Optional[Array] = ...,
    valid: Optional[Array] = ...,
    mask: Optional[Array] = ...,
    row_mask: Optional[Array] = ...,
    *,
    options: Optional[TopkOptions] = ...,
    precision: Literal['f32', 'f64', 'f192', 'mp50', 'mp100'] = ...,
    grad: bool = ...,
    schedule: Optional[Mapping[str, Any]] = ...,
    requested: Sequence[str] = ...,
    given: Optional[Mapping[str, Array]] = ...,
    cot: Optional[Mapping[str, Array]] = ...,
    contract: Union[None, str, Mapping[str, Any]] = ...,
    threads: int = ...,
    more: Optional[Mapping[str, Array]] = ...,
) -> Result:
    """the k best visible keys of every row

        selected = the min(k, visible) keys with the largest scores

    inputs
        scores [B T K], real, required: scores; +-inf allowed
        row_index [T], integer: token at which each query row stands
        segment_ids [B S], integer: document of each token
        positions [B S], integer: position of each token; default 0 ... S-1
        cu_seqlens [n+1], integer: document boundaries from 0 to S (B = 1)
        valid [B T K], boolean: false hides a key from a row
        mask [B T K], real: float mask: 0 visible, <= -9900 or -inf hidden
        row_mask [B T], boolean: false: the row is not real

    outputs
        indices [B T k], integer: keys, best first, -1 after the visible ones
        selected [B T K], boolean: the selected keys as a set

    options
        k: integer. keys to select; required
        keys: tokens | blocks = "tokens". what the scores range over
        tie: lowest_index | threshold = "lowest_index". equal scores: exactly k, lower index first; or every score
            >= the k-th
        nan: last | error = "last". a NaN score of a visible key: after all numbers, or an error
        m: integer. tokens per block; required for blocks
        grid: physical | document = "physical". blocks are cut from token 0, or inside each document
        mask: object. who sees whom
        mask.causal: bool = true. key s is visible to row t only if s <= r(t); blocks by positions
        mask.documents: bool. only keys of the row's segment; default: segment_ids or cu_seqlens are given
        mask.query_offset: integer. row t stands at token t + query_offset; default S - T
        mask.padding_segment: integer. tokens of this segment are neither keys nor real rows
        S: integer. number of tokens, where no tensor tells
        nonfinite: error | allow = "error". a NaN or infinity that a real row reads: an error, or the limits of
            the formulas
    """
