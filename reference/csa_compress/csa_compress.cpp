#include "reference/csa_compress/csa_compress.hpp"

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_compress {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Letters unified, everything that does not depend on the data checked, and the grid of blocks.
template <class T> struct Prepared {
  Inputs in;
  Sizes sizes;
  std::optional<Visibility> grid;
  std::optional<Compressor<T>> compressor;

  Prepared(const Inputs& inputs, const Options& options) : in(inputs) {
    const Blocks blocks = blocks_of(options, in.mask);
    check_parts(in.parts, options);
    sizes.set("m", blocks.m, "option m");
    sizes.unify(in.kv, "B S D|2D");
    const std::int64_t channels = sizes["D|2D"];
    if (options.overlap && channels % 2 != 0) {
      throw Error(in.kv.name, "shape " + to_string(in.kv.shape),
                  "[B S 2D]: an even number of channels, two lanes");
    }
    sizes.set("D", options.overlap ? channels / 2 : channels, in.kv.name);
    sizes.unify_all(in);
    sizes.set("S%m", sizes["S"] % blocks.m, "S mod m");
    // Any positions will do here, so nothing about the order of blocks is asked of them.
    MaskOptions mask;
    mask.causal = false;
    mask.padding_segment = options.mask.padding_segment;
    grid.emplace(mask, in.mask, sizes, blocks);
    compressor.emplace(*grid, in.parts, options, sizes["D"]);
  }
  Prepared(const Prepared&) = delete;
  std::int64_t count() const { return grid->block_count(); }
};

// Tokens copied as they are: nobody computes with them, so a NaN is nobody's error.
StoredTensor unchecked(StoredTensor tensor) {
  tensor.nonfinite = NonFinite::allow;
  return tensor;
}

// Tokens [first, first + shape[1]) of every batch.
template <class T>
Array<T> copied(const StoredTensor& tensor, std::int64_t first, const Shape& shape) {
  Array<T> rows(shape);
  const StoredTensor from = unchecked(tensor);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    fetch_rows<T>(from, b * from.size(1) + first, shape[1], rows.row({b}, shape[1] * shape[2]));
  }
  return rows;
}

template <class T>
void add_copied(const StoredTensor& cotangent, std::int64_t first, Array<T>& grad) {
  if (!cotangent.given()) return;
  const std::int64_t count = cotangent.size(1), width = cotangent.size(2);
  Buffer<T> rows(place(count * width));
  for (std::int64_t b = 0; b < cotangent.size(0); ++b) {
    fetch_rows<T>(cotangent, b * count, count, std::span<T>(rows));
    const std::span<T> to = grad.row({b, first}, count * width);
    for (std::size_t i = 0; i < rows.size(); ++i) to[i] += rows[i];
  }
}

void refuse(const StoredTensor& cotangent, const char* reason) {
  if (cotangent.given())
    throw Error(cotangent.name, std::string("a cotangent beside ") + reason,
                "none: there is no such output");
}

}  // namespace

template <class T>
Outputs<T> Op::forward(const Inputs& inputs, const Options& options, const Run& run) {
  const Prepared<T> prepared(inputs, options);
  const Inputs& in = prepared.in;
  const Sizes& sizes = prepared.sizes;
  Outputs<T> out;
  out.compressed = Array<T>(sizes.shape("B N D"));
  prepared.compressor->make(run, stored_tokens<T>(in.kv, in.gate), prepared.compressor->all(),
                            out.compressed);
  if (options.grid == Grid::document) return out;
  const std::int64_t m = sizes["m"], end = prepared.count() * m;
  out.leftover_kv = copied<T>(in.kv, end, sizes.shape("B S%m D|2D"));
  out.leftover_gate = copied<T>(in.gate, end, sizes.shape("B S%m D|2D"));
  if (!options.overlap) return out;
  const Shape block = sizes.shape("B m 2D");
  const bool any = end > 0, given = in.parts.prior_kv.given();
  out.prior_present = Array<std::uint8_t>({sizes["B"]}, any || given ? 1 : 0);
  for (std::int64_t b = 0; b < sizes["B"] && !any && in.parts.prior_present.given(); ++b)
    out.prior_present({b}) = boolean_at(in.parts.prior_present, {b}) ? 1 : 0;
  if (any || given) {
    out.prior_kv = copied<T>(any ? in.kv : in.parts.prior_kv, any ? end - m : 0, block);
    out.prior_gate = copied<T>(any ? in.gate : in.parts.prior_gate, any ? end - m : 0, block);
  } else {
    out.prior_kv = Array<T>(block);
    out.prior_gate = Array<T>(block);
  }
  return out;
}

template <class T> Gradients<T> Op::backward(const Inputs& inputs, const Options& options,
                                             const Run& run, const Cotangents& given) {
  if (options.grid == Grid::document) {
    for (const StoredTensor* none :
         {&given.prior_kv, &given.prior_gate, &given.leftover_kv, &given.leftover_gate}) {
      refuse(*none, "grid document");
    }
  }
  if (!options.overlap)
    refuse(given.prior_kv, "overlap false"), refuse(given.prior_gate, "overlap false");
  const Prepared<T> prepared(inputs, options);
  const Inputs& in = prepared.in;
  Cotangents cotangents = given;
  Sizes sizes = prepared.sizes;
  sizes.unify_all(cotangents);
  Gradients<T> grad;
  grad.kv = Array<T>(in.kv.shape);
  grad.gate = Array<T>(in.gate.shape);
  Array<T> dcompressed(sizes.shape("B N D"));
  fetch_rows<T>(cotangents.compressed, 0, sizes["B"] * sizes["N"], dcompressed.values);
  const typename Compressor<T>::Chosen none(place(prepared.compressor->blocks()), 0);
  prepared.compressor->pull_back(
      run, stored_tokens<T>(in.kv, in.gate),
      cotangents.compressed.given() ? prepared.compressor->all() : none, dcompressed,
      [&](std::int64_t, std::int64_t b, std::int64_t first, std::int64_t, std::span<const T> dkv,
          std::span<const T> dgate) {
        std::copy(dkv.begin(), dkv.end(), &grad.kv({b, first, 0}));
        std::copy(dgate.begin(), dgate.end(), &grad.gate({b, first, 0}));
      },
      grad.parts);
  const std::int64_t end = prepared.count() * sizes["m"];
  add_copied(cotangents.leftover_kv, end, grad.kv);
  add_copied(cotangents.leftover_gate, end, grad.gate);
  if (end > 0) {
    add_copied(cotangents.prior_kv, end - sizes["m"], grad.kv);
    add_copied(cotangents.prior_gate, end - sizes["m"], grad.gate);
  } else if (in.parts.prior_kv.given()) {
    add_copied(cotangents.prior_kv, 0, grad.parts.prior_kv);
    add_copied(cotangents.prior_gate, 0, grad.parts.prior_gate);
  }
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_compress
