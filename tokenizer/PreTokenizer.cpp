//===- PreTokenizer.cpp ---------------------------------------------------===//

#include "tokenizer/PreTokenizer.h"

#include "tokenizer/Normalizer.h"

#include <algorithm>
#include <utility>

namespace tokenizer {

namespace {

/// GPT-2's expression, by which ByteLevel splits.
constexpr const char *kByteLevelWords =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr const char *kNumber = "\\p{N}";
constexpr const char *kPunctuation = "[!-/:-@\\[-`{-~\\p{P}]";

/// A part of a text, and whether it matches the expression.
struct Part {
  std::size_t begin, end;
  bool matches;
};

} // namespace

PreTokenizer::Behavior PreTokenizer::readBehavior(const Entry &entry) {
  const std::string name = entry.text();
  constexpr std::pair<const char *, Behavior> kBehaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  for (const auto &[each, behavior] : kBehaviors)
    if (name == each)
      return behavior;
  entry.mismatch("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

void PreTokenizer::add(const Entry &entry) {
  const std::string type = entry.type();
  if (byteLevel)
    entry.refuse("got type '" + type +
                 "' behind ByteLevel, expected ByteLevel as the last step; nothing else is "
                 "supported yet");
  if (type == "Sequence") {
    for (const Entry &each : entry.at("pretokenizers").list())
      add(each);
  } else if (type == "Split") {
    addSplit(readPattern(entry), readBehavior(entry.at("behavior")), entry.flag("invert", false));
  } else if (type == "ByteLevel") {
    addByteLevel(entry);
  } else if (type == "Metaspace") {
    addMetaspace(entry);
  } else if (type == "Digits") {
    addSplit(Regex(kNumber),
             entry.flag("individual_digits", false) ? Behavior::Isolated : Behavior::Contiguous);
  } else if (type == "Punctuation") {
    const std::optional<Entry> behavior = entry.find("behavior");
    addSplit(Regex(kPunctuation), behavior ? readBehavior(*behavior) : Behavior::Isolated);
  } else {
    entry.refuseType("Split, ByteLevel, Metaspace, Digits, Punctuation and Sequence");
  }
}

void PreTokenizer::addSplit(Regex pattern, Behavior behavior, bool invert) {
  Step step{Step::Split, std::move(pattern)};
  step.behavior = behavior;
  step.invert = invert;
  steps.push_back(std::move(step));
}

void PreTokenizer::addByteLevel(const Entry &entry) {
  if (entry.flag("add_prefix_space", true))
    steps.push_back({Step::PrefixSpace, std::nullopt});
  if (entry.flag("use_regex", true))
    addSplit(Regex(kByteLevelWords), Behavior::Isolated);
  byteLevel = true;
}

void PreTokenizer::addMetaspace(const Entry &entry) {
  Step step{Step::Metaspace, std::nullopt};
  step.replacement = entry.at("replacement").character();
  step.splits = entry.flag("split", true);
  // Older files have add_prefix_space instead of the scheme.
  step.prepend =
      entry.flag("add_prefix_space", true) ? PrependScheme::Always : PrependScheme::Never;
  if (const std::optional<Entry> scheme = entry.find("prepend_scheme")) {
    const std::string name = scheme->text();
    if (name != "always" && name != "first" && name != "never")
      scheme->mismatch("always, first or never");
    step.prepend = name == "always"  ? PrependScheme::Always
                   : name == "first" ? PrependScheme::First
                                     : PrependScheme::Never;
  }
  step.pattern = Regex::literal(step.replacement);
  steps.push_back(std::move(step));
}

void PreTokenizer::split(std::string_view text, bool isFirst, const Visit &visit) const {
  run(0, text, isFirst, visit);
}

void PreTokenizer::run(std::size_t step, std::string_view text, bool isFirst,
                       const Visit &visit) const {
  if (text.empty())
    return;
  if (step == steps.size())
    return visit(text);
  if (steps[step].kind == Step::Split)
    return runSplit(step, text, isFirst, visit);
  if (steps[step].kind == Step::Metaspace)
    return runMetaspace(step, text, isFirst, visit);
  if (text.front() == ' ')
    return run(step + 1, text, isFirst, visit);
  run(step + 1, " " + std::string(text), isFirst, visit);
}

void PreTokenizer::runSplit(std::size_t step, std::string_view text, bool isFirst,
                            const Visit &visit) const {
  const Step &by = steps[step];
  const auto emit = [&](std::size_t begin, std::size_t end) {
    run(step + 1, text.substr(begin, end - begin), isFirst && begin == 0, visit);
  };
  const auto forEachPart = [&](auto take) {
    std::size_t done = 0;
    by.pattern->forEachMatch(text, [&](std::size_t begin, std::size_t end) {
      if (done != begin)
        take(Part{done, begin, by.invert});
      take(Part{begin, end, !by.invert});
      done = end;
    });
    if (done != text.size())
      take(Part{done, text.size(), by.invert});
  };
  if (by.behavior == Behavior::Isolated)
    return forEachPart([&](const Part &part) { emit(part.begin, part.end); });
  if (by.behavior == Behavior::Removed)
    return forEachPart([&](const Part &part) {
      if (!part.matches)
        emit(part.begin, part.end);
    });
  // MergedWithNext merges the last of several consecutive matches.
  std::vector<Part> parts;
  forEachPart([&](const Part &part) { parts.push_back(part); });
  std::vector<Part> merged;
  bool before = false;
  if (by.behavior == Behavior::MergedWithNext) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->matches && !before && !merged.empty())
        merged.back().begin = part->begin;
      else
        merged.push_back(*part);
      before = part->matches;
    }
    for (auto part = merged.rbegin(); part != merged.rend(); ++part)
      emit(part->begin, part->end);
    return;
  }
  for (const Part &part : parts) {
    const bool joins =
        by.behavior == Behavior::Contiguous ? part.matches == before : part.matches && !before;
    if (joins && !merged.empty())
      merged.back().end = part.end;
    else
      merged.push_back(part);
    before = part.matches;
  }
  for (const Part &part : merged)
    emit(part.begin, part.end);
}

void PreTokenizer::runMetaspace(std::size_t step, std::string_view text, bool isFirst,
                                const Visit &visit) const {
  const Step &by = steps[step];
  std::string marked;
  marked.reserve(text.size() + text.size() / 4);
  for (const char byte : text)
    byte == ' ' ? marked += by.replacement : marked += byte;
  const bool prepends =
      by.prepend == PrependScheme::Always || (by.prepend == PrependScheme::First && isFirst);
  if (prepends && marked.compare(0, by.replacement.size(), by.replacement) != 0)
    marked.insert(0, by.replacement);
  const std::string_view whole = marked;
  if (!by.splits)
    return run(step + 1, whole, isFirst, visit);
  // A word begins with each replacement.
  for (std::size_t begin = 0, end; begin < whole.size(); begin = end) {
    end = std::min(whole.find(by.replacement, begin + 1), whole.size());
    run(step + 1, whole.substr(begin, end - begin), isFirst && begin == 0, visit);
  }
}

} // namespace tokenizer
