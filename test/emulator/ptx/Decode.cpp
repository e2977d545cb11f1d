//===- Decode.cpp - operands, control flow, and the memory of a kernel ----------------------===//

#include "Decode.h"

#include "Machine.h"

#include <algorithm>
#include <sstream>

namespace emulator::ptx {

namespace {

std::uint64_t roundedUp(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void exitTrap(Warp &warp, const Instruction &in, Lanes lanes) {
  warp.fail(in, static_cast<unsigned>(__builtin_ctz(lanes)), "trap");
}
void nothing(Warp &, const Instruction &, Lanes) {}

} // namespace

std::string placeOf(const Module &module, const Statement &statement) {
  std::string text =
      module.path.substr(module.path.rfind('/') + 1) + ":" + std::to_string(statement.line);
  if (const auto file = module.files.find(statement.file);
      file != module.files.end() && statement.sourceLine)
    text = file->second.substr(file->second.rfind('/') + 1) + ":" +
           std::to_string(statement.sourceLine) + ", " + text;
  return text;
}

Decoder::Decoder(Module &module, const Function &function) : module(module), function(function) {}

void Decoder::refuse(const std::string &what) const {
  throw Refusal(module.path + ":" + std::to_string(statement->line) + ": kernel " + function.name +
                ": " + statement->spelling() + ": " + what);
}

const Operand &Decoder::operand(std::size_t number) {
  if (number >= statement->operands.size())
    refuse("got " + std::to_string(statement->operands.size()) + " operands, expected more");
  return statement->operands[number];
}

bool Decoder::isPredicate(const Operand &operand) const {
  return operand.kind == Operand::Reg &&
         frame->registers[static_cast<std::size_t>(operand.reg)].width == 0;
}

Ref Decoder::result(const Operand &operand, unsigned width) {
  if (operand.kind == Operand::Sink)
    return Ref();
  if (operand.kind != Operand::Reg || isPredicate(operand))
    refuse("expected a register for the result");
  return registerOf(operand, width, false);
}

Ref Decoder::registerOf(const Operand &operand, unsigned width, bool mayBeWider) const {
  const Ref ref = frame->registers[static_cast<std::size_t>(operand.reg)];
  if (width && (mayBeWider ? ref.width < width : ref.width != width))
    refuse("register " + operand.name + ": got " + std::to_string(8 * ref.width) +
           " bits, expected " + std::to_string(8 * width));
  return ref;
}

Ref Decoder::predicate(const Operand &operand) {
  if (operand.kind == Operand::Number)
    return {operand.number ? kAlways : kNever, 0, 0};
  if (operand.kind == Operand::Sink)
    return Ref();
  if (!isPredicate(operand))
    refuse("expected a predicate");
  return frame->registers[static_cast<std::size_t>(operand.reg)];
}

Ref Decoder::constant(std::uint64_t bits, unsigned width) {
  const auto [at, isNew] = known.try_emplace({bits, width});
  if (isNew) {
    at->second = {static_cast<std::uint32_t>(code.constants.size()), 1,
                  static_cast<std::uint8_t>(width)};
    code.constants.resize(code.constants.size() + 32 * width);
    for (unsigned lane = 0; lane < 32; ++lane)
      std::memcpy(&code.constants[at->second.offset + lane * width], &bits, width);
  }
  return at->second;
}

std::pair<Space, std::uint64_t> Decoder::placeOf(const std::string &variable) const {
  for (const Places *places : {static_cast<const Places *>(&frame->variables), &shared})
    if (const auto found = places->find(variable); found != places->end())
      return found->second;
  for (const Variable &global : module.variables)
    if (global.name == variable && global.space != Space::Shared)
      return {global.space, reinterpret_cast<std::uint64_t>(global.contents.data())};
  refuse("got '" + variable + "', expected a register or a variable");
}

Ref Decoder::source(const Operand &operand, unsigned width) {
  if (operand.kind == Operand::Number) {
    if (width < 8 && !operand.isFloat &&
        (operand.number < -(std::int64_t(1) << (8 * width - 1)) ||
         operand.number >= (std::int64_t(1) << (8 * width))))
      refuse("the number " + std::to_string(operand.number) + " has more than " +
             std::to_string(8 * width) + " bits");
    return constant(static_cast<std::uint64_t>(operand.number), width);
  }
  if (operand.kind == Operand::Symbol) {
    for (std::size_t i = 0; i < specialRegisters().size(); ++i)
      if (operand.name == specialRegisters()[i].name) {
        if (width != 4)
          refuse(operand.name + " has 32 bits");
        const auto [at, isNew] = code.specials.try_emplace(i);
        if (isNew)
          at->second = newRegister(4);
        return at->second;
      }
    return constant(placeOf(operand.name).second + static_cast<std::uint64_t>(operand.number),
                    width);
  }
  if (operand.kind != Operand::Reg || isPredicate(operand))
    refuse("expected a register or a number");
  return registerOf(operand, width, statement->opcode == "cvt");
}

void Decoder::address(const Operand &operand, Space space) {
  if (operand.kind != Operand::Address)
    refuse("expected an address");
  in.space = space;
  in.offset = operand.number;
  in.a = Ref();
  if (operand.reg >= 0) {
    in.a = frame->registers[static_cast<std::size_t>(operand.reg)];
    return;
  }
  if (operand.name.empty())
    return;
  const auto place = placeOf(operand.name);
  if (space == Space::Parameter)
    in.space = place.first; // of a call: local memory
  in.offset += static_cast<std::int64_t>(place.second);
}

void Decoder::list(const Operand &operand, unsigned width, bool isResult, unsigned parts) {
  in.first = static_cast<std::uint32_t>(code.lists.size());
  const std::vector<Operand> one = {operand};
  for (const Operand &part : operand.kind == Operand::Vector ? operand.parts : one) {
    // Of an access it may be wider than what is in memory.
    const bool mayBeWider = statement->opcode == "ld" || statement->opcode == "st";
    code.lists.push_back(part.kind == Operand::Reg ? registerOf(part, width, mayBeWider)
                         : isResult                ? result(part, width)
                                                   : source(part, std::max(width, 2u)));
  }
  in.count = static_cast<std::uint32_t>(code.lists.size()) - in.first;
  if (parts && in.count != parts)
    refuse("got " + std::to_string(in.count) + " registers, expected " + std::to_string(parts));
}

std::int64_t Decoder::immediate(const Operand &operand) {
  if (operand.kind != Operand::Number)
    refuse("expected a number");
  return operand.number;
}

void Decoder::operandsOf(const std::array<unsigned, 4> &widths) {
  in.d = result(operand(0), widths[0]);
  if (in.d.width == Ref::kNone)
    refuse("expected a register for the result");
  Ref *sources[] = {&in.a, &in.b, &in.c};
  for (std::size_t i = 0; i < 3 && widths[i + 1]; ++i)
    *sources[i] = source(operand(i + 1), widths[i + 1]);
}

int Decoder::optionOf(const std::string &word, const std::string &words) {
  std::istringstream list(words);
  int index = 0;
  for (std::string one; list >> one; ++index)
    if (one == word)
      return index;
  return -1;
}

int Decoder::optionAmong(const std::string &words) const {
  for (const std::string &suffix : statement->suffixes)
    if (const int index = optionOf(suffix, words); index >= 0)
      return index;
  return -1;
}

Space Decoder::space() const {
  for (const std::string &suffix : statement->suffixes)
    if (const Space space = spaceOf(suffix); space != Space::Generic)
      return space;
  return Space::Generic;
}

bool Decoder::decodeRow() {
  static const Rows rows = [] {
    Rows all;
    addArithmetic(all);
    addApproximations(all);
    addBits(all);
    return all;
  }();
  std::string key = statement->opcode;
  for (const std::string &suffix : statement->suffixes)
    key += suffix == "rn" ? "" : "." + suffix;
  const auto found = rows.find(key);
  if (found == rows.end())
    return false;
  in.run = found->second.run;
  operandsOf(found->second.widths);
  return true;
}

/// Static variables one behind another with gaps of 128 bytes between them; then what the launch
/// asks for.
void Decoder::layOutShared() {
  std::uint8_t number = 0;
  const auto place = [&](const Variable &variable) {
    if (variable.space != Space::Shared)
      return;
    if (variable.isExternal) {
      shared[variable.name] = {Space::Shared, ~std::uint64_t(0)};
      return;
    }
    const std::uint64_t start =
        roundedUp(code.owners.empty() ? 0 : code.owners.size() + 128, variable.alignment);
    shared[variable.name] = {Space::Shared, start};
    code.owners.resize(start);
    number = static_cast<std::uint8_t>(number % 254 + 1);
    code.owners.resize(start + variable.bytes, number);
    code.sharedBytes += variable.bytes;
  };
  std::vector<const Function *> used = {&function};
  for (std::size_t i = 0; i < used.size(); ++i) {
    for (const Variable &variable : used[i]->variables)
      place(variable);
    for (const Statement &s : used[i]->statements)
      for (const Operand &operand : s.operands) {
        for (const Variable &variable : module.variables)
          if (operand.name == variable.name && !shared.count(variable.name))
            place(variable);
        const Function *callee = s.opcode == "call" ? module.find(operand.name) : nullptr;
        if (callee && std::find(used.begin(), used.end(), callee) == used.end())
          used.push_back(callee);
      }
  }
  code.dynamicOffset = roundedUp(code.owners.size(), 1024);
  for (auto &[name, where] : shared)
    if (where.second == ~std::uint64_t(0))
      where.second = code.dynamicOffset;
}

Ref Decoder::newRegister(unsigned width) {
  if (!width)
    return {static_cast<std::uint32_t>(code.predicates++), 0, 0};
  code.registerBytes += 32 * width;
  return {static_cast<std::uint32_t>(code.registerBytes - 32 * width), 0,
          static_cast<std::uint8_t>(width)};
}

/// Local memory, of calls too.
void Decoder::placeVariables(Frame &target) {
  for (const Variable &variable : target.function->variables) {
    if (variable.space == Space::Shared)
      continue;
    const std::uint64_t start =
        roundedUp(code.localBytes, std::max<std::uint64_t>(variable.alignment, 16));
    target.variables[variable.name] = {Space::Local, start};
    code.localBytes = start + variable.bytes;
  }
}

Code Decoder::run() {
  code.module = &module;
  code.function = &function;
  code.predicates = 2;
  layOutShared();
  Frame kernel{&function, nullptr, {}, {}, {}, {}, {}};
  for (const Variable &parameter : function.parameters) {
    kernel.variables[parameter.name] = {Space::Parameter, parameter.offset};
    code.parameterBytes = parameter.offset + parameter.bytes;
  }
  decodeBody(kernel);
  static const Statement end = [] {
    Statement s;
    s.opcode = "exit";
    return s;
  }();
  Instruction last;
  last.kind = Kind::Exit;
  last.statement = &end;
  code.instructions.push_back(last);
  code.localBytes = roundedUp(code.localBytes, 16);
  return std::move(code);
}

void Decoder::decodeBody(Frame &target) {
  for (const Register &reg : target.function->registers)
    target.registers.push_back(newRegister(reg.width));
  placeVariables(target);
  using Family = bool (*)(Decoder &);
  static constexpr Family families[] = {decodeComparisons, decodeMemory,        decodeBits,
                                        decodeConversions, decodeWarpFunctions, decodeMatrices,
                                        decodeProducts,    decodeCarries};
  for (const Statement &next : target.function->statements) {
    frame = &target;
    statement = &next;
    target.starts.push_back(static_cast<std::uint32_t>(code.instructions.size()));
    in = Instruction();
    in.statement = &next;
    if (next.guard >= 0) {
      in.guard = static_cast<int>(target.registers[static_cast<std::size_t>(next.guard)].offset);
      in.isGuardNegated = next.isGuardNegated;
    }
    if (next.opcode == "call") {
      decodeCall();
      continue;
    }
    if (!decodeControl() && !decodeRow() &&
        std::none_of(std::begin(families), std::end(families),
                     [&](Family family) { return family(*this); }))
      refuse("the instruction is not supported");
    code.instructions.push_back(in);
  }
  target.starts.push_back(static_cast<std::uint32_t>(code.instructions.size()));
  const auto startOf = [&](const std::string &label) {
    const auto found = target.function->labels.find(label);
    if (found == target.function->labels.end())
      throw Refusal(module.path + ": kernel " + function.name + ": got the label '" + label +
                    "', which is nowhere");
    return target.starts[found->second];
  };
  for (const auto &[instruction, label] : target.jumps)
    code.instructions[instruction].target = startOf(label);
  for (std::size_t instruction : target.returns)
    code.instructions[instruction].target = target.starts.back();
}

bool Decoder::decodeControl() {
  const std::string &name = statement->opcode;
  if (name == "bra") {
    in.kind = Kind::Branch;
    frame->jumps.push_back({code.instructions.size(), operand(0).name});
  } else if (name == "ret" && frame->caller) {
    in.kind = Kind::Branch;
    frame->returns.push_back(code.instructions.size());
  } else if (name == "ret" || name == "exit") {
    in.kind = Kind::Exit;
  } else if (name == "trap") {
    in.run = exitTrap;
  } else if ((name == "bar" || name == "barrier") &&
             (statement->has("sync") || statement->has("red")) && !statement->has("warp")) {
    decodeBarrier();
  } else if (name == "pragma") {
    in.run = nothing;
  } else {
    return false;
  }
  return true;
}

void Decoder::decodeBarrier() {
  in.kind = Kind::Barrier;
  std::size_t next = 0;
  if (statement->has("red")) {
    in.option = statement->has("popc") ? 1 : statement->has("and") ? 2 : 3;
    in.d = in.option == 1 ? result(operand(0), 4) : predicate(operand(0));
    const Operand &own = operand(operands() - 1);
    in.a = predicate(own);
    in.isNegated = own.isNegated;
    next = 1;
  }
  in.offset = immediate(operand(next));
  if (operands() > next + 1 + next)
    refuse("barriers of a part of the block are not supported");
}

/// The statements of the function come here, with registers for each call.
void Decoder::decodeCall() {
  const std::size_t withResults = operand(0).kind == Operand::Vector ? 1 : 0;
  const Function *callee = module.find(operand(withResults).name);
  if (!callee)
    refuse("the function '" + operand(withResults).name + "' is not in the module");
  for (const Frame *outer = frame; outer; outer = outer->caller)
    if (outer->function == callee)
      refuse("recursion is not supported");
  if (in.guard >= 0)
    refuse("a call with a guard is not supported");
  Frame called{callee, frame, {}, {}, {}, {}, {}};
  const auto bind = [&](const std::vector<Variable> &formal, const std::vector<Operand> &actual) {
    if (formal.size() != actual.size())
      refuse("got " + std::to_string(actual.size()) + " parameters, expected " +
             std::to_string(formal.size()));
    for (std::size_t i = 0; i < formal.size(); ++i)
      called.variables[formal[i].name] = placeOf(actual[i].name);
  };
  static const std::vector<Operand> none;
  bind(callee->results, withResults ? operand(0).parts : none);
  bind(callee->parameters, operands() > withResults + 1 ? operand(withResults + 1).parts : none);
  Frame *own = frame;
  decodeBody(called);
  frame = own;
}

Code decode(Module &module, const Function &function) { return Decoder(module, function).run(); }

} // namespace emulator::ptx
