//===- Entry.h - entries of tokenizer.json ----------------------*- C++ -*-===//

#ifndef TOKENIZER_ENTRY_H
#define TOKENIZER_ENTRY_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tokenizer {

/// A value of the file, with its place for messages. Every accessor throws an Error that names file
/// and place if the value is of another kind than expected. The file must live as long.
class Entry {
public:
  using Json = nlohmann::json;

  Entry(const std::string &file, const Json &root) : file(&file), value(&root) {}

  const Json &json() const { return *value; }

  /// Error: "'FILE': 'model.merges': `why`".
  [[noreturn]] void refuse(const std::string &why) const;
  /// Error: "got `got`, expected `expected`", where `got` is by default the value, cut if it is
  /// long.
  [[noreturn]] void mismatch(const std::string &expected, std::string got = "") const;

  /// The value at `name` of an object; an error if it is missing or null.
  Entry at(const std::string &name) const;
  /// The same; nothing if it is missing or null.
  std::optional<Entry> find(const std::string &name) const;
  /// The entries of an array.
  std::vector<Entry> list() const;

  std::string text() const;
  /// A text of one character.
  std::string character() const;
  bool boolean() const;
  std::uint32_t integer(std::uint32_t most) const;

  /// The boolean at `name`, `absent` if there is none.
  bool flag(const std::string &name, bool absent) const;
  /// The text at `name`; "" if there is none.
  std::string optionalText(const std::string &name) const;
  /// The text at `type`.
  std::string type() const { return at("type").text(); }
  /// The error that the kind of this entry is not supported; `supported` lists the supported kinds.
  [[noreturn]] void refuseType(const std::string &supported) const;

  /// The result of `read`; its errors get this location.
  template <typename Read> auto placed(Read read) const {
    try {
      return read();
    } catch (const std::exception &error) {
      refuse(error.what());
    }
  }

private:
  Entry inner(const std::string &step, const Json &value) const;
  void require(bool is, const char *kind) const;

  const std::string *file;
  const Json *value;
  std::string path;
};

} // namespace tokenizer

#endif // TOKENIZER_ENTRY_H
