// reference/layer/calls.hpp
//
// A layer that sees its tokens a few at a time: cutting a case into calls, and putting the calls' outputs where they
// belong. What a call keeps of a sequence is each layer's own.
// Guarantees: a call is handed only its own tokens and rows; planes over keys are cut to the keys there are.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/mask/mask.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::layer {

// New tokens of one sequence: x [1, L, E] and where they stand.
struct NewTokens {
  StoredTensor x;
  std::vector<std::int32_t> positions, segments;
};

// Integers as a tensor [1, n]; the vector must outlive it.
StoredTensor row_of_integers(const std::vector<std::int32_t>& values, const char* name);
// The same as [n].
StoredTensor list_of_integers(const std::vector<std::int32_t>& values, const char* name);
// x of the new tokens where they stand among all; those before them are blank and their storage is not there.
StoredTensor among_all(const StoredTensor& x, std::int64_t before);
// The notes of new tokens; padding is blank.
RowNotes notes_of(const NewTokens& tokens, const MaskOptions& mask);
// The first `length` entries of the second axis of a view [1, P, …].
template <class T>
StoredTensor head_of(const Array<T>& array, std::int64_t length, const char* name) {
  StoredTensor tensor = view(array, name);
  tensor.shape[1] = length;
  return tensor;
}

// One call of those a schedule asks for: tokens [first, first + L) of sequence b, the rows that stand there.
struct Call {
  std::int64_t b, first;
  NewTokens tokens;
  std::vector<std::int64_t> rows;  // t of each
  MaskInputs mask;                 // row_index, valid, mask and row_mask of the rows
};
// The first `prefill` tokens of a sequence in one call, then `step` at a time. notes: of x, over [B, S].
// keys(n): how many keys the planes of the mask have after n tokens.
void for_each_call(const Schedule& schedule, const StoredTensor& x, const MaskInputs& mask,
                   const Visibility& seen, const RowNotes& notes,
                   const std::function<std::int64_t(std::int64_t)>& keys,
                   const std::function<void(const Call&)>& f);

// Where the outputs of a call belong: row i of its rows at rows[i] of sequence b; of its tokens those from `from` at
// `first` onwards; blocks at their own numbers.
struct Target {
  std::int64_t b;
  std::span<const std::int64_t> rows;
  std::int64_t first, from;
};

namespace detail {
// The arrays of an Outputs by name, so that two of them can be walked side by side.
template <class T> struct ByName {
  std::map<std::string, Array<T>*, std::less<>> real;
  std::map<std::string, Array<std::int32_t>*, std::less<>> integers;
  std::map<std::string, Array<std::uint8_t>*, std::less<>> flags;
  std::map<std::string, std::string, std::less<>> letters;
  void take(std::string_view n, Array<T>& a) { real[std::string(n)] = &a; }
  void take(std::string_view n, Array<std::int32_t>& a) { integers[std::string(n)] = &a; }
  void take(std::string_view n, Array<std::uint8_t>& a) { flags[std::string(n)] = &a; }
  template <class U>
  void operator()(std::string_view n, Array<U>& a, std::string_view l, std::string_view) {
    take(n, a);
    letters[std::string(n)] = std::string(l);
  }
  template <class U>
  void on_request(std::string_view n, Array<U>& a, std::string_view l, std::string_view d) {
    (*this)(n, a, l, d);
  }
};

template <class U> void place_array(const Array<U>& part, Array<U>& whole, std::string_view letters,
                                    const Target& target) {
  if (!part.given() || !whole.given() || letters.empty()) return;
  const auto width =
      [](const Array<U>& array) {  // a plane over keys may be narrower than the whole one
        std::int64_t product = 1;
        for (std::size_t axis = 2; axis < array.shape.size(); ++axis) product *= array.shape[axis];
        return product;
      };
  const auto copy = [&](std::int64_t source, std::int64_t to) {
    const auto values = part.row({0, source}, width(part));
    std::copy(values.begin(), values.end(), whole.row({target.b, to}, width(whole)).begin());
  };
  if (letters.starts_with("B T")) {
    for (std::size_t i = 0; i < target.rows.size(); ++i)
      copy(static_cast<std::int64_t>(i), target.rows[i]);
  } else if (letters.starts_with("B N")) {
    for (std::int64_t j = 0; j < part.shape[1]; ++j) copy(j, j);
  } else {
    for (std::int64_t s = target.from; s < part.shape[1]; ++s)
      copy(s, target.first + s - target.from);
  }
}
}  // namespace detail

// Copies a call's outputs of one sequence into those of all calls.
template <class T, class Outputs>
void place_outputs(Outputs& part, Outputs& whole, const Target& target) {
  detail::ByName<T> source, to;
  part.fields(source);
  whole.fields(to);
  const auto all = [&](auto& sources, auto& targets) {
    for (auto& [name, array] : sources)
      detail::place_array(*array, *targets[name], source.letters[name], target);
  };
  all(source.real, to.real);
  all(source.integers, to.integers);
  all(source.flags, to.flags);
}

// Inputs of a layer that a call of a server does not take.
inline bool refused_in_calls(std::string_view input) {
  return input == "valid" || input == "row_mask" || input == "mask" || input == "row_index" ||
         input == "cu_seqlens";
}
// No given stage goes with calls.
void refuse_given(std::initializer_list<const StoredTensor*> given, const std::string& where);
// What calls after one another cannot have: a loss, keys that come later.
void check_calls(const Schedule& schedule, bool loss, const MaskOptions& mask);

}  // namespace plumbline::layer
