//===- OptionsFile.h - options from TOML files ------------------*- C++ -*-===//
//
// The argument @FILE stands for the options of a TOML file: a key is the name of an option without
// its '--', a flag is true or false, an option that adds up may be a list.
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

/// A file of options that is wrong; the message names the file, the line and the key.
struct OptionsFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A key of a file of options. An integer has decimal digits, another number the text that the file
/// has, without '_' and a leading '+'.
struct FileOption {
  enum Kind { Text, True, False, List };
  std::string key;
  Kind kind = Text;
  std::vector<std::string> values; ///< of a list as many as it has, of a text one
  std::string where;               ///< "'run.toml', line 3"
};

/// The keys of the TOML `text` in their order; messages call it `path`. OptionsFileError: it is not
/// TOML, or has tables, dates, or lists within lists.
std::vector<FileOption> readOptionsFile(std::string_view text, const std::string &path);

/// A command line in which the options of files stand in the place of @FILE.
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
/// @FILE`). A flag that is false in a file removes the same flag before it. OptionsFileError: as
/// above; a file cannot be read; a key is no option of `app` that files may have, or its value is
/// of another type.
ExpandedArguments expandArguments(const CLI::App &app, const std::vector<std::string> &arguments);

/// The options that were given to `app`, as TOML from which @FILE gives the same; the defaults of
/// others are comments. `command` is what stands before @FILE: "gpt2 plan". OptionsFileError: a
/// value is not UTF-8.
std::string optionsFileText(const CLI::App &app, const std::string &command);

} // namespace base

#endif // BASE_OPTIONSFILE_H
