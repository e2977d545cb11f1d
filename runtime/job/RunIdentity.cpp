#include "runtime/job/RunIdentity.h"
#include "base/Error.h"
#include "base/PrintableText.h"

#include <algorithm>
#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

// kMaxFields fields of these sizes fit into kMaxBytes.
constexpr std::size_t kMaxFields = 40, kMaxOfName = 40, kMaxOfValue = 160;
constexpr char kValue = '\x1f', kWithout = '\x1e', kEnd = '\n';
static_assert(kMaxFields * (kMaxOfName + kMaxOfValue + 2) <= RunIdentity::kMaxBytes);

std::string phrase(const RunIdentity::Field &field) {
  if (!field.value)
    return "without " + field.name;
  return "with " + field.name + (field.value->empty() ? "" : " " + *field.value);
}

} // namespace

void RunIdentity::add(const std::string &name, const std::optional<std::string> &value) {
  if (fields_.size() == kMaxFields)
    return;
  Field field{printable(name, kMaxOfName), std::nullopt};
  if (value) {
    field.value = printable(*value, kMaxOfValue);
    if (value->size() > kMaxOfValue)
      field.value = printable(*value, kMaxOfValue / 2) + "... (digest " +
                    digestText(contentDigest(*value)) + ")";
  }
  fields_.push_back(std::move(field));
}

std::string RunIdentity::text() const {
  std::string text;
  for (const Field &field : fields_)
    text += field.name + (field.value ? kValue + *field.value : std::string(1, kWithout)) + kEnd;
  return text;
}

RunIdentity RunIdentity::parse(std::string_view text) {
  RunIdentity identity;
  text = text.substr(0, kMaxBytes);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find(kEnd));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t mark = line.find_first_of(std::string{kValue, kWithout});
    if (mark == line.npos)
      continue;
    if (line[mark] == kWithout)
      identity.add(std::string(line.substr(0, mark)), std::nullopt);
    else
      identity.add(std::string(line.substr(0, mark)), std::string(line.substr(mark + 1)));
  }
  return identity;
}

std::string RunIdentity::differenceFrom(const RunIdentity &first, int rank) const {
  std::string here, there;
  const auto note = [](std::string &text, const Field &field) {
    text += (text.empty() ? "" : " and ") + phrase(field);
  };
  const auto in = [](const RunIdentity &identity, const std::string &name) {
    for (const Field &field : identity.fields_)
      if (field.name == name)
        return field;
    return Field{name, std::nullopt};
  };
  for (const Field &field : first.fields_) {
    const Field own = in(*this, field.name);
    if (own.value == field.value)
      continue;
    note(here, own);
    note(there, field);
  }
  for (const Field &field : fields_) {
    const Field firsts = in(first, field.name);
    const bool known = std::any_of(first.fields_.begin(), first.fields_.end(),
                                   [&](const Field &other) { return other.name == field.name; });
    if (known || !field.value)
      continue;
    note(here, field);
    note(there, firsts);
  }
  if (here.empty())
    return "";
  return format(
      "rank %d was started %s, rank 0 %s; start all ranks with the same program, options and files",
      rank, here.c_str(), there.c_str());
}

std::uint64_t contentDigest(std::string_view bytes, std::uint64_t seed) {
  // Four lanes of multiply and rotate, so that it runs as fast as memory is read.
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u, kOther = 0xC2B2AE3D27D4EB4Fu;
  std::uint64_t lanes[4] = {seed + kOdd, seed ^ kOther, ~seed, seed * kOther + bytes.size()};
  const auto mix = [](std::uint64_t lane, std::uint64_t word) {
    lane = (lane ^ word) * kOdd;
    return lane ^ (lane >> 29);
  };
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (int lane = 0; lane < 4; ++lane)
      lanes[lane] = mix(lanes[lane], words[lane]);
  }
  for (; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    lanes[at / 8 % 4] = mix(lanes[at / 8 % 4], word);
  }
  std::uint64_t digest = bytes.size();
  for (std::uint64_t lane : lanes)
    digest = mix(digest * kOther, lane);
  return mix(digest, kOther);
}

std::uint64_t sampledDigest(std::string_view bytes, std::uint64_t seed) {
  if (bytes.size() <= kWholeDigest)
    return contentDigest(bytes, seed);
  constexpr std::size_t kEnds = std::size_t(1) << 20, kBlocks = 4096, kBlock = 4096;
  std::uint64_t digest = contentDigest(bytes.substr(0, kEnds), seed ^ bytes.size());
  digest = contentDigest(bytes.substr(bytes.size() - kEnds), digest);
  const std::size_t between = bytes.size() - 2 * kEnds, step = (between - kBlock) / (kBlocks - 1);
  for (std::size_t block = 0; block < kBlocks; ++block)
    digest = contentDigest(bytes.substr(kEnds + block * step, kBlock), digest);
  return digest;
}

std::string digestText(std::uint64_t digest) {
  return format("%016llx", static_cast<unsigned long long>(digest));
}

} // namespace fsdp::rt
