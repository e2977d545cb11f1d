//===- ShellWords.h - quoting for a shell -----------------------*- C++ -*-===//

#ifndef BASE_SHELLWORDS_H
#define BASE_SHELLWORDS_H

#include <string>
#include <string_view>

namespace base {

/// `word` quoted for a shell: unchanged if no character is special, else in quotes.
inline std::string shellWord(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos)
    return std::string(word);
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Adds `word` to a line of words.
inline void addShellWord(std::string &line, std::string_view word) {
  line += (line.empty() ? "" : " ") + shellWord(word);
}

} // namespace base

#endif // BASE_SHELLWORDS_H
