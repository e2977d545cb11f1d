//===- Regex.cpp ----------------------------------------------------------===//

#include "tokenizer/Regex.h"

#include "base/Error.h"
#include "base/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <new>
#include <vector>

namespace tokenizer {

using base::Error;

struct Regex::Compiled {
  std::string pattern; ///< as the file has it
  pcre2_code *code = nullptr;
  bool isNative = false; ///< compiled to machine code

  ~Compiled() { pcre2_code_free(code); }
};

namespace {

//===----------------------------------------------------------------------===//
// Expressions of Oniguruma in PCRE2
//===----------------------------------------------------------------------===//

/// White_Space, and all other characters, as members of a set.
constexpr std::string_view kSpace =
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}";
constexpr std::string_view kNoSpace =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-"
    "\\x{10ffff}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
/// Outside sets, Oniguruma includes the superscripts and fractions of Latin-1 too.
constexpr std::string_view kLoneWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

/// Translates an Oniguruma expression in Ruby syntax to the syntax of PCRE2 (with PCRE2_UTF,
/// without PCRE2_UCP). Throws an error for constructs that are not supported or have another
/// meaning in PCRE2: anchors, back references, `\b`, `\h`, sets within sets, options except `(?i:`,
/// and in that characters with foldings of several characters.
class Translator {
public:
  explicit Translator(const std::string &pattern) : pattern(pattern) {}

  std::string translate() {
    if (base::findInvalid(pattern) != std::string::npos)
      throw Error("the regular expression is not valid UTF-8");
    while (at < pattern.size()) {
      const char next = pattern[at];
      if (next == '\\')
        escape(/*inSet=*/false);
      else if (next == '[')
        set();
      else if (next == '(')
        group();
      else if (next == '{')
        repetition();
      else if (next == '^' || next == '$')
        refuse(std::string(1, next));
      else
        character();
    }
    return std::move(result);
  }

private:
  [[noreturn]] void refuse(const std::string &what) const {
    throw Error("the regular expression '" + pattern + "' has '" + what +
                "', which is not supported; expected groups, sets, repetitions, look-around, " +
                "`\\p{…}`, `\\s`, `\\d`, `\\w` and characters");
  }

  void take(std::size_t bytes) {
    result += pattern.substr(at, bytes);
    at += bytes;
  }

  /// One character, or the sign of a repetition, an alternative, the end of a group.
  ///
  /// Ignoring case, Oniguruma matches one character with several (U+00DF with "ss") and the
  /// reverse, PCRE2 does not: expressions that this may affect are refused. General punctuation has
  /// no case.
  void character(bool inSet = false) {
    const base::Character next = base::characterAt(pattern, at);
    if (!inSet && pattern[at] == ')' && !groups.empty()) {
      foldsCase = groups.back();
      groups.pop_back();
    }
    if (foldsCase && next.value >= 0x80 && (next.value < 0x2000 || next.value > 0x206f))
      refuseFolding(pattern.substr(at, next.bytes));
    if (!inSet && foldsCase && isalpha(static_cast<unsigned char>(pattern[at]))) {
      const char letter = static_cast<char>(pattern[at] | 0x20);
      const std::string two{lastLetter, letter};
      if (letterEnd == at)
        for (const char *folded : {"ss", "ff", "fi", "fl", "st"})
          if (two == folded)
            refuseFolding(pattern.substr(at - 1, 2));
      lastLetter = letter;
      letterEnd = at + 1;
    }
    take(next.bytes);
  }

  [[noreturn]] void refuseFolding(const std::string &what) const {
    throw Error("the regular expression '" + pattern + "' has '" + what +
                "' in a group without case, `(?i:`, which is not supported there; expected letters "
                "of ASCII that are no ligature");
  }

  bool beginsWith(std::string_view text) const {
    return pattern.compare(at, text.size(), text) == 0;
  }

