#include "reference/linear/rows.hpp"
#include "reference/mla_projection/projection.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_projection {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const Projection<T> projection(in, options, run.schedule.sliced);
  const Sizes& sizes = projection.sizes();
  Outputs<T> out;
  out.query = Array<T>(sizes.shape("B S H dn+dr"));
  out.key = Array<T>(out.query.shape);
  out.value = Array<T>(sizes.shape("B S H dv"));
  if (sizes.known("Rq"))
    out.q_latent = Array<T>(sizes.shape("B S Rq"));  // with wq, one that is given
  out.kv_latent = Array<T>(sizes.shape("B S Rkv"));
  out.k_pe = Array<T>(sizes.shape("B S dr"));
  // The rows of a block of tokens in an output, which has `width` numbers for a token.
  const auto part = [](Array<T>& array, const Tokens<T>& tokens) {
    const std::int64_t width =
        static_cast<std::int64_t>(array.values.size()) / (array.shape[0] * array.shape[1]);
    return std::span<T>(array.values)
        .subspan(static_cast<std::size_t>(tokens.first * width),
                 static_cast<std::size_t>(tokens.rows * width));
  };
  for_each_block(run, projection.rows(), [&](std::int64_t first, std::int64_t last) {
    Tokens<T> tokens = projection.read(first, last - first);
    projection.make_q_latent(tokens);
    projection.make_query(tokens, part(out.query, tokens));
    if (!projection.direct()) {
      std::copy(tokens.q_latent.begin(), tokens.q_latent.end(), part(out.q_latent, tokens).begin());
    } else if (in.given_q_latent.given()) {
      fetch_rows<T>(in.given_q_latent, first, last - first, part(out.q_latent, tokens));
    }
    projection.make_kv_latent(tokens);
    projection.make_key_value(tokens, part(out.key, tokens), part(out.value, tokens));
    std::copy(tokens.kv_latent.begin(), tokens.kv_latent.end(),
              part(out.kv_latent, tokens).begin());
    std::copy(tokens.k_pe.begin(), tokens.k_pe.end(), part(out.k_pe, tokens).begin());
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_projection
