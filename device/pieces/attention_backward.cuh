// device/pieces/attention_backward.cuh
//
// Attention backward, one block for sixteen heads of a query row. With g = dL/d output, l = dL/d lse
// and δ = g·output:
//
//     p = exp(c − L)      dc = p (g·v − δ) + l·(p, or exp(c − lse) where lse leaves the sink out)
//     dq = scale Σ dc k   dk += scale dc q   dv += p g   dsink = Σ over rows of p_sink (l − δ)
//
// Scores are computed again from q and k. Each warp has a quarter of the tile's keys for scores and dc,
// a quarter of the channels for dq, and pieces of 16 keys x 64 channels for dk and dv, which go out by
// atomic additions: other rows have the same keys, in no order. 5 products of 2·16·D FLOP a key, and
// 4·D bytes of reductions: bound by the atomics of L2 (docs/kernels.md).
#pragma once
#include "device/pieces/attention_forward.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T, int Width, bool OneLatent> struct AttentionGradients {
  // Two tiles of 64 keys are more than a multiprocessor of sm_80 has.
  static constexpr int threads = 128, tile_keys = sizeof(T) == 2 ? 64 : 32;
  static constexpr int own_keys = tile_keys / 4, own_channels = Width / 4, piece = 64;
  struct Args {
    AttentionViews<T> in;
    View<const T, 3> output, doutput;                             // B·T H Dv
    View<const float, 2> lse;                                     // B·T H
    View<const T, 2> dlse;                                        // B·T H
    View<float, 3> dquery;                                        // B·T H D
    View<float, 4> dnear_key, dnear_value, dfar_key, dfar_value;  // as the pools
    View<float, 2> dsink;                                         // B·T H: of each row
  };
  struct Plan {
    Tile<T, tile_heads, Width, Padded<16 / sizeof(T)>> query, doutput;
    AttentionTiles<T, tile_keys, Width, OneLatent> tile;
    Tile<T, tile_heads, tile_keys, Padded<16 / sizeof(T)>> dscore;  // dc
    Tile<T, tile_keys, tile_heads, Padded<16 / sizeof(T)>> dscore_by_key, weight_by_key;
    Array<int, tile_keys> row;
    Array<float, tile_heads> delta, log_keys, log_all, pull;
  };

  DEVICE static void without_keys(const Args& p, const KeyList<T>& list, const HeadTile& own) {
    const int width = static_cast<int>(p.dquery.extent(2));
    for (int i = thread(); i < own.count * width; i += threads)
      p.dquery(list.t, own.first + i / width, i % width) = 0.f;
    if (thread() >= own.count || !p.dsink.exists()) return;
    const int h = own.first + thread();
    float d = 0.f;  // all of a counted, finite sink's lse is the sink
    if (list.real && p.in.lse_form.empty_is_sink && sink_of(p.in, h).finite())
      d = pull_of(p, list.t, h);
    p.dsink(list.t, h) = d;
  }
  // Of the natural lse.
  DEVICE static float pull_of(const Args& p, std::int64_t t, int h) {
    if (!p.dlse.exists()) return 0.f;
    const float d = number(T(p.dlse(t, h)));
    return p.in.lse_form.base_two ? d / ln_two : d;
  }

  // What each head knows of its row. One warp a head.
  DEVICE static void summarise(const Args& p, Plan& s, std::int64_t t, const HeadTile& own) {
    const AttentionViews<T>& a = p.in;
    for (int i = warp(); i < tile_heads; i += 4) {
      float delta = 0.f, log_keys = 0.f, log_all = 0.f, pull = 0.f;
      if (i < own.count) {
        const int h = own.first + i;
        for (int c = lane(); c < a.value_width; c += 32)
          delta = fused(number(T(p.doutput(t, h, c))), number(T(p.output(t, h, c))), delta);
        delta = warp_sum(delta);
        const float lse = p.lse(t, h);
        log_keys = log_all = a.lse_form.base_two ? lse * ln_two : lse;
        if (lse < infinity()) pull = pull_of(p, t, h);
        const Sink sink = sink_of(a, h);
        if (sink.there && !a.lse_form.counts_sink) {
          const float high = maximum(log_keys, sink.logit), low = minimum(log_keys, sink.logit);
          log_all = sink.finite() ? high + natural_log(1.f + exponential(low - high)) : infinity();
        }
        if (p.dsink.exists() && lane() == 0) {
          const float lost = sink.finite() ? exponential(sink.logit - log_all) : 0.f;
          p.dsink(t, h) = lost * ((a.lse_form.counts_sink ? pull : 0.f) - delta);
        }
      }
      if (lane() == 0)
        s.delta[i] = delta, s.log_keys[i] = log_keys, s.log_all[i] = log_all, s.pull[i] = pull;
    }
  }

  DEVICE static void run(const Args& p, Plan& s) {
    const AttentionViews<T>& a = p.in;
    const KeyList<T> list(a, block(0));
    const HeadTile own = head_tile(a, block(1));
    if (!list.any()) return without_keys(p, list, own);
    load_heads<Width>(s.query, a.query, list.t, own);
    load_heads<Width>(s.doutput, p.doutput, list.t, own);
    summarise(p, s, list.t, own);

    float dquery[own_channels / 8][4] = {};
    for (int first = 0; first < list.count(); first += tile_keys) {
      load_tile(s.tile, s.row, list, first, own.group);
      sync_block();  // the tile is complete, and what heads know of the row

      find_dscores(p, s);
      sync_block();  // dc and weights are there

      Strip<T>::add_transposed(dquery, s.dscore, 0, s.tile.keys(), warp() * own_channels,
                               tile_keys);
      for (int i = warp(); i < tile_keys / 16 * (Width / piece); i += 4)
        give_out(p, s, list, first, i % (tile_keys / 16) * 16, i / (tile_keys / 16) * piece,
                 own.group);
      sync_block();  // everybody has read the tile
    }
    UNROLL
    for (int g = 0; g < own_channels / 8; ++g) UNROLL
    for (int i = 0; i < 4; ++i) {
      const int h = lane_row(i), c = warp() * own_channels + lane_column(g, i);
      if (h < own.count && c < p.dquery.extent(2))
        p.dquery(list.t, own.first + h, c) = dquery[g][i] * a.scale;
    }
  }

  // p and dc of this warp's keys.
  DEVICE static void find_dscores(const Args& p, Plan& s) {
    const AttentionViews<T>& a = p.in;
    const int keys = warp() * own_keys;
    float score[own_keys / 8][4] = {}, dweight[own_keys / 8][4] = {};
    Strip<T>::add(score, s.query, 0, s.tile.keys(), keys, depth_of(a.query.extent(2)));
    Strip<T>::add(dweight, s.doutput, 0, s.tile.values(), keys, depth_of(a.value_width));
    UNROLL
    for (int g = 0; g < own_keys / 8; ++g) UNROLL
    for (int i = 0; i < 4; ++i) {
      const int h = lane_row(i), j = keys + lane_column(g, i);
      float weight = 0.f, dscore = 0.f;
      if (s.row[j] >= 0) {
        const float c = score[g][i] * a.scale, pull = s.pull[h];
        weight = exponential(c - s.log_all[h]);
        dscore = weight * (dweight[g][i] - s.delta[h]);
        if (pull != 0.f)
          dscore += pull * (a.lse_form.counts_sink ? weight : exponential(c - s.log_keys[h]));
      }
      s.dscore(h, j) = Stored<T>::of(dscore);
      s.dscore_by_key(j, h) = Stored<T>::of(dscore);
      s.weight_by_key(j, h) = Stored<T>::of(weight);
    }
  }

  // Sixteen keys and 64 channels of dk and dv: sums over the heads of this tile.
  DEVICE static void give_out(const Args& p, Plan& s, const KeyList<T>& list, int first, int key,
                              int channel, int group) {
    float dkey[piece / 8][4] = {}, dvalue[piece / 8][4] = {};
    Strip<T>::add_transposed(dkey, s.dscore_by_key, key, s.query, channel, tile_heads);
    Strip<T>::add_transposed(dvalue, s.weight_by_key, key, s.doutput, channel, tile_heads);
    UNROLL
    for (int i = 0; i < 4; ++i) {
      const int j = key + lane_row(i), row = s.row[j];
      if (row < 0) continue;
      const bool near = list.from_near(first + j);
      const View<float, 4>& to_key = near ? p.dnear_key : p.dfar_key;
      const View<float, 4>& to_value = near ? p.dnear_value : p.dfar_value;
      UNROLL
      for (int g = 0; g < piece / 8; ++g) {
        const int c = channel + lane_column(g, i);
        const float d = dkey[g][i] * p.in.scale;
        if (OneLatent) {
          if (c < to_key.extent(3)) reduce_add(to_key(list.b, row, group, c), d + dvalue[g][i]);
        } else {
          if (c < to_key.extent(3)) reduce_add(to_key(list.b, row, group, c), d);
          if (c < to_value.extent(3)) reduce_add(to_value(list.b, row, group, c), dvalue[g][i]);
        }
      }
    }
  }
};

// Σ over rows of the sink's gradient.
struct SinkTerms {
  struct Args {
    View<const float, 2> dsink;  // B·T H
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dsink.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t h) {
    return p.dsink(row, h);
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
