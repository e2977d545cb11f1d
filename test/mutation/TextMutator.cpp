//===- TextMutator.cpp ----------------------------------------------------===//

#include "test/mutation/TextMutator.h"

#include <algorithm>
#include <cctype>
#include <sstream>

using namespace fsdp;

namespace {

using Lines = std::vector<std::string>;
using Tokens = std::vector<std::string>;

Lines linesOf(const std::string &text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::string join(const std::vector<std::string> &parts, const char *between) {
  std::string text;
  for (const std::string &part : parts)
    text += part + between;
  return text;
}

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// Names with their mark, numbers, shapes, strings, single signs, and the space between: joined,
/// they are the text again.
Tokens tokensOf(const std::string &text) {
  Tokens tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    char c = text[i];
    if (c == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])))
        ++end;
    } else if (isWord(c) || std::string("%@#!^-").find(c) != std::string::npos) {
      while (end < text.size() && isWord(text[end]))
        ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

/// Tokens of one class may replace one another.
char classOf(const std::string &token) {
  char c = token[0];
  if (std::isdigit(static_cast<unsigned char>(c)))
    return token.find('x') == std::string::npos ? '0' : 'x';
  if (c == '-' && token.size() > 1)
    return '0';
  if (std::isalpha(static_cast<unsigned char>(c)))
    return token.find('.') == std::string::npos ? 'a' : 'o';
  return std::isspace(static_cast<unsigned char>(c)) ? ' ' : c;
}

const char *const kNumbers[] = {"0",
                                "1",
                                "-1",
                                "2",
                                "3",
                                "5",
                                "64",
                                "255",
                                "2147483647",
                                "2147483648",
                                "4294967296",
                                "1099511627776",
                                "281474976710656",
                                "4611686018427387904",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "9223372036854775808",
                                "18446744073709551616",
                                "1.0e300",
                                "-0.0",
                                "0x7FF8000000000000",
                                "0.5",
                                "1.0e-300"};
const char *const kTypes[] = {"f32", "f64", "bf16",  "f16", "i1",
                              "i32", "i64", "index", "i8",  "f8E4M3FN"};

class Mutator {
public:
  Mutator(const std::string &text, const std::string &other, std::mt19937 &random)
      : text(text), other(other), random(random) {}

  std::string run() {
    for (int changes = 1 + draw(3); changes > 0; --changes)
      draw(3) ? changeTokens() : changeLines();
    return text;
  }

private:
  int draw(size_t below) { return below ? static_cast<int>(random() % below) : 0; }
  template <typename List> auto &any(List &list) { return list[draw(std::size(list))]; }

  void changeTokens() {
    Tokens tokens = tokensOf(text);
    std::vector<size_t> places;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (classOf(tokens[i]) != ' ')
        places.push_back(i);
    if (places.empty())
      return;
    size_t at = any(places);
    std::vector<size_t> alike;
    for (size_t i : places)
      if (classOf(tokens[i]) == classOf(tokens[at]))
        alike.push_back(i);
    std::vector<size_t> numbers, shapes;
    for (size_t i : places) {
      if (classOf(tokens[i]) == '0')
        numbers.push_back(i);
      if (classOf(tokens[i]) == 'x')
        shapes.push_back(i);
    }
    switch (draw(10)) {
    case 0:
      tokens[at].clear();
      break;
    case 1:
      tokens[at] += " " + tokens[at];
      break;
    case 2:
    case 3:
      tokens[at] = tokens[any(alike)];
      break;
    case 4:
      std::swap(tokens[at], tokens[any(alike)]);
      break;
    case 5:
    case 6:
      if (!numbers.empty())
        tokens[any(numbers)] = any(kNumbers);
      break;
    case 7:
      if (!shapes.empty())
        changeShape(tokens[any(shapes)]);
      break;
    case 8:
      // A type, everywhere, so that more mutants are well formed.
      changeEverywhere(tokens, shapes);
      break;
    default:
      for (size_t i = at; i < tokens.size() && i < at + 2 + draw(8); ++i)
        tokens[i].clear();
    }
    text = join(tokens, "");
  }

  /// "4x3xf32" with another size, one more, one less, or another element type.
  void changeShape(std::string &shape) {
    std::vector<std::string> parts;
    std::istringstream in(shape);
    for (std::string part; std::getline(in, part, 'x');)
      parts.push_back(part);
    switch (draw(5)) {
    case 0:
      parts.back() = any(kTypes);
      break;
    case 1:
      parts.insert(parts.begin() + draw(parts.size()), std::to_string(1 + draw(4)));
      break;
    case 2:
      parts.erase(parts.begin() + draw(parts.size()));
      break;
    default:
      parts[draw(parts.size() - 1)] =
          draw(2) ? std::to_string(draw(6)) : std::string(any(kNumbers));
    }
    shape = join(parts, "x");
    if (!shape.empty())
      shape.pop_back();
  }

  /// One size, or one element type, changed everywhere.
  void changeEverywhere(Tokens &tokens, const std::vector<size_t> &shapes) {
    if (shapes.empty())
      return;
    std::string from = tokens[any(shapes)], to = from;
    changeShape(to);
    for (std::string &token : tokens)
      if (token == from)
        token = to;
  }

  /// From line `begin` to the end of the op that begins there, regions and all.
  static size_t endOfOp(const Lines &lines, size_t begin) {
    int depth = 0;
    for (size_t i = begin; i < lines.size(); ++i) {
      for (char c : lines[i])
        depth += (c == '{') - (c == '}');
      if (depth <= 0)
        return i + 1;
    }
    return lines.size();
  }

  void changeLines() {
    Lines lines = linesOf(text);
    if (lines.empty())
      return;
    size_t at = draw(lines.size()), end = draw(3) ? endOfOp(lines, at) : at + 1;
    auto begin = lines.begin();
    Lines op(begin + at, begin + end);
    switch (draw(6)) {
    case 0:
      lines.erase(begin + at, begin + end);
      break;
    case 1:
      lines.insert(begin + at, op.begin(), op.end());
      break;
    case 2:
    case 3:
      lines.erase(begin + at, begin + end);
      lines.insert(lines.begin() + draw(lines.size() + 1), op.begin(), op.end());
      break;
    case 4:
      std::swap(lines[at], any(lines));
      break;
    default: {
      Lines theirs = linesOf(other);
      if (theirs.empty())
        return;
      size_t first = draw(theirs.size()), last = endOfOp(theirs, first);
      lines.insert(begin + at, theirs.begin() + first, theirs.begin() + last);
    }
    }
    text = join(lines, "\n");
  }

  std::string text;
  const std::string &other;
  std::mt19937 &random;
};

} // namespace

std::vector<std::string> mutation::splitModules(const std::string &text) {
  std::vector<std::string> modules(1);
  for (const std::string &line : linesOf(text)) {
    size_t comment = line.find("//");
    std::string marker = line.substr(0, 8);
    if (marker == "// -----" || line.substr(0, 6) == "//--- ")
      modules.emplace_back();
    else if (line.find_first_not_of(' ') != comment && line[0] != '#')
      modules.back() += line.substr(0, line.find(" //")) + "\n";
    if (line.substr(0, 5) == "#--- ")
      modules.emplace_back();
  }
  return modules;
}

std::string mutation::mutateText(const std::string &text, const std::string &other,
                                 std::mt19937 &random) {
  return Mutator(text, other, random).run();
}
