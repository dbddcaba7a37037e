// reference/registry/tensor_binding.hpp
//
// Tensors of a case into an operation's inputs struct, by name, through its fields(). Errors: a required tensor
// that is missing, one the operation does not have, a dtype of the wrong kind.
#pragma once
#include "reference/error.hpp"
#include "reference/registry/operation.hpp"

namespace plumbline {

enum class From { in, given, cot };

class TensorBinder {
 public:
  TensorBinder(const Problem& problem, NonFinite nonfinite)
      : problem_(problem), nonfinite_(nonfinite) {}

  void required(std::string_view name, StoredTensor& t, std::string_view letters,
                std::string_view) {
    bind(From::in, name, t, Kind::real);
    if (!t.given())
      throw Error("in." + std::string(name), "nothing",
                  "the tensor [" + std::string(letters) + "]");
  }
  void required_differentiable(std::string_view name, StoredTensor& t, std::string_view s,
                               std::string_view doc) {
    required(name, t, s, doc);
  }
  void optional(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(cotangents ? From::cot : From::in, name, t, Kind::real);
  }
  void differentiable(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::in, name, t, Kind::real);
  }
  void integers(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::in, name, t, Kind::integer);
  }
  void booleans(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::in, name, t, Kind::boolean);
  }
  void given(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::given, name, t, Kind::real);
  }
  void given_integers(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::given, name, t, Kind::integer);
  }
  void given_booleans(std::string_view name, StoredTensor& t, std::string_view, std::string_view) {
    bind(From::given, name, t, Kind::boolean);
  }

  bool cotangents = false;
  // Error for a tensor of the problem that no field took. `also`: names taken care of elsewhere.
  void finish(From from, const std::vector<std::string>& also) const;
  static void check_kind(const StoredTensor& tensor, std::string_view name, Kind kind);

 private:
  void bind(From from, std::string_view name, StoredTensor& tensor, Kind kind);

  const Problem& problem_;
  NonFinite nonfinite_;
  std::vector<std::string> taken_[3];
};

// The same fields as a list.
class TensorLister {
 public:
  std::vector<TensorInfo> in, given_tensors;
  void required(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::real, true, false});
  }
  void required_differentiable(std::string_view n, StoredTensor&, std::string_view s,
                               std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::real, true, true});
  }
  void optional(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::real, false, false});
  }
  void differentiable(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::real, false, true});
  }
  void integers(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::integer, false, false});
  }
  void booleans(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    in.push_back({std::string(n), std::string(s), std::string(d), Kind::boolean, false, false});
  }
  void given(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    add_given(n, s, d, Kind::real);
  }
  void given_integers(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    add_given(n, s, d, Kind::integer);
  }
  void given_booleans(std::string_view n, StoredTensor&, std::string_view s, std::string_view d) {
    add_given(n, s, d, Kind::boolean);
  }

 private:
  void add_given(std::string_view n, std::string_view s, std::string_view d, Kind kind) {
    given_tensors.push_back({std::string(n), std::string(s), std::string(d), kind, false, false});
  }
};

}  // namespace plumbline