  /// `\x41`, `\x{263a}` and `\u263a`, of `digits` digits or up to a brace.
  void number(std::size_t skip, std::size_t digits) {
    const bool braces = pattern.compare(at + skip, 1, "{") == 0;
    const std::size_t begin = at + skip + braces;
    std::size_t end = begin;
    while (end < pattern.size() && isxdigit(static_cast<unsigned char>(pattern[end])) &&
           end - begin < (braces ? 8 : digits))
      ++end;
    if (end == begin || (braces && pattern.compare(end, 1, "}") != 0) ||
        (!braces && digits == 4 && end - begin != 4))
      refuse(pattern.substr(at, 2));
    if (foldsCase)
      refuseFolding(pattern.substr(at, end + braces - at));
    result += "\\x{" + pattern.substr(begin, end - begin) + "}";
    at = end + braces;
  }

  /// In PCRE2, the name of a script includes characters that are also used with it, such as
  /// punctuation (Script_Extensions), in Oniguruma only those of the script.
  void property(const std::string &name, std::size_t bytes) {
    const bool negated = !name.empty() && name[0] == '^';
    const std::string script = "\\p{sc:" + name.substr(negated) + "}";
    int error = 0;
    std::size_t place = 0;
    pcre2_code *const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(script.data()),
                                           script.size(), PCRE2_UTF, &error, &place, nullptr);
    pcre2_code_free(code);
    if (!code)
      return take(bytes);
    result += negated == (pattern[at + 1] == 'p') ? "\\P" : "\\p";
    result += script.substr(2);
    at += bytes;
  }

  void escape(bool inSet) {
    const char kind = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    const auto members = [&](std::string_view set, bool negated = false) {
      result += inSet ? std::string(set) : (negated ? "[^" : "[") + std::string(set) + "]";
      at += 2;
    };
    switch (kind) {
    case 's':
      return members(kSpace);
    case 'S':
      return members(kNoSpace);
    case 'd':
      return members("\\p{Nd}");
    case 'D':
      return members("\\P{Nd}");
    case 'w':
      return members(inSet ? kWord : kLoneWord);
    case 'W':
      if (inSet)
        refuse("\\W");
      return members(kLoneWord, /*negated=*/true);
    case 'v': // PCRE2's is a set
      return members("\\x{b}");
    case 'x':
      return number(2, 2);
    case 'u':
      if (pattern.compare(at + 2, 1, "{") == 0)
        refuse("\\u{");
      return number(2, 4);
    case 'p':
    case 'P': {
      const std::size_t end = pattern.find('}', at);
      if (pattern.compare(at + 2, 1, "{") != 0 || end == std::string::npos)
        refuse(pattern.substr(at, 3));
      return property(pattern.substr(at + 3, end - at - 3), end + 1 - at);
    }
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
      return take(2);
    default:
      if (static_cast<unsigned char>(kind) >= 0x80 || isalnum(static_cast<unsigned char>(kind)) ||
          kind == '\0')
        refuse(pattern.substr(at, 2));
      return take(2);
    }
  }

  void set() {
    take(1);
    if (beginsWith("^"))
      take(1);
    if (beginsWith("]"))
      refuse("[]");
    while (at < pattern.size() && pattern[at] != ']') {
      if (pattern[at] == '[' || beginsWith("&&"))
        refuse(pattern.substr(at, pattern[at] == '[' ? 1 : 2));
      if (pattern[at] == '\\')
        escape(/*inSet=*/true);
      else
        character(/*inSet=*/true);
    }
    if (at == pattern.size())
      throw Error("the regular expression '" + pattern + "' has a set without its ']'");
    take(1);
  }

