//===- Decoder.cpp --------------------------------------------------------===//

#include "tokenizer/Decoder.h"

#include "tokenizer/ByteCharacters.h"
#include "tokenizer/Normalizer.h"

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tokenizer {

namespace {

/// Whether `token` is a byte, as in "<0x0A>".
bool isByte(std::string_view token) {
  return token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>' &&
         isxdigit(static_cast<unsigned char>(token[3])) &&
         isxdigit(static_cast<unsigned char>(token[4]));
}

/// Removes `content` up to `count` times from the beginning of `text`; returns how often.
std::size_t strip(std::string &text, std::string_view content, std::size_t count) {
  std::size_t done = 0;
  while (done < count && text.compare(done * content.size(), content.size(), content) == 0)
    ++done;
  text.erase(0, done * content.size());
  return done;
}

} // namespace

Decoder::Decoder(const Entry &entry) : blanks(false) { add(entry); }

void Decoder::add(const Entry &entry) {
  const std::string type = entry.type();
  if (type == "Sequence") {
    for (const Entry &each : entry.at("decoders").list())
      add(each);
    return;
  }
  if (type == "Strip") {
    if (const Entry stop = entry.at("stop"); stop.integer(UINT32_MAX) != 0)
      stop.mismatch("0; a text is written as its tokens come, and keeps its end");
    Step step{fused ? Step::StripAll : Step::Strip, std::nullopt};
    step.content = entry.at("content").character();
    step.count = entry.at("start").integer(UINT32_MAX);
    steps.push_back(std::move(step));
    return;
  }
  if (type == "Fuse") {
    fused = true;
    return;
  }
  if (type != "ByteLevel" && type != "Replace" && type != "ByteFallback" && type != "Metaspace")
    entry.refuseType("ByteLevel, Replace, ByteFallback, Metaspace, Strip, Fuse and Sequence");
  if (fused || hasBytes)
    entry.refuse("got type '" + type + "' behind " + (fused ? "Fuse" : "ByteFallback") +
                 ", expected Fuse and Strip alone; nothing else is supported there yet");
  if (type == "ByteLevel") {
    steps.push_back({Step::ByteLevel, std::nullopt});
    fused = true; // all bytes are one text then
  } else if (type == "Replace") {
    steps.push_back({Step::Replace, readPattern(entry), entry.at("content").text()});
  } else if (type == "ByteFallback") {
    steps.push_back({Step::ByteFallback, std::nullopt});
    hasBytes = true;
  } else {
    addMetaspace(entry);
  }
}

void Decoder::addMetaspace(const Entry &entry) {
  Step step{Step::Metaspace, std::nullopt, entry.at("replacement").character()};
  step.pattern = Regex::literal(step.content);
  const std::optional<Entry> scheme = entry.find("prepend_scheme");
  step.dropsFirst = scheme ? scheme->text() != "never" : entry.flag("add_prefix_space", true);
  steps.push_back(std::move(step));
}

Decoder::State Decoder::begin() const {
  State state;
  for (const Step &step : steps)
    if (step.kind == Step::StripAll)
      state.stripped.push_back(step.count);
  return state;
}

std::string Decoder::next(std::string_view token, State &state) const {
  std::string text(token);
  const bool isFirst = std::exchange(state.isFirst, false);
  if (blanks)
    return isFirst ? text : " " + text;
  std::size_t stripper = 0;
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::ByteLevel:
      // A token that is added to the vocabulary may have characters that represent no byte.
      if (std::optional<std::string> bytes = bytesOfCharacters(text))
        text = std::move(*bytes);
      break;
    case Step::Replace:
      text = replaceMatches(text, *step.pattern, step.content);
      break;
    case Step::ByteFallback:
      if (isByte(text))
        text = std::string(1, static_cast<char>(std::strtoul(text.c_str() + 3, nullptr, 16)));
      break;
    case Step::Metaspace:
      text = replaceMatches(text, *step.pattern, isFirst && step.dropsFirst ? "" : " ");
      break;
    case Step::Strip:
      strip(text, step.content, step.count);
      break;
    case Step::StripAll: {
      std::size_t &left = state.stripped[stripper++];
      left -= strip(text, step.content, left);
      if (!text.empty())
        left = 0; // the rest is not at the beginning
      break;
    }
    }
  }
  return text;
}

} // namespace tokenizer
