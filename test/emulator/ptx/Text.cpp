//===- Text.cpp - parses PTX ------------------------------------------------------===//

#include "Text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace emulator::ptx {

bool Statement::has(const std::string &suffix) const {
  return std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end();
}

const std::string &Statement::last(unsigned fromEnd) const {
  static const std::string none;
  return fromEnd < suffixes.size() ? suffixes[suffixes.size() - 1 - fromEnd] : none;
}

std::string Statement::spelling() const {
  std::string text = opcode;
  for (const std::string &suffix : suffixes)
    text += "." + suffix;
  return text;
}

unsigned bytesOfType(const std::string &type) {
  static const std::map<std::string, unsigned> bytes = {
      {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},  {"s16", 2},   {"f16", 2},
      {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},  {"f16x2", 4}, {"bf16x2", 4},
      {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

Space spaceOf(const std::string &name) {
  static const std::map<std::string, Space> spaces = {
      {"global", Space::Global},         {"shared", Space::Shared},  {"shared::cta", Space::Shared},
      {"local", Space::Local},           {"const", Space::Constant}, {"param", Space::Parameter},
      {"param::entry", Space::Parameter}};
  const auto found = spaces.find(name);
  return found == spaces.end() ? Space::Generic : found->second;
}

namespace {

struct Token {
  enum Kind { Word, Number, Text, Mark, End } kind = End;
  std::string text;
  std::uint64_t bits = 0;
  bool isFloat = false;
  int line = 0;
};

class Lexer {
public:
  Lexer(const std::string &text, const std::string &path) : text(text), path(path) {}

  Token next() {
    skipBlanks();
    Token token;
    token.line = line;
    if (at >= text.size())
      return token;
    const char c = text[at];
    if (isWord(c) || (c == '.' && at + 1 < text.size() && isWord(text[at + 1]))) {
      if (std::isdigit(static_cast<unsigned char>(c)))
        return number(token);
      token.kind = Token::Word;
      const std::size_t start = at++;
      while (at < text.size() && (isWord(text[at]) || text[at] == '.' ||
                                  (text.compare(at, 2, "::") == 0 && at + 2 < text.size() &&
                                   isWord(text[at + 2]) && ++at)))
        ++at;
      token.text = text.substr(start, at - start);
      return token;
    }
    if (c == '"') {
      const std::size_t end = std::min(text.find('"', at + 1), text.size());
      token.kind = Token::Text;
      token.text = text.substr(at + 1, end - at - 1);
      at = end + 1;
      return token;
    }
    token.kind = Token::Mark;
    token.text = std::string(1, c);
    ++at;
    return token;
  }

  void skipLine() { at = std::min(text.find('\n', at), text.size()); }
  /// Past the brace that closes the one before.
  void skipBody() {
    for (int depth = 1; depth && at < text.size(); ++at) {
      if (text[at] == '/' && text.compare(at, 2, "//") == 0)
        skipLine();
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      line += text[at] == '\n';
    }
  }

  [[noreturn]] void refuse(int where, const std::string &what) const {
    throw Refusal(path + ":" + std::to_string(where) + ": " + what);
  }

  std::size_t at = 0;
  int line = 1;

private:
  static bool isWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
  }
  void skipBlanks() {
    for (; at < text.size(); ++at) {
      if (text.compare(at, 2, "//") == 0) {
        skipLine();
        --at;
      } else if (text.compare(at, 2, "/*") == 0) {
        const std::size_t end = std::min(text.find("*/", at + 2), text.size());
        line += static_cast<int>(std::count(text.begin() + std::ptrdiff_t(at),
                                            text.begin() + std::ptrdiff_t(end), '\n'));
        at = std::min(end + 1, text.size());
      } else if (text[at] == '\n') {
        ++line;
      } else if (!std::isspace(static_cast<unsigned char>(text[at]))) {
        return;
      }
    }
  }
  Token number(Token token) {
    const std::size_t start = at;
    while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])))
      ++at;
    std::string digits = text.substr(start, at - start);
    token.kind = Token::Number;
    token.text = digits;
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
      const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1])));
      token.isFloat = kind == 'f' || kind == 'd';
      if (token.isFloat || kind == 'x' || kind == 'b') {
        digits = digits.substr(2);
        base = kind == 'b' ? 2 : 16;
      }
    }
    if (base != 2 && !digits.empty() && (digits.back() == 'U' || digits.back() == 'u'))
      digits.pop_back();
    char *end = nullptr;
    token.bits = std::strtoull(digits.c_str(), &end, base);
    if (*end || digits.empty())
      refuse(line,
             "got the number '" + token.text + "', expected an integer, or bits as in 0f3f800000");
    return token;
  }

  const std::string &text;
  const std::string &path;
};