  void group() {
    groups.push_back(foldsCase);
    if (!beginsWith("(?") && !beginsWith("(*"))
      return take(1);
    foldsCase |= beginsWith("(?i:");
    for (const std::string_view kind : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"})
      if (beginsWith(kind))
        return take(kind.size());
    refuse(pattern.substr(at, 3));
  }

  /// `{3}`, `{1,3}`, `{1,}` and Ruby's `{,3}`; another brace is a character.
  void repetition() {
    std::size_t end = at + 1;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < pattern.size() && isdigit(static_cast<unsigned char>(pattern[end])))
        ++end;
      return pattern.substr(begin, end - begin);
    };
    const std::string least = digits();
    const bool comma = pattern.compare(end, 1, ",") == 0;
    end += comma;
    const std::string most = comma ? digits() : least;
    if (pattern.compare(end, 1, "}") != 0 || (least.empty() && most.empty())) {
      result += "\\{";
      ++at;
      return;
    }
    at = end + 1;
    result += "{" + (least.empty() ? "0" : least) + (comma ? "," + most : "") + "}";
    // Possessive and lazy in PCRE2, a repetition of the repetition in Ruby's syntax.
    if (beginsWith("+") || (beginsWith("?") && !comma))
      refuse("}" + pattern.substr(at, 1));
  }

  const std::string &pattern;
  std::size_t at = 0;
  std::string result;
  bool foldsCase = false;
  std::vector<bool> groups; ///< of the groups around this place: `foldsCase` before them
  char lastLetter = 0;
  std::size_t letterEnd = 0; ///< after it
};

//===----------------------------------------------------------------------===//
// Searches
//===----------------------------------------------------------------------===//

std::string messageOf(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char *>(text);
}

/// The data of a thread for searches.
struct Workspace {
  static constexpr std::size_t kStackBytes = 32 << 10, kMaxStackBytes = 16 << 20;
  pcre2_match_data *match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context *context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack *stack = pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr);

  Workspace() {
    if (!match || !context)
      throw std::bad_alloc();
    if (stack)
      pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Workspace() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
};

} // namespace

Regex::Regex(const std::string &pattern) : Regex(pattern, Translator(pattern).translate()) {}

Regex::Regex(const std::string &pattern, std::string translated)
    : compiled(std::make_unique<Compiled>()) {
  compiled->pattern = pattern;
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context *)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context)
    throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // Deeper nesting is an error of the compiler, not a fault of its stack.
  pcre2_set_parens_nest_limit(context.get(), 100);
  int error = 0;
  std::size_t at = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &at, context.get());
  if (!compiled->code)
    throw Error("the regular expression '" + pattern + "' is wrong: " + messageOf(error));
  compiled->isNative = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex &&) noexcept = default;
Regex &Regex::operator=(Regex &&) noexcept = default;

Regex Regex::literal(std::string_view text) {
  std::string pattern;
  for (const char byte : text) {
    if (byte == 0) { // which would end an escape
      pattern += "\\x00";
      continue;
    }
    if (static_cast<unsigned char>(byte) < 0x80 && !isalnum(static_cast<unsigned char>(byte)))
      pattern += '\\';
    pattern += byte;
  }
  return Regex(std::string(text), pattern);
}

bool Regex::search(std::string_view text, std::size_t from, Match &match) const {
  thread_local const Workspace workspace;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const int found = compiled->isNative
                        ? pcre2_jit_match(compiled->code, subject, text.size(), from, 0,
                                          workspace.match, workspace.context)
                        : pcre2_match(compiled->code, subject, text.size(), from,
                                      PCRE2_NO_UTF_CHECK, workspace.match, workspace.context);
  if (found == PCRE2_ERROR_NOMATCH)
    return false;
  if (found < 0)
    throw Error("the regular expression '" + compiled->pattern + "' fails on a text of " +
                std::to_string(text.size()) + " bytes: " + messageOf(found) +
                "; split the text into shorter documents");
  const PCRE2_SIZE *const place = pcre2_get_ovector_pointer(workspace.match);
  match = {place[0], place[1]};
  return true;
}

std::size_t Regex::nextCharacter(std::string_view text, std::size_t at) {
  return at + (at < text.size() ? base::characterAt(text, at).bytes : 1);
}

} // namespace tokenizer
