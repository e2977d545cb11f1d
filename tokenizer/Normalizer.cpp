//===- Normalizer.cpp -----------------------------------------------------===//

#include "tokenizer/Normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tokenizer {

namespace {

struct Form {
  const char *name;
  int options;
};
constexpr int kCompatible = UTF8PROC_STABLE | UTF8PROC_COMPAT;
constexpr Form kForms[] = {{"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
                           {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
                           {"NFKC", kCompatible | UTF8PROC_COMPOSE},
                           {"NFKD", kCompatible | UTF8PROC_DECOMPOSE}};

bool isAscii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

/// Appends `text` in a normalization form.
void appendForm(std::string_view text, int options, std::string &result) {
  utf8proc_uint8_t *form = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &form, static_cast<utf8proc_option_t>(options));
  if (size < 0)
    throw std::bad_alloc(); // of valid UTF-8 nothing else fails
  result.append(reinterpret_cast<const char *>(form), static_cast<std::size_t>(size));
  std::free(form);
}

/// No form changes ASCII, and no character is composed or reordered across two characters of ASCII:
/// only non-ASCII text is normalized, with the preceding character.
std::string normalize(std::string_view text, int options) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto wide = std::find_if_not(text.begin(), text.end(), [](char c) { return isAscii(c); });
    auto begin = static_cast<std::size_t>(wide - text.begin());
    if (begin < text.size() && begin > 0)
      --begin;
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty())
      break;
    std::size_t end = 1;
    while (end < text.size() && !isAscii(text[end]))
      ++end;
    appendForm(text.substr(0, end), options, result);
    text.remove_prefix(end);
  }
  return result;
}

} // namespace

std::string replaceMatches(std::string_view text, const Regex &pattern, std::string_view content) {
  std::string result;
  std::size_t done = 0;
  pattern.forEachMatch(text, [&](std::size_t begin, std::size_t end) {
    result += text.substr(done, begin - done);
    result += content;
    done = end;
  });
  return result += text.substr(done);
}

Regex readPattern(const Entry &entry) {
  const Entry pattern = entry.at("pattern");
  if (const std::optional<Entry> regex = pattern.find("Regex"))
    return regex->placed([&] { return Regex(regex->text()); });
  if (const std::optional<Entry> text = pattern.find("String"))
    return text->placed([&] { return Regex::literal(text->text()); });
  pattern.mismatch("{\"Regex\": …} or {\"String\": …}");
}

void Normalizer::add(const Entry &entry) {
  const std::string type = entry.type();
  if (type == "Sequence") {
    for (const Entry &each : entry.at("normalizers").list())
      add(each);
    return;
  }
  for (const Form &form : kForms)
    if (type == form.name) {
      steps.push_back({Step::Form, form.options, "", std::nullopt});
      return;
    }
  if (type == "Prepend")
    steps.push_back({Step::Prepend, 0, entry.at("prepend").text(), std::nullopt});
  else if (type == "Replace")
    steps.push_back({Step::Replace, 0, entry.at("content").text(), readPattern(entry)});
  else
    entry.refuseType("NFC, NFD, NFKC, NFKD, Prepend, Replace and Sequence");
}

std::string Normalizer::apply(std::string_view text, bool *keepsBegin) const {
  std::string result(text);
  for (const Step &step : steps) {
    if (result.empty())
      break;
    if (step.kind == Step::Form)
      result = normalize(result, step.form);
    else if (step.kind == Step::Prepend)
      result = step.content + result;
    else {
      Regex::Match first;
      if (keepsBegin && step.content.empty() && step.pattern->search(result, 0, first) &&
          first.begin == 0 && first.end > 0)
        *keepsBegin = false;
      result = replaceMatches(result, *step.pattern, step.content);
    }
  }
  return result;
}

} // namespace tokenizer
