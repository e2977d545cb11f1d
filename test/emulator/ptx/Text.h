//===- Text.h - a module of PTX as it is written ---------------------------------===//
//
// The parser resolves the names of registers to numbers, and keeps everything else as text:
// Decode.cpp gives instructions their meaning.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_TEXT_H
#define FSDP_EMULATOR_PTX_TEXT_H

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace emulator::ptx {

/// Text that is not PTX, or an instruction that the interpreter does not have: "FILE:LINE: what".
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Space : std::uint8_t { Generic, Global, Shared, Local, Constant, Parameter };

/// A declared variable: a parameter, or memory.
struct Variable {
  std::string name;
  Space space = Space::Generic;
  std::uint64_t bytes = 0, alignment = 1;
  std::uint64_t offset = 0;   ///< of a parameter
  bool isExternal = false;    ///< shared memory whose size the launch says
  std::vector<char> contents; ///< at the start, of global and constant memory
};

struct Operand {
  enum Kind { Reg, Number, Symbol, Address, Vector } kind = Symbol;
  int reg = -1;               ///< of Reg, and of an Address with one
  std::string name;           ///< of Reg and Symbol, and of an Address with one
  std::int64_t number = 0;    ///< bits of a Number, offset of an Address
  std::vector<Operand> parts; ///< of a Vector; of a Reg `a|b`, the part b
};

struct Statement {
  std::string spelling;           ///< as it is written, without operands
  std::vector<std::string> parts; ///< of the spelling, between dots
  int guard = -1;                 ///< the predicate register of @p
  bool isGuardNegated = false;
  std::vector<Operand> operands;
  int line = 0;                 ///< of the PTX
  int file = 0, sourceLine = 0; ///< of the last .loc; 0 without

  const std::string &opcode() const { return parts.front(); }
  const std::string &type() const { return parts.back(); }
  bool has(const std::string &part) const;
};

struct Function {
  std::string name;                          ///< mangled
  std::vector<Variable> parameters, results; ///< results: of functions that are called
  std::vector<Variable> variables;           ///< shared, local and of calls
  std::vector<unsigned> registers;           ///< bytes of one lane; 0: a predicate
  std::vector<Statement> statements;
  std::map<std::string, std::size_t> labels; ///< number of the statement behind
  std::size_t at = 0;                        ///< of its body in the text
  int line = 0;
  bool isParsed = false;
};

struct Module {
  std::string path, text;
  std::vector<Variable> variables;
  std::vector<std::unique_ptr<Function>> functions;
  std::map<int, std::string> files; ///< of .file

  /// Parses its body, if nothing has asked for it before; null where there is no such function.
  const Function *find(const std::string &name);
};

/// Throws Refusal.
std::unique_ptr<Module> parse(const std::string &text, const std::string &path);

/// Bytes of a type such as "f32"; 0 for "pred" and for names of no type.
unsigned bytesOfType(const std::string &type);
/// Of a suffix such as "shared"; Generic where it is no space's.
Space spaceOf(const std::string &name);

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_TEXT_H
