//===- Decode.cpp - operands, control flow, and the memory of a kernel ----------------------===//

#include "Decode.h"

#include "Machine.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace emulator::ptx {

namespace {

/// Where dynamic shared memory begins in a kernel that uses it: variables have at most 48 KiB.
constexpr std::size_t kDynamicOffset = 1 << 16;

std::uint64_t roundedUp(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void trap(Warp &warp, const Instruction &in, Lanes lanes) {
  warp.fail(in, static_cast<unsigned>(__builtin_ctz(lanes)), "trap");
}

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

void Decoder::refuse(const std::string &what) const {
  throw Refusal(module.path + ":" + std::to_string(statement->line) + ": kernel " + function.name +
                ": " + statement->spelling + ": " + what);
}

const Operand &Decoder::operand(std::size_t number) const {
  if (number >= statement->operands.size())
    refuse("got " + std::to_string(statement->operands.size()) + " operands, expected more");
  return statement->operands[number];
}

Ref Decoder::registerOf(const Operand &operand, unsigned width, bool mayBeWider) const {
  if (operand.reg < 0 || operand.number)
    refuse("expected a register");
  const Ref ref = frame->registers[static_cast<std::size_t>(operand.reg)];
  const auto bits = [](unsigned bytes) {
    return bytes ? std::to_string(8 * bytes) + " bits" : std::string("a predicate");
  };
  if (mayBeWider && width ? ref.width < width : ref.width != width)
    refuse("register " + operand.name + ": got " + bits(ref.width) + ", expected " + bits(width));
  return ref;
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

Ref Decoder::source(const Operand &operand, unsigned width) {
  const std::int64_t number = operand.number;
  if (operand.kind == Operand::Number && !width)
    return {number ? kAlways : kNever, 0, 0};
  width = width == 1 ? 2 : width; // there are no narrower registers
  if (operand.kind == Operand::Number) {
    if (width < 8 && (number < -(std::int64_t(1) << (8 * width - 1)) ||
                      number >= (std::int64_t(1) << (8 * width))))
      refuse("the number " + std::to_string(number) + " has more than " +
             std::to_string(8 * width) + " bits");
    return constant(static_cast<std::uint64_t>(number), width);
  }
  if (operand.kind != Operand::Symbol)
    // Of what is stored or converted a register may have further bits.
    return registerOf(operand, width, statement->opcode() == "cvt" || statement->opcode() == "st");
  for (std::size_t i = 0; i < specialRegisters().size(); ++i)
    if (operand.name == specialRegisters()[i].name) {
      const auto [at, isNew] = code.specials.try_emplace(i);
      if (isNew)
        at->second = newRegister(4);
      if (width != 4)
        refuse(operand.name + " has 32 bits");
      return at->second;
    }
  return constant(placeOf(operand.name).second + static_cast<std::uint64_t>(number), width);
}

void Decoder::takeAddress(const Operand &operand) {
  if (operand.kind != Operand::Address)
    refuse("expected an address");
  in.offset = operand.number;
  if (operand.reg >= 0) {
    in.a = frame->registers[static_cast<std::size_t>(operand.reg)];
  } else if (!operand.name.empty()) {
    const Place place = placeOf(operand.name);
    if (in.space == Space::Parameter)
      in.space = place.first; // of a call: local memory
    in.offset += static_cast<std::int64_t>(place.second);
  }
}

void Decoder::take(const std::string &word, const Operand &operand) {
  const unsigned width = word.size() > 1 ? static_cast<unsigned>(word[1] - '0') : 0;
  const auto letter = std::string("abcem").find(word[0]);
  Ref *const sources[] = {&in.a, &in.b, &in.c, &in.e, &in.mask};
  if (letter != std::string::npos) {
    *sources[letter] = source(operand, width);
  } else if (word[0] == '[') {
    takeAddress(operand);
  } else if (word[0] == 'd') {
    in.d = registerOf(operand, width, false);
    if (!operand.parts.empty())
      in.q = registerOf(operand.parts[0], 0, false);
  } else if (word[0] == 'D' || word[0] == 'S') {
    if (!in.count)
      in.first = static_cast<std::uint32_t>(code.lists.size());
    const std::vector<Operand> one = {operand};
    const auto &parts = operand.kind == Operand::Vector ? operand.parts : one;
    for (const Operand &part : parts)
      code.lists.push_back(word[0] == 'D' ? registerOf(part, width, statement->opcode() == "ld")
                                          : source(part, width));
    if (word.size() > 3 && parts.size() != unsigned(word[3] - '0'))
      refuse("got " + std::to_string(parts.size()) + " registers, expected " + word[3]);
    in.count += static_cast<std::uint32_t>(parts.size());
  } else {
    if (operand.kind != Operand::Number || (word != "i" && word != std::to_string(operand.number)))
      refuse("got the operand '" + operand.name + std::to_string(operand.number) + "', expected " +
             (word == "i" ? "a number" : word));
    in.number = word == "i" ? operand.number : in.number;
  }
}

void Decoder::take(const std::string &words) {
  for (const std::string &part : statement->parts)
    if (in.space == Space::Generic)
      in.space = spaceOf(part);
  std::istringstream list(words);
  std::size_t number = 0;
  for (std::string word; list >> word; ++number)
    take(word, operand(number));
  if (number < statement->operands.size())
    refuse("got " + std::to_string(statement->operands.size()) + " operands, expected " +
           std::to_string(number));
}

void Rows::add(std::initializer_list<std::string_view> parts, Row row) {
  std::string spelling;
  for (std::string_view part : parts)
    spelling += part;
  rows[spelling] = row;
}

const Row *Rows::find(const std::string &spelling) const {
  const auto found = rows.find(spelling);
  return found == rows.end() ? nullptr : &found->second;
}

bool Decoder::decodeRow() {
  static const Rows rows = [] {
    Rows all;
    all.add({"trap"}, {trap, ""});
    all.add({"bar.sync"}, {nullptr, "0", Kind::Barrier});
    all.add({"bar.red.or.pred"}, {nullptr, "d0 0 a0", Kind::Barrier});
    for (const auto add : {addAccesses, addApproximations, addArithmetic, addBits, addComparisons,
                           addConversions, addMatrices, addProducts, addWarpFunctions})
      add(all);
    return all;
  }();
  std::string key;
  for (const std::string &part : statement->parts)
    if (part != "rn" && spaceOf(part) == Space::Generic)
      key += (key.empty() ? "" : ".") + part;
  const Row *found = rows.find(key);
  if (!found)
    return false;
  in.run = found->run;
  in.kind = found->kind;
  take(found->operands);
  return true;
}

/// Variables one behind another with gaps of 128 bytes between them.
std::uint64_t Decoder::placeShared(const Variable &variable) {
  if (variable.isExternal)
    return code.dynamicOffset = kDynamicOffset;
  auto &owners = code.owners;
  const std::uint64_t start =
      roundedUp(owners.empty() ? 0 : owners.size() + 128, variable.alignment);
  const auto number = static_cast<std::uint8_t>(shared.size() % 254 + 1);
  owners.resize(start);
  owners.resize(start + variable.bytes, number);
  return start;
}

/// Gives a variable its place where it is first used.
Decoder::Place Decoder::placeOf(const std::string &name) {
  for (const auto *places : {&frame->variables, &shared})
    if (const auto found = places->find(name); found != places->end())
      return found->second;
  const std::vector<Variable> &globals = module.variables;
  for (const auto *variables : {&frame->function->variables, &globals})
    for (const Variable &variable : *variables) {
      if (variable.name != name)
        continue;
      if (variable.space == Space::Shared)
        return shared[name] = {Space::Shared, placeShared(variable)};
      if (variables == &globals)
        return {variable.space, reinterpret_cast<std::uint64_t>(variable.contents.data())};
      const std::uint64_t start =
          roundedUp(code.localBytes, std::max<std::uint64_t>(variable.alignment, 16));
      code.localBytes = roundedUp(start + variable.bytes, 16);
      return frame->variables[name] = {Space::Local, start};
    }
  refuse("got '" + name + "', expected a register or a variable");
}

Ref Decoder::newRegister(unsigned width) {
  if (!width)
    return {static_cast<std::uint32_t>(code.predicates++), 0, 0};
  code.registerBytes += 32 * width;
  return {static_cast<std::uint32_t>(code.registerBytes - 32 * width), 0,
          static_cast<std::uint8_t>(width)};
}

Code Decoder::run() {
  code.module = &module;
  code.function = &function;
  code.predicates = 2;
  Frame kernel{&function, nullptr};
  for (const Variable &parameter : function.parameters) {
    kernel.variables[parameter.name] = {Space::Parameter, parameter.offset};
    code.parameterBytes = parameter.offset + parameter.bytes;
  }
  decodeBody(kernel);
  static const Statement end = [] {
    Statement exit;
    exit.spelling = "exit";
    exit.parts = {"exit"};
    return exit;
  }();
  Instruction last;
  last.kind = Kind::Exit;
  last.statement = &end;
  code.instructions.push_back(last);
  if (!code.dynamicOffset)
    code.dynamicOffset = code.owners.size();
  return std::move(code);
}

void Decoder::decodeBody(Frame &target) {
  Frame *const caller = std::exchange(frame, &target);
  for (unsigned width : target.function->registers)
    target.registers.push_back(newRegister(width));
  for (const Statement &next : target.function->statements) {
    statement = &next;
    target.starts.push_back(static_cast<std::uint32_t>(code.instructions.size()));
    in = Instruction();
    in.statement = &next;
    if (next.guard >= 0) {
      in.guard = static_cast<int>(target.registers[static_cast<std::size_t>(next.guard)].offset);
      in.isGuardNegated = next.isGuardNegated;
    }
    if (next.opcode() == "call") {
      decodeCall();
      continue;
    }
    if (!decodeControl() && !decodeAccess(*this) && !decodeVectorMove(*this) &&
        !decodeProduct(*this) && !decodeRow())
      refuse("the instruction is not supported");
    code.instructions.push_back(in);
  }
  target.starts.push_back(static_cast<std::uint32_t>(code.instructions.size()));
  for (const auto &[instruction, to] : target.jumps)
    code.instructions[instruction].target = target.starts[to];
  frame = caller;
}

bool Decoder::decodeControl() {
  const std::string &name = statement->opcode();
  const bool returns = name == "ret" && frame->caller; // to behind the call
  if (name == "bra" || returns) {
    const auto &labels = frame->function->labels;
    const auto found = returns ? labels.end() : labels.find(operand(0).name);
    if (!returns && found == labels.end())
      refuse("got the label '" + operand(0).name + "', which is nowhere");
    in.kind = Kind::Branch;
    frame->jumps.push_back(
        {code.instructions.size(), returns ? frame->function->statements.size() : found->second});
  } else if (name == "ret" || name == "exit") {
    in.kind = Kind::Exit;
  } else {
    return false;
  }
  return true;
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
  Frame called{callee, frame};
  const auto bind = [&](const std::vector<Variable> &formal, const std::vector<Operand> &actual) {
    if (formal.size() != actual.size())
      refuse("got " + std::to_string(actual.size()) + " parameters, expected " +
             std::to_string(formal.size()));
    for (std::size_t i = 0; i < formal.size(); ++i)
      called.variables[formal[i].name] = placeOf(actual[i].name);
  };
  const std::vector<Operand> none;
  bind(callee->results, withResults ? operand(0).parts : none);
  bind(callee->parameters,
       statement->operands.size() > withResults + 1 ? operand(withResults + 1).parts : none);
  decodeBody(called);
}

Code decode(Module &module, const Function &function) { return Decoder(module, function).run(); }

} // namespace emulator::ptx
