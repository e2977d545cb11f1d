//===- Decode.h - gives statements their meaning -----------------------------------===//
//
// A family of instructions has a function `bool decodeX(Decoder &)`, false where the statement is
// none of it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_DECODE_H
#define FSDP_EMULATOR_PTX_DECODE_H

#include "Code.h"

#include <map>
#include <string>

namespace emulator::ptx {

class Decoder {
public:
  Decoder(const Module &module, const Function &function);
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
  /// The parts of a vector, or one operand, to `in.first` and `in.count`.
  void list(const Operand &operand, unsigned width, bool isResult);
  /// 32 times `bits`.
  Ref constant(std::uint64_t bits, unsigned width);
  /// An operand that must be a number.
  std::int64_t immediate(const Operand &operand);
  /// The operands d, a, b, c of these widths; 0: the instruction lacks the operand.
  void operandsOf(unsigned d, unsigned a, unsigned b = 0, unsigned c = 0);
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
  void addRegisters(Frame &frame);
  void placeVariables(Frame &frame);
  void decodeBody(Frame &frame);
  bool decodeControl();
  void decodeCall();
  void decodeBarrier();
  std::pair<Space, std::uint64_t> placeOf(const std::string &variable) const;

  const Module &module;
  const Function &function;
  Frame *frame = nullptr;
  std::map<std::pair<std::uint64_t, unsigned>, Ref> known; ///< constants
  Places shared;
};

bool decodeArithmetic(Decoder &decoder);
bool decodeApproximations(Decoder &decoder);
bool decodeCarries(Decoder &decoder);
bool decodeBits(Decoder &decoder);
bool decodeComparisons(Decoder &decoder);
bool decodeConversions(Decoder &decoder);
bool decodeMemory(Decoder &decoder);
bool decodeWarpFunctions(Decoder &decoder);
bool decodeMatrices(Decoder &decoder);
bool decodeProducts(Decoder &decoder);

/// A row of a table of instructions: what runs, and the widths of its operands.
struct Row {
  Instruction::Run run;
  unsigned d, a, b, c;
};

// Functors of one, two or three numbers as rows of a table.
template <class D, class A, class F> void runOne(Warp &warp, const Instruction &in, Lanes lanes);
template <class D, class A, class B, class F>
void runTwo(Warp &warp, const Instruction &in, Lanes lanes);
template <class D, class A, class B, class C, class F>
void runThree(Warp &warp, const Instruction &in, Lanes lanes);

template <class F, class D, class A> Row one() {
  return {runOne<D, A, F>, sizeof(D), sizeof(A), 0, 0};
}
template <class F, class D, class A, class B> Row two() {
  return {runTwo<D, A, B, F>, sizeof(D), sizeof(A), sizeof(B), 0};
}
template <class F, class D, class A, class B, class C> Row three() {
  return {runThree<D, A, B, C, F>, sizeof(D), sizeof(A), sizeof(B), sizeof(C)};
}

/// The row with the statement's spelling without the suffixes in `ignored`, applied.
bool decodeByTable(Decoder &decoder, const std::map<std::string, Row> &table,
                   std::initializer_list<const char *> ignored);

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_DECODE_H
