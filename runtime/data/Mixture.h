//===- Mixture.h - weighted draws from several sources ----------*- C++ -*-===//
//
// A run with several sources of samples draws from one of them at each position. Two functions of
// (weights, seed) alone define the draws, so that they are the same on any number of ranks, and so
// that a run which continues at a position need not repeat the positions before it.
//
// How often: of the first n positions, source 0 has floor(n w0 / (w0 + w1 + ...)) draws; of the
// others, floor(that many w1 / (w1 + w2 + ...)) are of source 1; and so on. No such number falls as
// n grows, together they are n, and each differs from n times the weight by less than the number of
// sources. They hold where a block of kBlock positions begins.
//
// Where: within a block the draws are in a random order.
//
// A block is small. So any number of consecutive positions, such as a batch, has nearly the share
// of each source given by its weight, and the block of a position is computed in microseconds, with
// no state between two of them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DATA_MIXTURE_H
#define FSDP_RUNTIME_DATA_MIXTURE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fsdp::rt {

class Mixture {
public:
  static constexpr std::size_t kBlock = 64;

  /// `weights`: of each source, finite and above 0; only their ratios matter. They are rounded to
  /// multiples of 2^-40 of the largest, and to at least one.
  Mixture(const std::vector<double> &weights, std::uint64_t seed);

  std::size_t sources() const { return units.size(); }

  struct Draw {
    std::size_t source;
    std::int64_t index; ///< number of draws of that source at earlier positions
  };
  /// The draws of a block; callers that request consecutive positions keep one.
  struct Block {
    std::int64_t number = -1;
    Draw draws[kBlock];
  };

  /// The draw at `position`, from 0. Makes `block` the one that has it.
  Draw at(std::int64_t position, Block &block) const;
  Draw at(std::int64_t position) const {
    Block block;
    return at(position, block);
  }

  /// The number of draws of each source at the positions below `position`.
  std::vector<std::int64_t> drawsBefore(std::int64_t position) const;

private:
  void fill(Block &block) const;

  std::vector<std::uint64_t> units; ///< weight of each source
  std::vector<std::uint64_t> tails; ///< sum of the weights from each source on
  std::uint64_t seed;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_MIXTURE_H
