// reference/csa_layer/compression.hpp: the blocks of a layer, made of x where its rows need them.
#pragma once
#include "reference/csa_compress/projected.hpp"
#include "reference/csa_layer/csa_layer.hpp"

namespace plumbline::csa_layer {

template <class T> class Compression {
 public:
  using Chosen = typename csa_compress::Compressor<T>::Chosen;

  // They must outlive the object.
  Compression(const Inputs& in, const Options& options, const Visibility& visibility,
              std::int64_t width)
      : in_(in),
        parts_{in.position_bias, in.compress_norm, {}, {}, {}},
        tokens_(in.x, in.kv_proj, in.gate_proj),
        compressor_(visibility, parts_, compress_options(options), width) {}
  Compression(const Compression&) = delete;

  void make(const Run& run, const Chosen& chosen, Array<T>& compressed) const {
    compressor_.make(run, tokens_.source(), chosen, compressed);
  }
  void mark_read(const Chosen& chosen, RowNotes& notes) const {
    compressor_.mark_read(chosen, notes);
  }
  // What dcompressed of the chosen blocks sends to the weights, and adds to x.
  void pull_back(const Run& run, const Chosen& chosen, const Array<T>& dcompressed,
                 Gradients<T>& grad) const {
    WeightSum<T> kv_proj(in_.kv_proj, grad.kv_proj, compressor_.blocks()),
        gate_proj(in_.gate_proj, grad.gate_proj, compressor_.blocks());
    csa_compress::PartGradients<T> parts;
    compressor_.pull_back(run, tokens_.source(), chosen, dcompressed,
                          tokens_.receiver(&grad.x, kv_proj, gate_proj), parts);
    kv_proj.fold();
    gate_proj.fold();
    grad.position_bias = std::move(parts.position_bias);
    grad.compress_norm = std::move(parts.norm_weight);
  }

 private:
  const Inputs& in_;
  csa_compress::Parts parts_;
  csa_compress::ProjectedTokens<T> tokens_;
  csa_compress::Compressor<T> compressor_;
};

}  // namespace plumbline::csa_layer
