// reference/indexer/cotangent.hpp: a cotangent of a whole output, zeros where there is none.
#pragma once
#include "reference/linear/rows.hpp"

namespace plumbline::indexer {

template <class T> Array<T> whole(const StoredTensor& cotangent, const Shape& shape) {
  Array<T> array(shape);
  if (cotangent.given())
    fetch_rows<T>(cotangent, 0, row_count(cotangent), std::span<T>(array.values));
  return array;
}

}  // namespace plumbline::indexer
