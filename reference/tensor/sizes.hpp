// reference/tensor/sizes.hpp
//
// Shapes are strings of letters, "B T H D", written beside each tensor in an operation's fields. Here the letters
// of all its tensors are unified: each letter has one size, whoever sets it first; a tensor that disagrees is an
// Error naming it, what was found and what was expected. A term may be a number, a letter, a multiple ("2D") or a
// sum ("dn+dr").
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

class Sizes {
 public:
  // A size known beforehand (an option, a grid). Error, naming whoever said otherwise, when it is taken.
  void set(std::string_view letter, std::int64_t size, std::string why);
  void unify(const StoredTensor& tensor, std::string_view letters);
  bool known(std::string_view letter) const { return sizes_.find(letter) != sizes_.end(); }
  std::int64_t operator[](std::string_view letter) const;
  std::int64_t or_else(std::string_view letter, std::int64_t size) const {
    return known(letter) ? (*this)[letter] : size;
  }
  Shape shape(std::string_view letters) const;  // every letter known

  // Unifies every given tensor of an operation's inputs, in the order of its fields.
  template <class Inputs> void unify_all(Inputs& inputs) {
    Collector collector{{}};
    inputs.fields(collector);
    resolve(collector.tensors);
  }

 private:
  void check_held(const Shape& shape, std::string_view letters) const;
  struct Size {
    std::int64_t size;
    std::string why;
  };
  struct Named {
    const StoredTensor* tensor;
    std::string letters;
  };
  struct Collector {
    std::vector<Named> tensors;
    void add(const StoredTensor& t, std::string_view letters) {
      if (t.given()) tensors.push_back({&t, std::string(letters)});
    }
    void required(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void optional(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void differentiable(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void required_differentiable(std::string_view, StoredTensor& t, std::string_view s,
                                 std::string_view) {
      add(t, s);
    }
    void integers(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void booleans(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void given(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void given_integers(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
    void given_booleans(std::string_view, StoredTensor& t, std::string_view s, std::string_view) {
      add(t, s);
    }
  };
  void resolve(const std::vector<Named>& tensors);
  bool step(const Named& named, bool last);

  std::map<std::string, Size, std::less<>> sizes_;
};

}  // namespace plumbline
