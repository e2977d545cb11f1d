//===- OptionsFile.cpp ----------------------------------------------------===//

#include "base/OptionsFile.h"

#include "base/Error.h"
#include "base/MappedFile.h"
#include "base/PrintableText.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace base {

namespace {

std::string placeIn(const std::string &path, toml::source_position at) {
  return inQuotes(path) + ", line " + std::to_string(at.line);
}

/// Finds the text at positions, each a line and a column in characters. Positions in the order of
/// the text are found in one pass over each line.
class Places {
public:
  explicit Places(std::string_view text) : text(text), lines{0} {
    for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
      lines.push_back(at + 1);
  }

  std::string_view from(toml::source_position position) {
    if (position.line != line || position.column < column) {
      line = position.line;
      column = 1;
      at = lines[line - 1];
    }
    const auto continues = [&] {
      return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    for (; column < position.column; ++column)
      do
        ++at;
      while (continues());
    return text.substr(at);
  }

private:
  std::string_view text;
  std::vector<std::size_t> lines; ///< where each begins
  toml::source_index line = 0, column = 0;
  std::size_t at = 0; ///< of these
};

/// A number in the form that options accept: an integer in decimal digits, any other number as in
/// the file, without '_' and a leading '+'.
std::string numberOf(const toml::node &node, Places &places) {
  if (const auto *integer = node.as_integer())
    return std::to_string(integer->get());
  std::string number;
  for (char c : places.from(node.source().begin)) {
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.' ||
          c == '_'))
      break;
    if (c != '_' && !(c == '+' && number.empty()))
      number += c;
  }
  return number;
}

const char *nameOf(const toml::node &node) {
  switch (node.type()) {
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return "a list";
  case toml::node_type::boolean:
    return node.as_boolean()->get() ? "true" : "false";
  default:
    return "a date or a time";
  }
}

/// A text or a number. Throws OptionsFileError, a message that begins with `before`, for other
/// types.
std::string valueOf(const toml::node &node, Places &places, const std::string &before) {
  if (const auto *value = node.as_string()) {
    if (value->get().find('\0') != std::string::npos)
      throw OptionsFileError(before + "got a text with a NUL character, which no option takes");
    return value->get();
  }
  if (node.is_number())
    return numberOf(node, places);
  throw OptionsFileError(before + "got " + nameOf(node) + ", expected a text or a number");
}

} // namespace

std::vector<FileOption> readOptionsFile(std::string_view text, const std::string &path) {
  constexpr std::string_view mark = "\xEF\xBB\xBF"; // of UTF-8
  if (text.substr(0, mark.size()) == mark)
    text.remove_prefix(mark.size());
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    std::string why(parsed.error().description());
    throw OptionsFileError(placeIn(path, parsed.error().source().begin) +
                           ": it is not TOML: " + why);
  }
  Places places(text);
  std::vector<std::pair<toml::source_index, FileOption>> found;
  for (const auto &[key, node] : parsed.table()) {
    const toml::source_position at = key.source().begin;
    FileOption option;
    option.key = std::string(key.str());
    option.where = placeIn(path, at);
    const std::string before = option.where + ": " + option.key + ": ";
    if (node.is_table() || node.is_array_of_tables())
      throw OptionsFileError(before + "got a table, expected options without tables: a key and its "
                                      "value each");
    if (const auto *flag = node.as_boolean()) {
      option.kind = flag->get() ? FileOption::True : FileOption::False;
    } else if (const auto *list = node.as_array()) {
      option.kind = FileOption::List;
      for (const toml::node &element : *list)
        option.values.push_back(valueOf(element, places, before));
    } else {
      option.values.push_back(valueOf(node, places, before));
    }
    found.emplace_back(at.line, std::move(option));
  }
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<FileOption> options;
  for (auto &[line, option] : found)
    options.push_back(std::move(option));
  return options;
}

std::string ExpandedArguments::placeOf(const std::string &option, const std::string &text) const {
  for (const Value &value : fromFiles)
    if (value.option == option && value.text == text)
      return value.where + ": ";
  return "";
}

//===----------------------------------------------------------------------===//
// @FILE
//===----------------------------------------------------------------------===//

static bool isFlag(const CLI::Option &option) { return option.get_expected_min() == 0; }
static bool addsUp(const CLI::Option &option) { return option.get_expected_max() > 1; }

/// The option that `key` names. Throws OptionsFileError if no such option is allowed in a file.
static const CLI::Option &optionOf(const CLI::App &app, const FileOption &given) {
  const auto find = [&](const std::string &key) {
    const CLI::Option *option = key.empty() ? nullptr : app.get_option_no_throw("--" + key);
    return option && option->get_configurable() ? option : nullptr;
  };
  if (const CLI::Option *option = find(given.key))
    return *option;
  std::string other = given.key;
  std::replace(other.begin(), other.end(), '_', '-');
  other.erase(0, std::min(other.find_first_not_of('-'), other.size()));
  const std::string got = given.where + ": got the key " + inQuotes(given.key);
  if (find(other))
    throw OptionsFileError(got + ", expected " + inQuotes(other));
  for (const std::string &name : {"--" + other, "-" + other})
    if (const CLI::Option *option = app.get_option_no_throw(name)) {
      const std::vector<std::string> &whole = option->get_lnames();
      throw OptionsFileError(got + (name[1] == '-' || whole.empty() || !find(whole.front())
                                        ? ": " + inQuotes(name) + " is for the command line alone"
                                        : ", expected " + inQuotes(whole.front())));
    }
  throw OptionsFileError(got + ", which is not an option of " + inQuotes(app.get_name()) +
                         "; keys are the names of options, without their '--'");
}