class Parser {
public:
  explicit Parser(Module &module) : lexer(module.text, module.path), module(&module) {}

  void run() {
    advance();
    while (token.kind != Token::End)
      parseTop();
  }

  void runBody(Function &of) {
    function = &of;
    lexer.at = of.at;
    lexer.line = of.line;
    advance();
    scopes.assign(1, {});
    parseBody();
  }

private:
  struct Block { ///< of a register declaration: names prefix0, prefix1, ... or one name
    int first;
    unsigned count;
    bool isRow;
  };

  void advance() { token = lexer.next(); }
  bool is(const char *text) const { return token.kind != Token::Text && token.text == text; }
  bool take(const char *text) {
    if (!is(text))
      return false;
    advance();
    return true;
  }
  void expect(const char *text) {
    if (!take(text))
      fail(std::string("expected '") + text + "'");
  }
  [[noreturn]] void fail(const std::string &what) {
    lexer.refuse(token.line, "got '" + token.text + "', " + what);
  }
  std::string word(const char *what) {
    if (token.kind != Token::Word)
      fail(std::string("expected ") + what);
    std::string text = token.text;
    advance();
    return text;
  }
  std::uint64_t number() {
    const bool negative = take("-");
    if (token.kind != Token::Number)
      fail("expected a number");
    const std::uint64_t bits = token.bits;
    advance();
    return negative ? 0 - bits : bits;
  }

  void parseTop() {
    if (is(".version") || is(".target")) {
      lexer.skipLine();
      advance();
    } else if (take(".address_size")) {
      if (number() != 64)
        fail("expected addresses of 64 bits");
    } else if (take(".file")) {
      parseFile();
    } else if (is(".section")) {
      while (token.kind != Token::End && !is("{"))
        advance();
      lexer.skipBody();
      advance();
    } else if (is(".visible") || is(".extern") || is(".weak") || is(".common")) {
      isExternal = token.text == ".extern";
      advance();
    } else if (is(".entry") || is(".func")) {
      parseFunction();
    } else if (is(".global") || is(".const") || is(".shared")) {
      module->variables.push_back(parseVariable());
      module->variables.back().isExternal = isExternal;
      isExternal = false;
      expect(";");
    } else {
      fail("expected a directive of a module");
    }
  }

  void parseFile() {
    const int index = static_cast<int>(number());
    module->files[index] = token.text;
    advance();
    while (take(","))
      number();
  }

  /// From the space on, up to the `;`, `,` or `)` behind.
  Variable parseVariable() {
    Variable variable;
    variable.space = token.text.empty() ? Space::Generic : spaceOf(token.text.substr(1));
    if (variable.space == Space::Generic)
      fail("expected a state space");
    advance();
    unsigned element = 0;
    while (token.kind == Token::Word && token.text[0] == '.') {
      if (take(".align")) {
        variable.alignment = number();
      } else if (take(".ptr")) {
        // What a pointer points at: its .align is not the variable's.
        if (spaceOf(token.text.substr(1)) != Space::Generic)
          advance();
        if (take(".align"))
          number();
      } else {
        element = bytesOfType(token.text.substr(1));
        if (!element)
          fail("expected a type");
        advance();
      }
    }
    variable.name = word("the name of a variable");
    std::uint64_t count = 1;
    while (take("[")) {
      if (is("]"))
        variable.isExternal = true, count = 0;
      else
        count *= number();
      expect("]");
    }
    if (!element)
      fail("expected a variable with a type");
    variable.bytes = element * count;
    variable.alignment = std::max<std::uint64_t>(variable.alignment, element);
    if (take("="))
      parseContents(variable, element);
    return variable;
  }

