//===- Documents.cpp ------------------------------------------------------===//

#include "tools/fsdpc-tokenize/Documents.h"

#include "base/Error.h"
#include "base/OutputPath.h"
#include "base/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <utility>

namespace fsdpc {

using base::Error;

namespace {

constexpr const char *kRemedy =
    "; repair the text, or give --replace-invalid to take U+FFFD for it";

bool endsWith(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

/// The number of an escape `\uXXXX` at `at`; -1 if there is none.
int escapeAt(std::string_view text, std::size_t at) {
  if (text.size() - at < 6 || text[at] != '\\' || text[at + 1] != 'u')
    return -1;
  int value = 0;
  for (const char c : text.substr(at + 2, 4)) {
    if (!isxdigit(static_cast<unsigned char>(c)))
      return -1;
    value = value * 16 + (isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

/// Replaces escapes of half a surrogate pair, which are not characters; returns the first one, or
/// "".
std::string replaceLoneSurrogates(std::string &json) {
  std::string first;
  for (std::size_t at = json.find('\\'); at != json.npos; at = json.find('\\', at)) {
    const int value = escapeAt(json, at);
    if (value < 0xd800 || value > 0xdfff) {
      at += value < 0 ? 2 : 6;
      continue;
    }
    const int next = value < 0xdc00 && at + 6 < json.size() ? escapeAt(json, at + 6) : -1;
    if (next >= 0xdc00 && next <= 0xdfff) {
      at += 12;
      continue;
    }
    if (first.empty())
      first = json.substr(at, 6);
    json.replace(at, 6, "\\ufffd");
    at += 6;
  }
  return first;
}

/// Takes one field of an object, and looks at nothing else.
class FieldReader final : public nlohmann::json_sax<nlohmann::json> {
public:
  FieldReader(const std::string &field, std::string &text) : field(field), text(text) {}

  std::string fault, names;
  bool isObject = false, found = false;

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a boolean"); }
  bool number_integer(std::int64_t) override { return other("a number"); }
  bool number_unsigned(std::uint64_t) override { return other("a number"); }
  bool number_float(double, const std::string &) override { return other("a number"); }
  bool binary(binary_t &) override { return other("bytes"); }
  bool string(std::string &value) override {
    if (depth != 1 || !isField)
      return true;
    text = std::move(value);
    found = true;
    isField = false;
    return true;
  }
  bool key(std::string &name) override {
    if (depth != 1)
      return true;
    isField = name == field;
    if (names.size() < 200)
      names += (names.empty() ? "'" : ", '") + name + "'";
    return true;
  }
  bool start_object(std::size_t) override {
    isObject |= depth == 0;
    return other("an object") && (++depth, true);
  }
  bool start_array(std::size_t) override { return other("an array") && (++depth, true); }
  bool end_object() override { return --depth, true; }
  bool end_array() override { return --depth, true; }
  bool parse_error(std::size_t at, const std::string &,
                   const nlohmann::detail::exception &) override {
    fault = "got no JSON object (a fault at byte " + std::to_string(at) + " of the line)";
    return false;
  }

private:
  bool other(const char *what) {
    if (depth == 1 && isField)
      fault = "field '" + field + "' is " + what;
    return fault.empty();
  }

  const std::string &field;
  std::string &text;
  std::size_t depth = 0;
  bool isField = false;
};

} // namespace

void Document::refuse(const std::string &why) const {
  const char *const kinds[] = {"", ", document ", ", line "};
  throw Error("'" + file->path() + "'" + kinds[kind] + (kind ? std::to_string(number) : "") + ": " +
              why);
}

std::string_view Document::read(const DocumentOptions &options, std::string &storage) const {
  std::string_view valid = bytes;
  std::string replaced;
  if (const std::size_t at = base::findInvalid(bytes); at != bytes.npos) {
    if (!options.replaceInvalid)
      refuse("got bytes that are not UTF-8 at byte " + std::to_string(at) +
             (kind == Line   ? " of the line"
              : kind == Part ? " of the document"
                             : "") +
             ", expected text" + kRemedy);
    replaced = base::replaceInvalid(bytes);
    valid = replaced;
  }
  if (kind != Line) {
    if (valid.data() == bytes.data())
      return bytes;
    storage = std::move(replaced);
    return storage;
  }
  if (valid.find("\\u") != valid.npos) {
    if (valid.data() == bytes.data())
      replaced = bytes;
    if (const std::string escape = replaceLoneSurrogates(replaced);
        !escape.empty() && !options.replaceInvalid)
      refuse("got the escape '" + escape + "', which is half a character, expected text" + kRemedy);
    valid = replaced;
  }
  FieldReader reader(options.field, storage);
  nlohmann::json::sax_parse(valid.begin(), valid.end(), &reader);
  if (!reader.fault.empty() || !reader.isObject)
    refuse((reader.fault.empty() ? "got a value that is not a JSON object" : reader.fault) +
           ", expected an object with a text '" + options.field + "'; --field names another one");
  if (!reader.found)
    refuse("has no field '" + options.field + "' but " +
           (reader.names.empty() ? "none" : reader.names) + "; choose one with --field");
  return storage;
}

DocumentSource::DocumentSource(std::vector<std::string> files, std::string between)
    : paths(std::move(files)), separator(std::move(between)) {
  for (const std::string &path : paths)
    base::requireReadable(path);
}

bool DocumentSource::openNext() {
  if (index == paths.size())
    return false;
  const std::string &path = paths[index++];
  file = std::make_shared<base::MappedFile>(path);
  kind = endsWith(path, ".jsonl") || endsWith(path, ".ndjson") ? Document::Line
         : separator.empty()                                   ? Document::Whole
                                                               : Document::Part;
  at = number = 0;
  return true;
}

bool DocumentSource::next(std::size_t bytes, std::vector<Document> &documents) {
  std::size_t taken = 0;
  while (taken < bytes && (file || openNext())) {
    const std::string_view all(file->data(), file->size());
    if (kind == Document::Whole) {
      documents.push_back({file, all, kind, 1});
      taken += all.size();
      file.reset();
      continue;
    }
    if (at >= all.size()) {
      file.reset();
      continue;
    }
    const std::string_view between = kind == Document::Line ? std::string_view("\n") : separator;
    const std::size_t end = std::min(all.find(between, at), all.size());
    const std::string_view document = all.substr(at, end - at);
    at = end + between.size();
    ++number;
    if (document.find_first_not_of(" \t\r\n") == document.npos)
      continue;
    documents.push_back({file, document, kind, number});
    taken += document.size();
  }
  return !documents.empty();
}

} // namespace fsdpc
