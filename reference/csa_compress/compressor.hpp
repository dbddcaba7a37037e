// reference/csa_compress/compressor.hpp
//
// Pooling of tokens into blocks, for whoever has tokens: the operation csa_compress, the indexer and the layer of
// DeepSeek-V4, a server's step. Tokens come from a Source, a few at a time, so that their kv and gate may be stored,
// or projected on the way and never held together; blocks are made only where they are asked for.
// Guarantees: a block has the same bits whichever blocks are made beside it, under any schedule.step and any number
// of threads. Tokens that no chosen block reads are not asked for. Scratch of a thread: kv and gate of at most
// blocks_of_a_run + 2 blocks, two blocks under schedule.step.
// Errors: m < 1, eps < 0, norm_weight with norm false, boundary segments without segments; a prior that is half given,
// or given beside overlap false or grid document; a block of zeros under a norm with eps 0.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "reference/csa_compress/options.hpp"
#include "reference/operation/run.hpp"
#include "reference/rope/rotation.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::csa_compress {

// The blocks that the options ask for; m and boundary checked. `where` stands before the names of options in errors.
Blocks blocks_of(const Options& options, const MaskInputs& mask,
                 const std::string& where = "option ");

struct Parts {                                       // lanes·D is 2D, with overlap false D
  StoredTensor position_bias, norm_weight;           // [m, lanes·D], [D]; or not given
  StoredTensor prior_kv, prior_gate, prior_present;  // [B, m, 2D], [B]; or not given
};
// Parts that exclude each other or an option; before shapes are looked at.
void check_parts(const Parts& parts, const Options& options, const std::string& where = "option ");

template <class T> struct PartGradients {  // an absent part has none
  Array<T> position_bias, norm_weight, prior_kv, prior_gate;
};

template <class T> class Compressor {
 public:
  // Writes kv and gate of tokens [first, last) of batch b, lanes·D numbers each, side by side.
  using Source = std::function<void(std::int64_t b, std::int64_t first, std::int64_t last,
                                    std::span<T> kv, std::span<T> gate)>;
  // Takes their cotangents; a token comes at most once, tokens of one call from one shard of blocks().
  using Receiver =
      std::function<void(std::int64_t shard, std::int64_t b, std::int64_t first, std::int64_t last,
                         std::span<const T> dkv, std::span<const T> dgate)>;
  using Chosen = std::vector<char>;  // [B, N]

  // tokens: made with blocks_of(options, …). It and the parts must outlive the compressor. width is D.
  Compressor(const Visibility& tokens, const Parts& parts, const Options& options,
             std::int64_t width, const std::string& where = "option ");

  std::int64_t blocks() const { return tokens_.batch() * count_; }
  Chosen all() const { return Chosen(static_cast<std::size_t>(blocks()), 1); }
  // The chosen blocks of compressed [B, N, D].
  void make(const Run& run, const Source& source, const Chosen& chosen, Array<T>& compressed) const;
  // Sends dcompressed [B, N, D] of the chosen blocks back.
  void pull_back(const Run& run, const Source& source, const Chosen& chosen,
                 const Array<T>& dcompressed, const Receiver& receive,
                 PartGradients<T>& grad) const;

  // Marks every token that a chosen block reads, those of the block before it too.
  void mark_read(const Chosen& chosen, RowNotes& notes) const;

 private:
  enum class Before { nothing, prior, block };  // what stands in lane A
  struct Rows {                                 // tokens of one block
    std::span<const T> kv, gate;                // [m, lanes·D]
  };
  struct Held {  // tokens of blocks [first, …)
    std::int64_t first;
    Buffer<T> kv, gate;
  };
  struct Sums;  // gradients of the parts, in shards

  Before before(std::int64_t b, std::int64_t j) const;
  bool is_read(const Chosen& chosen, std::int64_t b, std::int64_t j) const;  // tokens of block j
  bool among(const Chosen& chosen, std::int64_t b, std::int64_t j) const {
    return j < count_ && chosen[static_cast<std::size_t>(b * count_ + j)] != 0;
  }
  std::size_t rows_size() const { return static_cast<std::size_t>(m_ * lanes_ * width_); }
  // f(first, last) over tokens of blocks [first, last) that stand side by side.
  void in_pieces(std::int64_t first, std::int64_t last,
                 const std::function<void(std::int64_t, std::int64_t, std::size_t)>& f) const;
  Held hold(const Source& source, std::int64_t b, std::int64_t first, std::int64_t last,
            bool lane_a) const;
  void fetch_prior(std::int64_t b, std::span<T> kv, std::span<T> gate) const;
  Rows rows(const Held& held, std::int64_t j) const;

  void make_stepwise(const Run& run, const Source& source, const Chosen& chosen,
                     Array<T>& compressed) const;
  void make_block(std::int64_t b, std::int64_t j, const Rows* a, const Rows& own,
                  std::span<T> compressed) const;
  void pull_run(const Source& source, const Chosen& chosen, const Array<T>& dcompressed,
                const Receiver& receive, std::int64_t shard, std::int64_t b, std::int64_t first,
                std::int64_t last, Sums& sums, PartGradients<T>& grad) const;
  // pooled [D]; weights [2m or m, D] unless empty: lane A's tokens, then the block's own.
  void pool(const Rows* a, const Rows& own, std::span<T> pooled, std::span<T> weights) const;
  T factor_of(std::int64_t b, std::int64_t j, std::span<const T> pooled) const;

  const Visibility& tokens_;
  const Parts& parts_;
  Grid grid_;
  Boundary boundary_;
  std::int64_t m_, width_, lanes_, count_;
  bool norm_;
  double eps_;
  std::vector<char> present_;  // [B]: the prior stands in lane A of the first block
  Buffer<Exact<T>> bias_, norm_weight_;
  std::optional<Rotation<T>> rotation_;
};

// kv and gate as they lie in memory, [B, S, lanes·D]; the tensors must outlive the source.
template <class T>
typename Compressor<T>::Source stored_tokens(const StoredTensor& kv, const StoredTensor& gate);

// Blocks that some real row sees, [B, N].
std::vector<char> seen_blocks(const Visibility& visibility);

}  // namespace plumbline::csa_compress
