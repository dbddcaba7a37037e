// tests/mutants/edits.hpp: what mutants are made of: changes of problems and of results.
#pragma once
#include <initializer_list>

#include "tests/mutants/mutants.hpp"

namespace plumbline::mutants {

// A tensor as numbers, whatever its kind.
struct Numbers {
  Shape shape;
  std::vector<double> at;
  std::size_t place(std::initializer_list<std::int64_t> index) const;
  double& operator()(std::initializer_list<std::int64_t> index) { return at[place(index)]; }
  double operator()(std::initializer_list<std::int64_t> index) const { return at[place(index)]; }
  std::int64_t size(std::size_t axis) const { return shape[axis]; }
  // The entry `from` of an axis in the place of `to`, everywhere.
  void copy(std::size_t axis, std::int64_t from, std::int64_t to);
  // Entries of an axis in another order: entry i is what stood at order(i).
  void reorder(std::size_t axis, const std::function<std::int64_t(std::int64_t)>& order);
  void fill(std::size_t axis, std::int64_t entry, double value);
  void cut(std::size_t axis, std::int64_t count);  // the first entries of an axis
  void each(const std::function<double(double)>& f);
};
Numbers numbers_of(const StoredTensor& tensor);
Numbers numbers_of(const Value& value);
void put(Tensors& to, const std::string& name, const Numbers& numbers, Dtype dtype = Dtype::f64);

using Edit = std::function<void(Numbers&)>;
using SceneEdit = std::function<void(Numbers&, const Scene&)>;

// Changes of a problem. What is not there is left alone.
Change all(std::vector<Change> changes);
Change without(std::vector<std::string> names);
Change option(const std::string& pointer, const Json& value);  // "/mask/causal"
Change input(const std::string& name, const Edit& edit);
Change integers(const std::string& name, const Edit& edit);
Change cotangent(const std::string& name, const Edit& edit);
Change given(const std::string& output,
             const Edit& edit);  // the correct output, edited, given to the rest

// Where rows and keys stand.
struct Stand {
  std::int64_t batches = 0, rows = 0, tokens = 0, keys = 0, m = 0;
  std::optional<Numbers> positions, segments;
  std::int64_t token(std::int64_t row) const { return row + tokens - rows; }
  std::int64_t position(std::int64_t b, std::int64_t s) const;
  std::int64_t segment(std::int64_t b, std::int64_t s) const;
};
Stand stand_of(const Problem& problem);
using Sees = std::function<bool(const Stand&, std::int64_t b, std::int64_t t, std::int64_t key)>;
// The order test is replaced by `sees`; documents, validity and windows stay.
Change order(const Sees& sees);
// Rows that see nothing see every key of theirs.
Change empty_rows_see_all();

// Changes of a result. What they write is rounded to f32.
Spoil all(std::vector<Spoil> spoils);
Spoil output(const std::string& name, const SceneEdit& edit);
Spoil gradient(const std::string& name, const SceneEdit& edit);
Spoil output_times(const std::string& name, double factor);
Spoil gradient_times(const std::string& name, double factor);
Spoil only_outputs(std::vector<std::string> names);    // everything else is as it should be
Spoil only_gradients(std::vector<std::string> names);  // likewise
Spoil right_outputs(std::vector<std::string> names);   // these are as they should be
void set_output(Result& result, const std::string& name, const Numbers& numbers);

}  // namespace plumbline::mutants
