// tests/mutants/sees.hpp: wrong orders of rows and keys.
#pragma once
#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {

// Tokens up to `late` behind the row's.
inline Sees tokens_until(std::int64_t late) {
  return [=](const Stand& stand, std::int64_t, std::int64_t t, std::int64_t s) {
    return s <= stand.token(t) + late;
  };
}

// Blocks that are complete `late` tokens behind the row's.
inline Sees blocks_until(std::int64_t late) {
  return [=](const Stand& stand, std::int64_t b, std::int64_t t, std::int64_t j) {
    return stand.position(b, j * stand.m) + stand.m <= stand.position(b, stand.token(t)) + 1 + late;
  };
}

// Blocks belong to the document of their last token, and are complete where that stands. Documents are no longer told,
// so nothing else tests them.
inline Change straddling_blocks_seen() {
  return [](Problem& problem, const Scene& scene) {
    const auto of_last_token = [](const Stand& stand, std::int64_t b, std::int64_t t,
                                  std::int64_t j) {
      const std::int64_t last = (j + 1) * stand.m - 1, row = stand.token(t);
      return stand.segment(b, last) == stand.segment(b, row) && last <= row;
    };
    order(of_last_token)(problem, scene);
    problem.options["mask"]["documents"] = false;
  };
}

// Everything is one document: order goes by token numbers.
inline Change documents_ignored() { return without({"segment_ids", "positions", "cu_seqlens"}); }

// Keys behind the last full chunk are never looked at.
inline Change last_keys_dropped(std::int64_t chunk) {
  return [=](Problem& problem, const Scene& scene) {
    const bool blocks = problem.options.contains("m");
    order([=](const Stand& stand, std::int64_t b, std::int64_t t, std::int64_t k) {
      return k < stand.keys / chunk * chunk &&
             (blocks ? blocks_until(0) : tokens_until(0))(stand, b, t, k);
    })(problem, scene);
  };
}

}  // namespace plumbline::mutants
