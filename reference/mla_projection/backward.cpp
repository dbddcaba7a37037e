#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/mla_projection/projection.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_projection {
namespace {

Sizes with_cotangents(Sizes sizes, Cotangents cotangent) {
  if (cotangent.q_latent.given() && !sizes.known("Rq")) {
    throw Error(cotangent.q_latent.name, "the tensor",
                "none: in.wq is given, the query has no latent");
  }
  sizes.unify_all(cotangent);
  return sizes;
}

}  // namespace

// Latents are computed again, a block of tokens at a time; queries, keys and values are not needed.
template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangent) {
  const Projection<T> projection(in, options, run.schedule.sliced);
  const Sizes sizes = with_cotangents(projection.sizes(), cotangent);
  const std::int64_t heads = sizes["H"], width = sizes["E"];
  Gradients<T> grad;
  grad.x = Array<T>(in.x.shape);
  WeightSums<T> sums(in, grad, projection.rows());
  // The cotangents of a block of tokens, n rows of a token each.
  const auto of_block = [](const StoredTensor& tensor, const Tokens<T>& tokens, std::int64_t n,
                           std::int64_t columns) {
    Buffer<T> rows(static_cast<std::size_t>(tokens.rows * n * columns));
    fetch_rows<T>(tensor, tokens.first * n, tokens.rows * n, rows);
    return rows;
  };
  for_each_shard(
      run, projection.rows(), [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
        in_chunks(end - begin, rows_of_a_block, [&](std::int64_t from, std::int64_t to) {
          Tokens<T> tokens = projection.read(begin + from, to - from);
          const std::span<T> dx = std::span<T>(grad.x.values)
                                      .subspan(static_cast<std::size_t>(tokens.first * width),
                                               static_cast<std::size_t>(tokens.rows * width));
          {
            projection.make_q_latent(tokens);
            const Buffer<T> dquery =
                of_block(cotangent.query, tokens, heads, projection.key_width());
            Buffer<T> dq_latent = of_block(cotangent.q_latent, tokens, 1, sizes.or_else("Rq", 0));
            projection.pull_back_query(tokens, dquery, dq_latent, dx, sums, shard);
          }
          projection.make_kv_latent(tokens);
          const Buffer<T> dkey = of_block(cotangent.key, tokens, heads, projection.key_width());
          const Buffer<T> dvalue = of_block(cotangent.value, tokens, heads, sizes["dv"]);
          Buffer<T> dkv_latent = of_block(cotangent.kv_latent, tokens, 1, sizes["Rkv"]);
          Buffer<T> dk_pe = of_block(cotangent.k_pe, tokens, 1, sizes["dr"]);
          projection.pull_back_key_value(tokens, dkey, dvalue, dkv_latent, dk_pe, dx, sums, shard);
        });
      });
  sums.fold();
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_projection
