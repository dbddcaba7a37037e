#include "reference/csa_compress/projected.hpp"

#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_compress {

template <class T>
ProjectedTokens<T>::ProjectedTokens(const StoredTensor& x, const StoredTensor& kv_proj,
                                    const StoredTensor& gate_proj)
    : x_(x),
      to_kv_(kv_proj, no_bias_, columns_of(kv_proj, std::nullopt, "")),
      to_gate_(gate_proj, no_bias_, columns_of(gate_proj, std::nullopt, "")) {}

template <class T> typename Compressor<T>::Source ProjectedTokens<T>::source() const {
  return [this](std::int64_t b, std::int64_t first, std::int64_t last, std::span<T> kv,
                std::span<T> gate) {
    Buffer<T> x(static_cast<std::size_t>((last - first) * to_kv_.inputs()));
    fetch_rows<T>(x_, b * x_.size(1) + first, last - first, std::span<T>(x));
    this_work().rows_fetched += last - first;
    to_kv_.apply(last - first, x, kv);
    to_gate_.apply(last - first, x, gate);
  };
}

template <class T>
typename Compressor<T>::Receiver ProjectedTokens<T>::receiver(Array<T>* dx, WeightSum<T>& dkv_proj,
                                                              WeightSum<T>& dgate_proj) const {
  return [this, dx, &dkv_proj, &dgate_proj](std::int64_t shard, std::int64_t b, std::int64_t first,
                                            std::int64_t last, std::span<const T> dkv,
                                            std::span<const T> dgate) {
    const std::int64_t count = last - first;
    Buffer<T> x(static_cast<std::size_t>(count * to_kv_.inputs()));
    fetch_rows<T>(x_, b * x_.size(1) + first, count, std::span<T>(x));
    this_work().rows_fetched += count;
    if (dx != nullptr) {
      const std::span<T> to = dx->row({b, first}, count * to_kv_.inputs());
      to_kv_.pull_back_input(count, dkv, to);
      to_gate_.pull_back_input(count, dgate, to);
    }
    to_kv_.pull_back_weight(count, x, dkv, dkv_proj.at(shard));
    to_gate_.pull_back_weight(count, x, dgate, dgate_proj.at(shard));
  };
}

#define INSTANTIATE(T) template class ProjectedTokens<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_compress
