//===- Code.h - instructions of a kernel, ready to run -----------------------------===//
//
// A warp's registers lie one behind another, 32 lanes each; constants and special registers
// likewise, so that every operand is an array of 32 numbers. An instruction runs for the lanes of a
// mask.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_CODE_H
#define FSDP_EMULATOR_PTX_CODE_H

#include "Text.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace emulator::ptx {

class Block;
class Warp;
struct Instruction;
using Lanes = std::uint32_t;
constexpr Lanes kAllLanes = ~Lanes(0);

/// Where the 32 numbers of an operand lie.
struct Ref {
  static constexpr std::uint8_t kNone = 255;
  std::uint32_t offset = 0;
  std::uint8_t base = 0;      ///< 0: registers of the warp; 1: constants of the function
  std::uint8_t width = kNone; ///< bytes of a number; 0: a predicate, whose number is `offset`
};

/// How the scheduler treats an instruction.
enum class Kind : std::uint8_t {
  Plain,  ///< each lane for itself
  Masked, ///< lanes meet: those of the mask
  Warp,   ///< all lanes meet
  Branch, ///< to `target`
  Exit,
  Barrier, ///< of the block; with a result d: whether a holds in a thread
};

struct Instruction {
  using Run = void (*)(Warp &, const Instruction &, Lanes);
  Run run = nullptr;
  Kind kind = Kind::Plain;
  bool isGuardNegated = false;
  int guard = -1;                     ///< predicate, or -1
  Ref d, a, b, c, e, mask, q;         ///< q: a predicate that is a second result
  std::int64_t offset = 0;            ///< of the address in `a`
  std::int64_t number = 0;            ///< an operand that is one
  std::uint32_t first = 0, count = 0; ///< in Code::lists: registers of vectors
  std::uint32_t target = 0;
  Space space = Space::Generic;
  const Statement *statement = nullptr;
};

/// A kernel.
struct Code {
  const Module *module = nullptr;
  const Function *function = nullptr;
  std::vector<Instruction> instructions;
  std::vector<Ref> lists;
  std::size_t registerBytes = 0, predicates = 0;
  std::vector<char> constants; ///< base 1
  std::size_t localBytes = 0, parameterBytes = 0;
  std::vector<std::uint8_t>
      owners; ///< of each byte of static shared memory: number of the variable, 0 for none
  std::size_t dynamicOffset = 0; ///< where dynamic shared memory begins
  static constexpr std::uint8_t kDynamic = 255;
  /// Special registers that the kernel reads, by their number, and where they lie.
  std::map<std::size_t, Ref> specials;
};

/// A register such as %tid.x, of 32 bits.
struct Special {
  const char *name;
  std::uint32_t (*valueOf)(const Block &block, unsigned thread);
};
const std::vector<Special> &specialRegisters();

constexpr std::uint32_t kNever = 0, kAlways = 1; ///< the first predicates of a warp

/// Gives `function` meaning; throws Refusal for what the interpreter does not have.
Code decode(Module &module, const Function &function);

/// "FILE:LINE (PTX line N: ...)": FILE of the source where nvcc wrote lines, else the PTX alone.
std::string placeOf(const Module &module, const Statement &statement);

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_CODE_H
