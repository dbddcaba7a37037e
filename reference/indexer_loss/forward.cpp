#include "reference/indexer_loss/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::indexer_loss {

template <class T>
Outputs<T> forward(const Tensors& in, const Options& options, const Run& run, Sizes sizes) {
  const Rows<T> all(in, options, sizes);
  const bool mass = in.query.given() && !in.given_head_sum.given();
  const std::int64_t heads = mass ? in.query.size(2) : 0;
  const std::int64_t plane =
      options.layout == Layout::slots ? in.indices.size(2) : all.visibility.keys();
  const Shape rows{all.batch, all.rows}, keys{all.batch, all.rows, plane};

  Outputs<T> out;
  out.row_loss = Array<T>(rows);
  out.row_valid = Array<std::uint8_t>(rows);
  out.row_valid.values = all.sees;
  if (mass) out.log_mass = Array<T>({all.batch, all.rows, heads}, -infinity<T>());
  if (run.wants("head_sum")) out.head_sum = Array<T>(keys);
  if (run.wants("target")) out.target = Array<T>(keys);
  if (run.wants("student")) out.student = Array<T>(keys);

  for_each_row(run, all.batch * all.rows, [&](std::int64_t i) {
    const std::int64_t b = i / all.rows, t = i % all.rows;
    if (!all.visibility.real(b, t)) return;
    this_decisions().at_row(b, t);
    LossRow<T> row(in, options, run, all.visibility, all.sink, b, t);
    typename LossRow<T>::TakeKey take;
    if (out.head_sum.given() || out.target.given() || out.student.given()) {
      take = [&](std::int64_t place, const T& head_sum, const T& target, const T& student) {
        if (out.head_sum.given()) out.head_sum({b, t, place}) = leave(head_sum);
        if (out.target.given()) out.target({b, t, place}) = leave(target);
        if (out.student.given()) out.student({b, t, place}) = leave(student);
      };
    }
    const bool surrogate = run.surrogate && options.gradient == Gradient::p_minus_t;
    out.row_loss({b, t}) = leave(surrogate ? row.surrogate() : row.loss(take));
    for (std::int64_t h = 0; h < heads; ++h) out.log_mass({b, t, h}) = leave(row.log_mass(h));
  });

  const T divisor = all.divisor(options);
  out.loss = Array<T>(Shape{});
  if (divisor > T(0)) {
    out.loss.values[0] = constant<T>(options.coefficient) * sum<T>(out.row_loss.values) / divisor;
  }
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> forward<T>(const Tensors&, const Options&, const Run&, Sizes);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_loss
