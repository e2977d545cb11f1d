//===- Options.h - options on top of CLI11 ----------------------*- C++ -*-===//
// Shared by the command lines of the compiler and of generated programs, on top of CLI11, whose
// conversions accept octal and hexadecimal numbers, blanks, and empty values.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/Numbers.h"
#include "base/OptionsFile.h"
#include "base/StandardOutput.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace base {

/// Takes the text of a value. Returns an empty text, or the fault.
using Take = std::function<std::string(const std::string &)>;

/// A value that an option does not take.
class InvalidValue : public CLI::ValidationError {
public:
  InvalidValue(const std::string &option, std::string text, const std::string &fault)
      : CLI::ValidationError(option, fault), option(option), text(std::move(text)) {}
  const std::string option, text;
};

/// Adds an option with one value, passed to `take`; `type` denotes the value in the help. If it is
/// given several times, all values are checked and the last one counts.
inline CLI::Option *addOption(CLI::App &app, const std::string &name, const std::string &type,
                              const std::string &description, Take take) {
  CLI::callback_t each = [name, take = std::move(take)](const CLI::results_t &values) {
    for (const std::string &text : values)
      if (const std::string wrong = take(text); !wrong.empty())
        throw InvalidValue(name, text, wrong);
    return true;
  };
  return app.add_option(name, std::move(each), description)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// The same for a repeatable option: all values are kept.
inline CLI::Option *addRepeated(CLI::App &app, const std::string &name, const std::string &type,
                                const std::string &description, Take take) {
  return addOption(app, name, type, description, std::move(take))
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
}

/// An option that accepts any text; `Text` is a string or an optional one.
template <typename Text>
CLI::Option *addText(CLI::App &app, const std::string &name, const std::string &type, Text &value,
                     const std::string &description) {
  return addOption(app, name, type, description, [&value](const std::string &text) {
    value = text;
    return std::string();
  });
}

/// A repeatable option: it takes all values up to the next option, each time that it is given.
inline CLI::Option *addList(CLI::App &app, const std::string &name, const std::string &type,
                            std::vector<std::string> &values, const std::string &description) {
  return app.add_option(name, values, description)
      ->type_name(type)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// An integer of `range`; `Value` is an integer or an optional one.
template <typename Value, typename Int = std::int64_t>
CLI::Option *addInteger(CLI::App &app, const std::string &name, const std::string &type,
                        Value &value, const std::string &description, IntegerRange<Int> range) {
  return addOption(app, name, type, description, [&value, range](const std::string &text) {
    Int parsed{};
    std::string wrong = parseInteger(text, range, parsed);
    if (wrong.empty())
      value = parsed;
    return wrong;
  });
}

/// A number of `range`; `Value` is a double or an optional one.
template <typename Value>
CLI::Option *addNumber(CLI::App &app, const std::string &name, const std::string &type,
                       Value &value, const std::string &description, NumberRange range) {
  return addOption(app, name, type, description, [&value, range](const std::string &text) {
    double parsed = 0;
    std::string wrong = parseNumber(text, range, parsed);
    if (wrong.empty())
      value = parsed;
    return wrong;
  });
}

/// "a, b or c"
inline std::string listed(const std::vector<std::string> &words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

/// One of `words`; `Text` is a string or an optional one.
template <typename Text>
CLI::Option *addChoice(CLI::App &app, const std::string &name, Text &value,
                       const std::string &description, const std::vector<std::string> &words) {
  return addOption(app, name, CLI::detail::join(words, "|"), description,
                   [&value, words](const std::string &text) {
                     if (std::find(words.begin(), words.end(), text) == words.end())
                       return mismatch(text, listed(words));
                     value = text;
                     return std::string();
                   });
}

/// An option without a value.
inline CLI::Option *addFlag(CLI::App &app, const std::string &name, bool &value,
                            const std::string &description) {
  return app.add_flag(name, value, description)->disable_flag_override();
}

/// Adds --print-config, and makes parseArguments accept @FILE.
inline CLI::Option *addOptionsFiles(CLI::App &app, bool &printsConfig) {
  return addFlag(app, "--print-config", printsConfig,
                 "print the options given, those of @FILE.toml included, as TOML that @FILE.toml "
                 "reads, and exit")
      ->configurable(false);
}

/// Parses `arguments`, without the program's name. Returns them with each @FILE replaced by the
/// options of that file (`app` accepts @FILE after addOptionsFiles). Throws CLI::CallForHelp or
/// CLI::CallForVersion if one of these is requested, and `Misuse`, an exception constructed from a
/// message, for every error.
template <typename Misuse>
std::vector<std::string> parseArguments(CLI::App &app, std::vector<std::string> arguments) {
  for (const std::string &argument : arguments) {
    if (argument.empty())
      throw Misuse("got an empty argument, expected an option or a value");
    if (argument.size() > 2 && argument[0] == '-' && argument[1] == '-' &&
        argument.find('=') == argument.size() - 1)
      throw Misuse(inQuotes(argument) + " has no value; give one or leave the option out");
  }
  ExpandedArguments expanded;
  try {
    expanded = app.get_option_no_throw("--print-config") ? expandArguments(app, arguments)
                                                         : ExpandedArguments{arguments, {}};
  } catch (const OptionsFileError &error) {
    throw Misuse(error.what());
  }
  // CLI11 takes a vector from its back.
  arguments.assign(expanded.words.rbegin(), expanded.words.rend());
  try {
    app.parse(std::move(arguments));
    return expanded.words;
  } catch (const CLI::Success &) { // help or version
    throw;
  } catch (const CLI::ExtrasError &error) {
    const std::vector<std::string> unknown = app.remaining();
    if (unknown.empty())
      throw Misuse(error.what());
    throw Misuse(std::string(unknown.front()[0] == '-' ? "unknown option" : "unexpected argument") +
                 " " + inQuotes(unknown.front()));
  } catch (const CLI::ArgumentMismatch &error) {
    // "--lr: 1 required X missing", or "record was given a disallowed flag override"
    const std::string what = error.what();
    if (what.find(" required ") != std::string::npos)
      throw Misuse(what.substr(0, what.find(':')) +
                   " has no value; give one or leave the option out");
    throw Misuse("--" + what.substr(0, what.find(' ')) + " takes no value");
  } catch (const InvalidValue &error) {
    throw Misuse(expanded.placeOf(error.option, error.text) + error.what());
  } catch (const CLI::ParseError &error) {
    throw Misuse(error.what());
  }
}

/// Prints the help or the version for the exception that parseArguments throws, as printResult
/// does. Returns the exit status.
inline int printAsked(const CLI::App &app, const CLI::Success &asked) {
  std::ostringstream text;
  const int status = app.exit(asked, text, text);
  printResult(text.str());
  return status;
}

} // namespace base

#endif // BASE_OPTIONS_H
