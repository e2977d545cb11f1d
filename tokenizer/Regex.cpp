//===- Regex.cpp ----------------------------------------------------------===//

#include "tokenizer/Regex.h"

#include "base/Error.h"
#include "base/Utf8.h"
#include "tokenizer/RegexSyntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <new>

namespace tokenizer {

using base::Error;

struct Regex::Compiled {
  std::string pattern; ///< as the file has it
  pcre2_code *code = nullptr;
  bool isNative = false; ///< compiled to machine code

  ~Compiled() { pcre2_code_free(code); }
};

namespace {

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

Regex::Regex(const std::string &pattern) : Regex(pattern, translateRegex(pattern)) {}

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
