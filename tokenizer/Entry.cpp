//===- Entry.cpp ----------------------------------------------------------===//

#include "tokenizer/Entry.h"

#include "base/Error.h"
#include "base/JsonEntries.h"
#include "base/Utf8.h"

namespace tokenizer {

void Entry::refuse(const std::string &why) const {
  throw base::Error("'" + *file + "': " + (path.empty() ? "" : "'" + path + "': ") + why);
}

void Entry::mismatch(const std::string &expected, std::string got) const {
  if (got.empty())
    got = base::shownEntry(*value);
  refuse("got " + got + ", expected " + expected);
}

Entry Entry::inner(const std::string &step, const Json &json) const {
  Entry entry(*file, json);
  entry.path = path.empty() || step[0] == '[' ? path + step : path + "." + step;
  return entry;
}

void Entry::require(bool is, const char *kind) const {
  if (!is)
    mismatch(kind);
}

std::optional<Entry> Entry::find(const std::string &name) const {
  require(value->is_object(), "an object");
  const auto found = value->find(name);
  if (found == value->end() || found->is_null())
    return std::nullopt;
  return inner(name, *found);
}

Entry Entry::at(const std::string &name) const {
  if (std::optional<Entry> found = find(name))
    return *found;
  refuse("has no '" + name + "'; the file is not one of the library `tokenizers`, or incomplete");
}

std::vector<Entry> Entry::list() const {
  require(value->is_array(), "an array");
  std::vector<Entry> entries;
  for (const Json &each : *value)
    entries.push_back(inner("[" + std::to_string(entries.size()) + "]", each));
  return entries;
}

std::string Entry::text() const {
  require(value->is_string(), "a text");
  return value->get<std::string>();
}

std::string Entry::character() const {
  std::string text = this->text();
  if (text.empty() || base::characterAt(text, 0).bytes != text.size())
    mismatch("one character");
  return text;
}

bool Entry::boolean() const {
  require(value->is_boolean(), "true or false");
  return value->get<bool>();
}

std::uint32_t Entry::integer(std::uint32_t most) const {
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most)
    mismatch("an integer from 0 to " + std::to_string(most));
  return value->get<std::uint32_t>();
}

bool Entry::flag(const std::string &name, bool absent) const {
  const std::optional<Entry> found = find(name);
  return found ? found->boolean() : absent;
}

std::string Entry::optionalText(const std::string &name) const {
  const std::optional<Entry> found = find(name);
  return found ? found->text() : "";
}

void Entry::refuseType(const std::string &supported) const {
  mismatch(supported + ", which are supported", "type " + base::shownEntry(at("type").json()));
}

} // namespace tokenizer
