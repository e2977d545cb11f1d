//===- Decode.h - gives statements their meaning -----------------------------------===//
//
// A family of instructions has a function `bool decodeX(Decoder &)`, false where the statement is
// none of it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_DECODE_H
#define FSDP_EMULATOR_PTX_DECODE_H

#include "Code.h"

#include <array>
#include <map>
#include <string>

namespace emulator::ptx {

class Decoder {
public:
  Decoder(Module &module, const Function &function);
  Code run();

  /// The statement that is decoded, and what becomes of it.
  const Statement *statement = nullptr;
  Instruction in;

  /// Its operand; refuses where there are fewer.
  const Operand &operand(std::size_t number);
  std::size_t operands() const { return statement->operands.size(); }
  /// A register, or nothing for `_`; `width`: bytes that it must have, 0 for any.
  Ref result(const Operand &operand, unsigned width);
  /// A register or 32 times a constant.
  Ref source(const Operand &operand, unsigned width);
  Ref predicate(const Operand &operand);
  bool isPredicate(const Operand &operand) const;
  /// [register + number] or [variable + number]: the register in `in.a`, the number in `in.offset`.
  void address(const Operand &operand, Space space);
  /// The parts of a vector, or one operand, to `in.first` and `in.count`; parts: how many it must
  /// have, 0 for any.
  void list(const Operand &operand, unsigned width, bool isResult, unsigned parts = 0);
  /// 32 times `bits`.
  Ref constant(std::uint64_t bits, unsigned width);
  /// An operand that must be a number.
  std::int64_t immediate(const Operand &operand);
  /// The operands d, a, b, c of these widths; 0: the instruction lacks the operand.
  void operandsOf(const std::array<unsigned, 4> &widths);
  /// The place of a word, or of the first suffix that is there, in a list; -1 without.
  static int optionOf(const std::string &word, const std::string &words);
  int optionAmong(const std::string &words) const;
  [[noreturn]] void refuse(const std::string &what) const;
  /// Of a state space in the statement's suffixes.
  Space space() const;
  Code code;

private:
  using Places = std::map<std::string, std::pair<Space, std::uint64_t>>; ///< of variables, by name
  /// A function that is decoded: the kernel, or one that it calls, whose instructions come where
  /// the call is.
  struct Frame {
    const Function *function;
    Frame *caller;
    std::vector<Ref> registers;
    Places variables;
    std::vector<std::uint32_t> starts; ///< first instruction of each statement
    std::vector<std::pair<std::size_t, std::string>>
        jumps; ///< instructions, and the labels that they go to
    std::vector<std::size_t> returns;
  };
  void layOutShared();
  void placeVariables(Frame &frame);
  void decodeBody(Frame &frame);
  bool decodeControl();
  void decodeCall();
  void decodeBarrier();
  bool decodeRow();
  Ref newRegister(unsigned width);
  Ref registerOf(const Operand &operand, unsigned width, bool mayBeWider) const;
  std::pair<Space, std::uint64_t> placeOf(const std::string &variable) const;

  Module &module;
  const Function &function;
  Frame *frame = nullptr;
  std::map<std::pair<std::uint64_t, unsigned>, Ref> known; ///< constants
  Places shared;
};

bool decodeCarries(Decoder &decoder);
bool decodeBits(Decoder &decoder);
bool decodeComparisons(Decoder &decoder);
bool decodeConversions(Decoder &decoder);
bool decodeMemory(Decoder &decoder);
bool decodeWarpFunctions(Decoder &decoder);
bool decodeMatrices(Decoder &decoder);
bool decodeProducts(Decoder &decoder);

/// What runs, and the bytes of its operands d, a, b, c; 0: it lacks the operand.
struct Row {
  Instruction::Run run;
  std::array<unsigned, 4> widths;
};
/// By the spelling, of arithmetic without `.rn`.
using Rows = std::map<std::string, Row>;
void addArithmetic(Rows &rows);
void addApproximations(Rows &rows);
void addBits(Rows &rows);

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_DECODE_H
