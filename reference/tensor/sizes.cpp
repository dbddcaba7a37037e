#include "reference/tensor/sizes.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

#include "reference/error.hpp"

namespace plumbline {
namespace {

struct Term {  // factor · letter, or a bare number
  std::int64_t factor = 1;
  std::string letter;
};

std::vector<std::string> split_at(std::string_view text, char mark) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t to = std::min(text.find(mark, from), text.size());
    if (to > from) parts.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::vector<Term> parse(std::string_view axis) {
  std::vector<Term> terms;
  for (const std::string& part : split_at(axis, '+')) {
    std::size_t digits = 0;
    while (digits < part.size() && std::isdigit(static_cast<unsigned char>(part[digits])) != 0)
      ++digits;
    Term term;
    if (digits > 0) std::from_chars(part.data(), part.data() + digits, term.factor);
    term.letter = part.substr(digits);
    terms.push_back(term);
  }
  return terms;
}

// Batches, rows, keys, slots, parts and new tokens may be none; heads, widths and ranks may not.
bool may_be_empty(std::string_view letter) {
  constexpr std::string_view letters[] = {"B",   "T", "S", "N", "K", "k",  "N|k",
                                          "S|k", "n", "L", "P", "Q", "S%m"};
  return std::find(std::begin(letters), std::end(letters), letter) != std::end(letters);
}

}  // namespace

void Sizes::set(std::string_view letter, std::int64_t size, std::string why) {
  const auto found = sizes_.find(letter);
  const std::string name(letter);
  if (found == sizes_.end()) {
    sizes_.emplace(name, Size{size, std::move(why)});
  } else if (found->second.size != size) {
    throw Error(found->second.why, name + " = " + std::to_string(found->second.size),
                name + " = " + std::to_string(size) + " (" + why + ")");
  }
}

std::int64_t Sizes::operator[](std::string_view letter) const {
  const auto found = sizes_.find(letter);
  if (found == sizes_.end()) {
    throw Error("size " + std::string(letter), "nothing that sets it",
                "a tensor or option that does");
  }
  return found->second.size;
}

Shape Sizes::shape(std::string_view letters) const {
  Shape shape;
  for (const std::string& axis : split_at(letters, ' ')) {
    std::int64_t size = 0;
    for (const Term& term : parse(axis))
      size += term.factor * (term.letter.empty() ? 1 : (*this)[term.letter]);
    shape.push_back(size);
  }
  check_held(shape, letters);
  return shape;
}

// An output of these letters must fit a file and, unless it is empty, a large machine; whoever set the largest letter
// is named.
void Sizes::check_held(const Shape& shape, std::string_view letters) const {
  constexpr double most = 0x1p40, most_bytes = 0x1p60;
  double nonzero = 1, all = 1;
  for (const std::int64_t size : shape) {
    nonzero *= size == 0 ? 1 : static_cast<double>(size);
    all *= static_cast<double>(size);
  }
  if (all <= most && nonzero <= most_bytes / sizeof(double)) return;
  const Size* largest = nullptr;
  for (const std::string& axis : split_at(letters, ' ')) {
    for (const Term& term : parse(axis)) {
      const auto found = sizes_.find(term.letter);
      if (found != sizes_.end() && (largest == nullptr || found->second.size > largest->size))
        largest = &found->second;
    }
  }
  throw Error(largest == nullptr ? "shape" : largest->why,
              "sizes that make an output " + to_string(shape),
              "one that can be held: at most 2^40 numbers");
}

void Sizes::unify(const StoredTensor& tensor, std::string_view letters) {
  resolve({{&tensor, std::string(letters)}});
}

void Sizes::resolve(const std::vector<Named>& tensors) {
  for (const Named& named : tensors) {
    const std::size_t rank = split_at(named.letters, ' ').size();
    if (named.tensor->shape.size() != rank) {
      throw Error(named.tensor->name,
                  "rank " + std::to_string(named.tensor->shape.size()) + ", shape " +
                      to_string(named.tensor->shape),
                  rank == 0 ? "a scalar []" : "[" + named.letters + "]");
    }
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const Named& named : tensors) progress = step(named, false) || progress;
  }
  for (const Named& named : tensors) step(named, true);
  for (const auto& [letter, size] : sizes_) {
    if (size.size == 0 && !may_be_empty(letter))
      throw Error(size.why, letter + " = 0", letter + " >= 1");
  }
}

// One pass over a tensor: letters that its axes determine are set; the last pass checks those that were.
bool Sizes::step(const Named& named, bool last) {
  bool progress = false;
  const std::vector<std::string> axes = split_at(named.letters, ' ');
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::int64_t rest = named.tensor->shape[axis];
    const Term* unknown = nullptr;
    int unknowns = 0;
    const std::vector<Term> terms = parse(axes[axis]);
    for (const Term& term : terms) {
      if (!term.letter.empty() && !known(term.letter)) {
        unknown = &term;
        ++unknowns;
      } else {
        rest -= term.factor * (term.letter.empty() ? 1 : (*this)[term.letter]);
      }
    }
    const auto disagree = [&](const std::string& expected) {
      throw Error(named.tensor->name, "shape " + to_string(named.tensor->shape),
                  "[" + named.letters + "] with " + expected);
    };
    if (unknowns == 1) {
      if (rest < 0 || rest % unknown->factor != 0) {
        disagree(axes[axis] + " = " + std::to_string(named.tensor->shape[axis]) +
                 " split into whole parts");
      }
      set(unknown->letter, rest / unknown->factor, named.tensor->name);
      progress = true;
    } else if (unknowns == 0 && rest != 0 && last) {
      std::string why;
      for (const Term& term : terms) {
        if (term.letter.empty()) continue;
        if (!why.empty()) why += ", ";
        const Size& size = sizes_.find(term.letter)->second;
        why += term.letter + " = " + std::to_string(size.size) + " as in " + size.why;
      }
      disagree(why.empty() ? axes[axis] : why);
    }
  }
  return progress;
}

}  // namespace plumbline