  void parseContents(Variable &variable, unsigned element) {
    const auto append = [&](std::uint64_t bits) {
      const std::size_t at = variable.contents.size();
      variable.contents.resize(at + element);
      std::memcpy(&variable.contents[at], &bits, element);
    };
    if (take("{")) {
      while (!take("}")) {
        if (token.kind == Token::Word)
          fail("expected numbers: addresses in a variable are not supported");
        append(number());
        take(",");
      }
    } else {
      append(number());
    }
    variable.contents.resize(variable.bytes);
  }

  void parseFunction() {
    auto owned = std::make_unique<Function>();
    function = owned.get();
    function->isEntry = is(".entry");
    advance();
    if (is("("))
      function->results = parseParameters();
    function->name = word("the name of a function");
    if (is("("))
      function->parameters = parseParameters();
    std::uint64_t offset = 0;
    for (Variable &parameter : function->parameters) {
      offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
      parameter.offset = offset;
      offset += parameter.bytes;
    }
    while (token.kind == Token::Word && token.text[0] == '.') { // .maxntid and its like
      advance();
      while (token.kind == Token::Number || is(","))
        advance();
    }
    isExternal = false;
    if (take(";"))
      return; // a declaration
    if (!is("{"))
      fail("expected '{'");
    function->at = lexer.at;
    function->line = lexer.line;
    lexer.skipBody();
    advance();
    module->functions.push_back(std::move(owned));
  }

  std::vector<Variable> parseParameters() {
    std::vector<Variable> parameters;
    expect("(");
    while (!take(")")) {
      if (is(".reg"))
        fail("expected parameters in .param: registers are not supported");
      parameters.push_back(parseVariable());
      take(",");
    }
    return parameters;
  }

  void parseBody() {
    for (int depth = 1; depth;) {
      if (token.kind == Token::End)
        fail("expected '}'");
      if (take("{")) {
        scopes.emplace_back();
        ++depth;
      } else if (take("}")) {
        scopes.pop_back();
        if (scopes.empty())
          scopes.emplace_back();
        --depth;
      } else if (take(".reg")) {
        parseRegisters();
      } else if (is(".shared") || is(".local") || is(".param")) {
        function->variables.push_back(parseVariable());
        expect(";");
      } else if (take(".loc")) {
        parseLocation();
      } else if (take(".pragma")) {
        advance();
        expect(";");
      } else {
        parseStatement();
      }
    }
  }

  void parseRegisters() {
    const std::string type = word("a type").substr(1);
    const unsigned width = bytesOfType(type);
    if (!width && type != "pred")
      fail("expected a type of registers");
    if (width == 1 || width == 16)
      fail("expected registers of 16, 32 or 64 bits: ." + type + " is not supported");
    do {
      const std::string name = word("the name of a register");
      Block block{static_cast<int>(function->registers.size()), 1, false};
      if (take("<")) {
        block.count = static_cast<unsigned>(number());
        block.isRow = true;
        expect(">");
      }
      for (unsigned i = 0; i < block.count; ++i)
        function->registers.push_back({width, block.isRow ? name + std::to_string(i) : name});
      scopes.back()[name] = block;
    } while (take(","));
    expect(";");
  }

