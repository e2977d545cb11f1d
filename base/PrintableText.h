//===- PrintableText.h - text of others, as messages show it ----------------===//
#ifndef BASE_PRINTABLETEXT_H
#define BASE_PRINTABLETEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

/// `text` up to its first zero byte and at most `most` bytes of it, control characters replaced by
/// `?`: what a peer or a file says must not reach a terminal as commands.
std::string printable(std::string_view text, std::size_t most);

/// All of `text`, zero bytes replaced too.
std::string printable(std::string_view text);

/// The same for a whole message, of which the middle is left out where it is long: it quotes what
/// files and command lines say, however long that is.
std::string printableMessage(std::string_view message);

/// Some names, as messages list them: at most five.
class NameList {
public:
  void add(std::string_view name);
  std::size_t size() const { return count; }
  std::string list() const { return count > 5 ? text + ", …" : text; }

private:
  std::size_t count = 0;
  std::string text;
};

/// The same as `printable` for the name of a machine: everything but letters, digits and `._-:`
/// becomes `?`.
std::string printableHost(std::string_view text);

} // namespace base

#endif // BASE_PRINTABLETEXT_H
