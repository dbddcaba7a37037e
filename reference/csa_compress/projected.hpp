// reference/csa_compress/projected.hpp
//
// kv = x·kv_proj and gate = x·gate_proj as a source of the compressor: projected a run of tokens at a time and never
// held together; and the way back to x and both weights. The indexer and the layer of DeepSeek-V4 pool through it.
#pragma once
#include "reference/csa_compress/compressor.hpp"
#include "reference/linear/contract.hpp"
#include "reference/linear/weight_sum.hpp"

namespace plumbline::csa_compress {

template <class T> class ProjectedTokens {
 public:
  // x [B, S, E], weights [E, lanes·D]; they must outlive it, and it its sources.
  ProjectedTokens(const StoredTensor& x, const StoredTensor& kv_proj,
                  const StoredTensor& gate_proj);
  ProjectedTokens(const ProjectedTokens&) = delete;

  typename Compressor<T>::Source source() const;
  // Adds to dx [B, S, E], unless it is null, and to the sums, whose shards are those of Compressor::blocks().
  typename Compressor<T>::Receiver receiver(Array<T>* dx, WeightSum<T>& dkv_proj,
                                            WeightSum<T>& dgate_proj) const;

 private:
  const StoredTensor& x_;
  StoredTensor no_bias_;
  Contraction<T> to_kv_, to_gate_;
};

}  // namespace plumbline::csa_compress
