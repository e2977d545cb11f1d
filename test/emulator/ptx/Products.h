//===- Products.h - wgmma of one warp ------------------------------------------------===//
//
// A product runs in the background until its group is waited for (PTX ISA, "Asynchronous warpgroup
// level matrix multiply-accumulate instructions"). Its result is computed at the start; until the
// wait
// - its registers may be moved and be operands of further products, and used for nothing else: nvcc
//   copies them between products, which ptxas makes the same registers;
// - the shared memory and the registers that it reads keep what they had.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_PRODUCTS_H
#define FSDP_EMULATOR_PTX_PRODUCTS_H

#include "Code.h"

#include <cstdint>
#include <map>
#include <vector>

namespace emulator::ptx {

struct Products {
  struct Read {
    const char *at; ///< 16 bytes
    unsigned lane;
    std::uint64_t had[2];
  };
  struct Product {
    const Instruction *instruction;
    std::vector<Read> reads;
    std::vector<std::uint32_t> registers; ///< of operand a, 4 times 32, where it is in registers
  };
  bool isBegun = false;     ///< wgmma.fence since the last wait
  std::uint64_t issued = 0; ///< a number of all that were started
  std::vector<Product> running;
  std::vector<std::size_t> groups; ///< where each ends in `running`
  /// Offsets of registers that hold results of running products, with the last product's number.
  std::map<std::uint32_t, std::uint64_t> results;
  std::uint64_t started = 0, ended = 0;
};

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_PRODUCTS_H