  /// The number of a register, or -1 if no register has the name.
  int registerOf(const std::string &name) {
    std::size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])))
      --digits;
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end() && !found->second.isRow)
        return found->second.first;
      if (digits == name.size())
        continue;
      const auto found = scope->find(name.substr(0, digits));
      if (found == scope->end() || !found->second.isRow)
        continue;
      const unsigned long number = std::strtoul(name.c_str() + digits, nullptr, 10);
      if (number < found->second.count)
        return found->second.first + static_cast<int>(number);
    }
    return -1;
  }

  void parseLocation() {
    file = static_cast<int>(number());
    sourceLine = static_cast<int>(number());
    number();           // the column
    while (take(",")) { // function_name label+n, inlined_at file line column
      if (take("inlined_at")) {
        // The place of the outermost call is that of the kernel's source.
        number(), number(), number();
      } else {
        word("function_name");
        word("a label");
        if (take("+"))
          number();
      }
    }
  }

  void parseStatement() {
    Statement statement;
    statement.line = token.line;
    statement.file = file;
    statement.sourceLine = sourceLine;
    if (take("@")) {
      statement.isGuardNegated = take("!");
      const std::string name = word("a predicate");
      statement.guard = registerOf(name);
      if (statement.guard < 0 || function->registers[std::size_t(statement.guard)].width)
        lexer.refuse(statement.line,
                     "got the guard '" + name + "', expected a register of predicates");
    }
    std::string text = word("an instruction");
    if (statement.guard < 0 && take(":")) {
      function->labels[text] = function->statements.size();
      return;
    }
    for (std::size_t dot = text.find('.'); dot != std::string::npos;) {
      const std::size_t next = text.find('.', dot + 1);
      statement.suffixes.push_back(
          text.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
      dot = next;
    }
    statement.opcode = text.substr(0, text.find('.'));
    while (!take(";")) {
      if (token.kind == Token::End)
        fail("expected ';'");
      statement.operands.push_back(parseOperand());
      if (!is(";"))
        expect(",");
    }
    function->statements.push_back(std::move(statement));
  }

  Operand parseOperand() {
    Operand operand;
    if (take("!")) {
      operand = parseOperand();
      operand.isNegated = true;
      return operand;
    }
    if (is("{") || is("(")) {
      const char *end = is("{") ? "}" : ")";
      advance();
      operand.kind = Operand::Vector;
      while (!take(end)) {
        operand.parts.push_back(parseOperand());
        take(",");
      }
      return operand;
    }
    if (take("["))
      return parseAddress();
    if (is("-") || token.kind == Token::Number) {
      operand.kind = Operand::Number;
      operand.isFloat = token.isFloat;
      operand.number = static_cast<std::int64_t>(number());
      return operand;
    }
    const std::string name = word("an operand");
    if (name == "_")
      return operand;
    operand.reg = registerOf(name);
    operand.kind = operand.reg < 0 ? Operand::Symbol : Operand::Reg;
    operand.name = name;
    if (take("|"))
      operand.parts.push_back(parseOperand());
    if (operand.kind == Operand::Symbol && take("+")) // an address: variable + number
      operand.number = static_cast<std::int64_t>(number());
    return operand;
  }

  Operand parseAddress() {
    Operand operand;
    operand.kind = Operand::Address;
    if (token.kind == Token::Number) {
      operand.number = static_cast<std::int64_t>(number());
    } else {
      operand.name = word("an address");
      operand.reg = registerOf(operand.name);
      if (take("+") || is("-"))
        operand.number = static_cast<std::int64_t>(number());
    }
    expect("]");
    return operand;
  }

  Lexer lexer;
  Token token;
  Module *module;
  Function *function = nullptr;
  bool isExternal = false;
  int file = 0, sourceLine = 0;
  std::vector<std::map<std::string, Block>> scopes;
};

} // namespace

std::unique_ptr<Module> parse(const std::string &text, const std::string &path) {
  auto module = std::make_unique<Module>();
  module->text = text;
  module->path = path;
  Parser(*module).run();
  return module;
}

const Function *Module::find(const std::string &name) {
  for (const auto &function : functions)
    if (function->name == name) {
      if (!std::exchange(function->isParsed, true))
        Parser(*this).runBody(*function);
      return function.get();
    }
  return nullptr;
}

} // namespace emulator::ptx