static void expandFile(const CLI::App &app, const std::string &path, ExpandedArguments &expanded) {
  std::vector<FileOption> options;
  try {
    const MappedFile file(path);
    options = readOptionsFile({file.data(), file.size()}, path);
  } catch (const Error &error) {
    throw OptionsFileError("@" + printable(path) + ": " + error.describe());
  }
  for (const FileOption &given : options) {
    const CLI::Option &option = optionOf(app, given);
    const std::string name = "--" + given.key, before = given.where + ": " + given.key + ": ";
    const bool isTruth = given.kind == FileOption::True || given.kind == FileOption::False;
    if (isFlag(option) != isTruth)
      throw OptionsFileError(before +
                             (isTruth ? std::string("got ") +
                                            (given.kind == FileOption::True ? "true" : "false") +
                                            ", expected " + (addsUp(option) ? "texts" : "a value")
                                      : "got a value, expected true or false"));
    if (given.kind == FileOption::List && !addsUp(option))
      throw OptionsFileError(before + "got a list, expected one value");
    auto &words = expanded.words;
    if (given.kind == FileOption::False)
      words.erase(std::remove(words.begin(), words.end(), name), words.end());
    if (given.kind == FileOption::True)
      words.push_back(name);
    for (const std::string &value : given.values) {
      if (value.empty())
        throw OptionsFileError(before + "got an empty text; give a value or leave the key out");
      words.push_back(name + "=" + value);
      expanded.fromFiles.push_back({name, value, given.where});
    }
  }
}

ExpandedArguments expandArguments(const CLI::App &app, const std::vector<std::string> &arguments) {
  ExpandedArguments expanded;
  bool isValue = false; // of the option before it
  for (const std::string &argument : arguments) {
    if (!isValue && argument[0] == '@') {
      if (argument.size() == 1)
        throw OptionsFileError("got '@' without the name of a file");
      expandFile(app, argument.substr(1), expanded);
      continue;
    }
    expanded.words.push_back(argument);
    const CLI::Option *option = !isValue && argument[0] == '-' && argument.size() > 1
                                    ? app.get_option_no_throw(argument)
                                    : nullptr;
    isValue = option && !isFlag(*option);
  }
  return expanded;
}

//===----------------------------------------------------------------------===//
// --print-config
//===----------------------------------------------------------------------===//

/// A number if it reads back as the same text, otherwise a string in quotes. Throws
/// OptionsFileError, a message that begins with `before`, if it is not UTF-8.
static std::string tomlOf(const std::string &value, const std::string &before) {
  const std::string line = "x = " + value;
  Places places(line);
  if (const toml::parse_result parsed = toml::parse(line); parsed)
    if (const toml::node *node = parsed.table().get("x");
        node && parsed.table().size() == 1 && node->is_number() && numberOf(*node, places) == value)
      return value;
  std::string text = "\"";
  for (char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += '\\';
    text += code < 0x20 || code == 0x7F ? format("\\u%04x", code) : std::string(1, c);
  }
  text += '"';
  if (!toml::parse("x = " + text))
    throw OptionsFileError(before + "got " + inQuotes(value) +
                           ", which is not UTF-8, as TOML is: rename what it names");
  return text;
}

static void write(const CLI::App &app, std::string &given, std::string &defaults) {
  for (const CLI::Option *option : app.get_options()) {
    const std::string name = option->get_name();
    if (!option->get_configurable() || name.compare(0, 2, "--") != 0)
      continue;
    const std::string key = name.substr(2) + " = ", before = "--print-config: " + name + ": ";
    const std::vector<std::string> values = option->results();
    if (option->count() == 0) {
      if (const std::string &value = option->get_default_str(); !value.empty())
        defaults += "# " + key + tomlOf(value, before) + "\n";
    } else if (isFlag(*option)) {
      given += key + "true\n";
    } else if (!addsUp(*option) || values.size() == 1) {
      given += key + tomlOf(values.back(), before) + "\n";
    } else {
      given += key + "[\n";
      for (const std::string &value : values)
        given += "  " + tomlOf(value, before) + ",\n";
      given += "]\n";
    }
  }
  for (const CLI::App *group : app.get_subcommands([](const CLI::App *) { return true; }))
    write(*group, given, defaults);
}

std::string optionsFileText(const CLI::App &app, const std::string &command) {
  std::string given, defaults;
  write(app, given, defaults);
  return "# " + command + " @FILE reads this.\n" + given +
         (defaults.empty() ? "" : "\n# Defaults of options that were not given:\n" + defaults);
}

} // namespace base
