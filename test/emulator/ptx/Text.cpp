//===- Text.cpp - parses PTX ------------------------------------------------------===//

#include "Text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace emulator::ptx {

bool Statement::has(const std::string &part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

unsigned bytesOfType(const std::string &type) {
  static const std::map<std::string, unsigned> bytes = {
      {"b8", 1},  {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2}, {"b32", 4},
      {"u32", 4}, {"s32", 4}, {"f32", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}};
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

Space spaceOf(const std::string &name) {
  static const std::map<std::string, Space> spaces = {
      {"global", Space::Global}, {"shared", Space::Shared},  {"shared::cta", Space::Shared},
      {"local", Space::Local},   {"const", Space::Constant}, {"param", Space::Parameter}};
  const auto found = spaces.find(name);
  return found == spaces.end() ? Space::Generic : found->second;
}

namespace {

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

class Parser {
public:
  Parser(Module &module, std::size_t at = 0, int line = 1)
      : module(module), text(module.text), at(at), line(line) {
    advance();
  }

  void parseModule() {
    while (!token.empty())
      parseTop();
  }

  void parseBody(Function &of) {
    function = &of;
    do {
      if (token.empty())
        fail("expected '}'");
      if (take("{"))
        scopes.emplace_back();
      else if (take("}"))
        scopes.pop_back();
      else if (take(".reg"))
        parseRegisters();
      else if (take(".loc"))
        parseLocation();
      else if (take(".pragma"))
        advance(), expect(";");
      else if (is(".shared") || is(".local") || is(".param"))
        function->variables.push_back(parseVariable()), expect(";");
      else
        parseStatement();
    } while (!scopes.empty());
  }

private:
  /// The next token: a word, a number, a text in quotes or a mark; at the end an empty one.
  void advance() {
    for (; at < text.size(); ++at)
      if (text.compare(at, 2, "//") == 0)
        at = std::min(text.find('\n', at), text.size()) - 1;
      else if (text[at] == '\n')
        ++line;
      else if (!std::isspace(static_cast<unsigned char>(text[at])))
        break;
    const std::size_t start = at;
    if (at < text.size() && text[at] == '"')
      at = std::min(text.find('"', at + 1), text.size() - 1) + 1;
    else if (at < text.size() && !isWord(text[at]))
      ++at;
    else
      while (at < text.size() && (isWord(text[at]) || text.compare(at, 2, "::") == 0))
        at += isWord(text[at]) ? 1 : 2;
    token = std::string_view(text).substr(start, at - start);
  }
  /// Past the brace that closes the one that is the token.
  void skipBody() {
    for (int depth = 1; depth && at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      line += text[at] == '\n';
    }
    advance();
  }

  bool is(const char *expected) const { return token == expected; }
  bool isNumber() const {
    return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0]));
  }
  bool take(const char *expected) {
    const bool isThere = is(expected);
    if (isThere)
      advance();
    return isThere;
  }
  void expect(const char *expected) {
    if (!take(expected))
      fail(std::string("expected '") + expected + "'");
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw Refusal(module.path + ":" + std::to_string(line) + ": got '" + std::string(token) +
                  "', " + what);
  }
  std::string word(const char *what) {
    if (token.empty() || isNumber() || !isWord(token[0]))
      fail(std::string("expected ") + what);
    const std::string taken(token);
    advance();
    return taken;
  }
  /// An integer, or the bits of a float as in 0f3f800000.
  std::uint64_t number() {
    const bool isNegative = take("-");
    std::string digits(token);
    const bool isFloat = digits.size() > 2 && digits[0] == '0' && std::strchr("fFdD", digits[1]);
    if (digits.size() > 1 && digits.back() == 'U')
      digits.pop_back();
    char *end = nullptr;
    const std::uint64_t bits =
        std::strtoull(digits.c_str() + (isFloat ? 2 : 0), &end, isFloat ? 16 : 0);
    if (!isNumber() || *end)
      fail("expected a number");
    advance();
    return isNegative ? 0 - bits : bits;
  }

  void parseTop() {
    if (take(".version") || take(".target") || take(".address_size")) {
      advance();
    } else if (take(".file")) {
      const int index = static_cast<int>(number());
      module.files[index] = token.substr(1, token.size() - 2);
      advance();
      while (take(","))
        number();
    } else if (take(".section")) {
      while (!is("{") && !token.empty())
        advance();
      skipBody();
    } else if (take(".entry") || take(".func")) {
      parseFunction();
    } else if (is(".global") || is(".const") || is(".shared")) {
      module.variables.push_back(parseVariable());
      expect(";");
    } else if (!take(".visible") && !take(".extern") && !take(".weak") && !take(".common")) {
      fail("expected a directive of a module");
    }
  }

  /// From the space on, up to the `;`, `,` or `)` behind.
  Variable parseVariable() {
    Variable variable;
    variable.space = spaceOf(std::string(token.substr(std::min<std::size_t>(1, token.size()))));
    if (variable.space == Space::Generic)
      fail("expected a state space");
    advance();
    if (take(".align"))
      variable.alignment = number();
    const unsigned element = bytesOfType(word("a type").substr(1));
    variable.name = word("the name of a variable");
    if (!element)
      fail("expected a variable with a type");
    variable.bytes = element;
    variable.alignment = std::max<std::uint64_t>(variable.alignment, element);
    while (take("[")) {
      variable.isExternal = is("]");
      variable.bytes *= is("]") ? 0 : number();
      expect("]");
    }
    if (take("=")) {
      const bool isList = take("{");
      do {
        const std::uint64_t bits = number();
        const auto *from = reinterpret_cast<const char *>(&bits);
        variable.contents.insert(variable.contents.end(), from, from + element);
      } while (take(","));
      if (isList)
        expect("}");
    }
    variable.contents.resize(variable.bytes);
    return variable;
  }

  void parseFunction() {
    auto owned = std::make_unique<Function>();
    if (is("("))
      owned->results = parseParameters();
    owned->name = word("the name of a function");
    if (is("("))
      owned->parameters = parseParameters();
    while (!is("{") && !is(";") && !token.empty()) // .maxntid and its like
      advance();
    if (take(";"))
      return; // a declaration
    owned->at = at;
    owned->line = line;
    skipBody();
    module.functions.push_back(std::move(owned));
  }

  std::vector<Variable> parseParameters() {
    std::vector<Variable> parameters;
    std::uint64_t end = 0;
    for (advance(); !is(")"); take(",")) {
      parameters.push_back(parseVariable());
      Variable &last = parameters.back();
      last.offset = (end + last.alignment - 1) / last.alignment * last.alignment;
      end = last.offset + last.bytes;
    }
    advance();
    return parameters;
  }

  void parseRegisters() {
    const std::string type = word("a type").substr(1);
    const unsigned width = bytesOfType(type);
    if ((!width && type != "pred") || width == 1)
      fail("expected registers of 16, 32 or 64 bits: ." + type + " is not supported");
    do {
      const std::string name = word("the name of a register");
      const bool isRow = take("<"); // name0, name1 and so on
      const std::uint64_t count = isRow ? number() : 1;
      if (isRow)
        expect(">");
      for (std::uint64_t i = 0; i < count; ++i) {
        scopes.back()[isRow ? name + std::to_string(i) : name] =
            static_cast<int>(function->registers.size());
        function->registers.push_back(width);
      }
    } while (take(","));
    expect(";");
  }

  /// The number of a register, or -1 if no register has the name.
  int registerOf(const std::string &name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end())
        return found->second;
    return -1;
  }

  /// A file, a line and a column, and where it was inlined: the place of the kernel's source.
  void parseLocation() {
    const int own = line;
    file = static_cast<int>(number());
    sourceLine = static_cast<int>(number());
    while (line == own && !token.empty())
      advance();
  }

  void parseStatement() {
    Statement statement;
    statement.line = line;
    statement.file = file;
    statement.sourceLine = sourceLine;
    if (take("@")) {
      statement.isGuardNegated = take("!");
      statement.guard = registerOf(std::string(token));
      if (statement.guard < 0 || function->registers[std::size_t(statement.guard)])
        fail("expected a register of predicates");
      advance();
    }
    statement.spelling = word("an instruction");
    if (statement.guard < 0 && take(":")) {
      function->labels[statement.spelling] = function->statements.size();
      return;
    }
    for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
      end = statement.spelling.find('.', start);
      statement.parts.push_back(statement.spelling.substr(start, end - start));
    }
    while (!take(";")) {
      statement.operands.push_back(parseOperand());
      if (!is(";"))
        expect(",");
    }
    function->statements.push_back(std::move(statement));
  }

  Operand parseOperand() {
    Operand operand;
    if (is("{") || is("(")) {
      operand.kind = Operand::Vector;
      for (advance(); !is("}") && !is(")"); take(","))
        operand.parts.push_back(parseOperand());
      advance();
    } else if (take("[")) {
      operand = parseOperand();
      operand.kind = Operand::Address;
      expect("]");
    } else if (is("-") || isNumber()) {
      operand.kind = Operand::Number;
      operand.number = static_cast<std::int64_t>(number());
    } else {
      operand.name = word("an operand");
      operand.reg = registerOf(operand.name);
      operand.kind = operand.reg < 0 ? Operand::Symbol : Operand::Reg;
      if (take("|"))
        operand.parts.push_back(parseOperand());
      if (take("+") || is("-")) // of an address
        operand.number = static_cast<std::int64_t>(number());
    }
    return operand;
  }

  Module &module;
  const std::string &text;
  std::size_t at;
  int line; ///< of the token
  std::string_view token;
  Function *function = nullptr;
  int file = 0, sourceLine = 0;
  std::vector<std::unordered_map<std::string, int>> scopes = {{}}; ///< numbers of registers
};

} // namespace

std::unique_ptr<Module> parse(const std::string &text, const std::string &path) {
  auto module = std::make_unique<Module>();
  module->text = text;
  module->path = path;
  Parser(*module).parseModule();
  return module;
}

const Function *Module::find(const std::string &name) {
  for (const auto &function : functions)
    if (function->name == name) {
      if (!std::exchange(function->isParsed, true))
        Parser(*this, function->at, function->line).parseBody(*function);
      return function.get();
    }
  return nullptr;
}

} // namespace emulator::ptx
