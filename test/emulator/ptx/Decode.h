//===- Decode.h - gives statements their meaning -----------------------------------===//
//
// Most instructions are rows of a table, found by their spelling.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_DECODE_H
#define FSDP_EMULATOR_PTX_DECODE_H

#include "Code.h"

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace emulator::ptx {

/// What runs, and the operands as they are written, a word for each:
///   dN  a result of N bytes, aN bN cN eN mN: registers, numbers or variables, for the member of
///       Instruction with that letter (m: the mask); N = 0: a predicate
///   [   an address, in `a` and `offset`
///   DNxM, SNxM  M registers of N bytes for results or sources, in the list; without xM any number
///   i   a number, in `number`
///   0, 1  this number and no other
struct Row {
  Instruction::Run run;
  const char *operands;
  Kind kind = Kind::Plain;
};
/// By the spelling without `.rn` and state spaces.
class Rows {
public:
  /// The spelling is all parts together.
  void add(std::initializer_list<std::string_view> parts, Row row);
  const Row *find(const std::string &spelling) const;

private:
  std::map<std::string, Row> rows;
};
void addAccesses(Rows &rows);
void addApproximations(Rows &rows);
void addArithmetic(Rows &rows);
void addBits(Rows &rows);
void addComparisons(Rows &rows);
void addConversions(Rows &rows);
void addMatrices(Rows &rows);
void addProducts(Rows &rows);
void addWarpFunctions(Rows &rows);

class Decoder {
public:
  Decoder(Module &module, const Function &function) : module(module), function(function) {}
  Code run();

  /// The statement that is decoded, and what becomes of it.
  const Statement *statement = nullptr;
  Instruction in;
  /// Takes its operands, which must be these of Row::operands.
  void take(const std::string &words);
  /// Refuses where there are fewer.
  const Operand &operand(std::size_t number) const;
  [[noreturn]] void refuse(const std::string &what) const;
  Code code;

private:
  using Place = std::pair<Space, std::uint64_t>;
  /// A function that is decoded: the kernel, or one that it calls, whose instructions come where
  /// the call is.
  struct Frame {
    const Function *function;
    Frame *caller;
    std::vector<Ref> registers = {};
    std::map<std::string, Place> variables = {};
    std::vector<std::uint32_t> starts = {}; ///< first instruction of each statement
    std::vector<std::pair<std::size_t, std::size_t>> jumps = {}; ///< instructions, to statements
  };
  void decodeBody(Frame &frame);
  bool decodeControl();
  void decodeCall();
  bool decodeRow();
  void take(const std::string &word, const Operand &operand);
  Ref newRegister(unsigned width);
  Ref registerOf(const Operand &operand, unsigned width, bool mayBeWider) const;
  Ref source(const Operand &operand, unsigned width);
  Ref constant(std::uint64_t bits, unsigned width);
  void takeAddress(const Operand &operand);
  Place placeOf(const std::string &variable);
  std::uint64_t placeShared(const Variable &variable);

  Module &module;
  const Function &function;
  Frame *frame = nullptr;
  std::map<std::pair<std::uint64_t, unsigned>, Ref> known; ///< constants
  std::map<std::string, Place> shared;                     ///< variables of shared memory
};

bool decodeAccess(Decoder &decoder);     ///< ld and st
bool decodeVectorMove(Decoder &decoder); ///< mov of the parts of a number
bool decodeProduct(Decoder &decoder);    ///< wgmma.mma_async

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_DECODE_H
