#include "reference/layer/calls.hpp"

#include <cstring>

#include "reference/error.hpp"

namespace plumbline::layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// A copy of some rows of a plane [B, T, K] of one sequence, cut to the keys there are: flags as flags, a float mask
// (with its remainder or scale) as doubles.
StoredTensor cut_plane(const StoredTensor& plane, std::int64_t b,
                       std::span<const std::int64_t> rows, std::int64_t keys) {
  if (!plane.given()) return plane;
  const bool flags = plane.dtype == Dtype::boolean;
  const std::size_t bytes = flags ? 1 : sizeof(double);
  const auto copy = std::make_shared<std::vector<std::byte>>(rows.size() * place(keys) * bytes);
  std::byte* to = copy->data();
  for (const std::int64_t t : rows) {
    for (std::int64_t key = 0; key < keys; ++key, to += bytes) {
      if (flags) {
        *to = boolean_at(plane, {b, t, key}) ? std::byte{1} : std::byte{0};
      } else {
        const double value = element<double>(plane, {b, t, key});
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
  StoredTensor cut;
  cut.name = plane.name;
  cut.dtype = flags ? Dtype::boolean : Dtype::f64;
  cut.data = copy->data();
  cut.owner = copy;
  cut.shape = {1, static_cast<std::int64_t>(rows.size()), keys};
  cut.stride = row_major(cut.shape);
  cut.present = true;
  return cut;
}
StoredTensor cut_flags(const StoredTensor& flags, std::int64_t b,
                       std::span<const std::int64_t> rows) {
  if (!flags.given()) return flags;
  StoredTensor plane = with_axis(flags, 2);
  plane = cut_plane(plane, b, rows, 1);
  plane.shape.pop_back();
  plane.stride.pop_back();
  return plane;
}

}  // namespace

StoredTensor row_of_integers(const std::vector<std::int32_t>& values, const char* name) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.data = reinterpret_cast<const std::byte*>(values.data());
  tensor.dtype = Dtype::i32;
  tensor.shape = {1, static_cast<std::int64_t>(values.size())};
  tensor.stride = row_major(tensor.shape);
  tensor.present = true;
  return tensor;
}

StoredTensor list_of_integers(const std::vector<std::int32_t>& values, const char* name) {
  StoredTensor tensor = row_of_integers(values, name);
  tensor.shape = {tensor.size(1)};
  tensor.stride = row_major(tensor.shape);
  return tensor;
}

StoredTensor among_all(const StoredTensor& x, std::int64_t before) {
  StoredTensor whole = x;
  RowNotes notes(place(before), RowNote::blank);
  for (std::int64_t s = 0; s < x.size(1); ++s)
    notes.push_back(x.notes ? (*x.notes)[place(s)] : RowNote::as_stored);
  whole.shape[1] += before;
  whole.notes = std::make_shared<const RowNotes>(std::move(notes));
  const std::size_t bytes = x.dtype == Dtype::working ? x.element_bytes : size_of(x.dtype);
  const auto shift = static_cast<std::uintptr_t>(before * x.stride[1]) * bytes;
  whole.data = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(x.data) - shift);
  if (x.low) whole.low = std::make_shared<StoredTensor>(among_all(*x.low, before));
  // A scale has one entry for every token, which moves along, or one for all of them.
  if (x.scale && x.scale->size(1) == x.size(1)) {
    whole.scale = std::make_shared<StoredTensor>(among_all(*x.scale, before));
  }
  return whole;
}

RowNotes notes_of(const NewTokens& tokens, const MaskOptions& mask) {
  RowNotes notes =
      tokens.x.notes ? *tokens.x.notes : RowNotes(place(tokens.x.size(1)), RowNote::as_stored);
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (mask.padding_segment && tokens.segments[i] == *mask.padding_segment)
      notes[i] = RowNote::blank;
  }
  return notes;
}

void for_each_call(const Schedule& schedule, const StoredTensor& x, const MaskInputs& mask,
                   const Visibility& seen, const RowNotes& notes,
                   const std::function<std::int64_t(std::int64_t)>& keys,
                   const std::function<void(const Call&)>& f) {
  const std::int64_t tokens = seen.tokens();
  for (std::int64_t b = 0; b < seen.batch(); ++b) {
    std::int64_t first = 0;
    while (first < tokens) {
      std::int64_t count = first == 0 && schedule.prefill > 0 ? schedule.prefill : schedule.step;
      count = count == 0 ? tokens - first : std::min(count, tokens - first);
      Call call{b, first, {}, {}, {}};
      call.tokens.x = at_rows(at_first(x, b), first, count);
      const auto from = notes.begin() + b * tokens + first;
      call.tokens.x.notes = std::make_shared<const RowNotes>(from, from + count);
      std::vector<std::int32_t> standing;
      for (std::int64_t s = first; s < first + count; ++s) {
        call.tokens.positions.push_back(static_cast<std::int32_t>(seen.position(b, s)));
        call.tokens.segments.push_back(static_cast<std::int32_t>(seen.segment(b, s)));
      }
      for (std::int64_t t = 0; t < seen.rows(); ++t) {
        if (seen.row_token(t) < first || seen.row_token(t) >= first + count) continue;
        call.rows.push_back(t);
        standing.push_back(static_cast<std::int32_t>(seen.row_token(t)));
      }
      call.mask.valid = cut_plane(mask.valid, b, call.rows, keys(first + count));
      call.mask.mask = cut_plane(mask.mask, b, call.rows, keys(first + count));
      call.mask.row_mask = cut_flags(mask.row_mask, b, call.rows);
      const auto held = std::make_shared<const std::vector<std::int32_t>>(std::move(standing));
      call.mask.row_index = list_of_integers(*held, "row_index");
      call.mask.row_index.owner = held;
      f(call);
      first += count;
    }
  }
}

void refuse_given(std::initializer_list<const StoredTensor*> given, const std::string& where) {
  for (const StoredTensor* tensor : given) {
    if (tensor->given())
      throw Error(tensor->name, "the tensor with " + where, "no given stage: calls make them");
  }
}

void check_calls(const Schedule& schedule, bool loss, const MaskOptions& mask) {
  const std::string where = schedule.prefill > 0 ? "schedule.prefill" : "schedule.step";
  if (loss)
    throw Error(where, "a call after another with option loss", "loss null: calls have no loss");
  if (!mask.causal)
    throw Error(where, "a call after another with mask.causal false", "a causal mask");
}

}  // namespace plumbline::layer
