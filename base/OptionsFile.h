//===- OptionsFile.h - options from TOML files ------------------*- C++ -*-===//
//
// The argument @FILE is replaced by the options of a TOML file: a key is the name of an option
// without its '--', a flag is true or false, a repeatable option may be a list.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_OPTIONSFILE_H
#define BASE_OPTIONSFILE_H

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace base {

/// An invalid options file; the message names the file, the line and the key.
struct OptionsFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A key of an options file. An integer is in decimal digits, another number as in the file,
/// without '_' and a leading '+'.
struct FileOption {
  enum Kind { Text, True, False, List };
  std::string key;
  Kind kind = Text;
  std::vector<std::string> values; ///< all elements of a list; one for a text
  std::string where;               ///< "'run.toml', line 3"
};

/// The keys of the TOML `text` in their order; messages call it `path`. Throws OptionsFileError if
/// it is not TOML, or has tables, dates, or lists within lists.
std::vector<FileOption> readOptionsFile(std::string_view text, const std::string &path);

/// A command line in which each @FILE is replaced by the options of that file.
struct ExpandedArguments {
  struct Value {
    std::string option, text, where;
  };
  std::vector<std::string> words;
  std::vector<Value> fromFiles;

  /// "'run.toml', line 3: " where a file gave `text` to `option`; empty where none did.
  std::string placeOf(const std::string &option, const std::string &text) const;
};

/// Replaces each @FILE among `arguments`, except one that is the value of an option (`--prompt
/// @FILE`). A flag that is false in a file removes the same flag before it. Throws OptionsFileError
/// as above, and if a file cannot be read, a key is not an option of `app` that files may set, or
/// its value has the wrong type.
ExpandedArguments expandArguments(const CLI::App &app, const std::vector<std::string> &arguments);

/// The options that were given to `app`, as TOML that @FILE reads back; the defaults of others are
/// comments. `command` is the command before @FILE: "gpt2 plan". Throws OptionsFileError if a value
/// is not UTF-8.
std::string optionsFileText(const CLI::App &app, const std::string &command);

} // namespace base

#endif // BASE_OPTIONSFILE_H
