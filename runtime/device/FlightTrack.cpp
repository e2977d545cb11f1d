#include "runtime/device/FlightTrack.h"
#include "base/Error.h"
#include "base/WaitCounter.h"

#include <algorithm>
#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// `text`, cut to Bytes - 1 characters, into words from `to` on.
template <std::size_t Bytes> void storeText(std::atomic<std::uint64_t> *to, const char *text) {
  std::uint64_t words[Bytes / 8] = {};
  std::memcpy(words, text, strnlen(text, Bytes - 1));
  for (std::size_t i = 0; i < Bytes / 8; ++i)
    to[i].store(words[i], kRelaxed);
}

/// The other way; what another process wrote may lack its end.
template <std::size_t Bytes>
void loadText(const std::atomic<std::uint64_t> *from, char (&text)[Bytes]) {
  for (std::size_t i = 0; i < Bytes / 8; ++i) {
    const std::uint64_t word = from[i].load(kRelaxed);
    std::memcpy(text + 8 * i, &word, 8);
  }
  text[Bytes - 1] = 0;
}

} // namespace

std::string FlightAction::describe() const {
  switch (kind) {
  case Launch:
    return format("launch '%s'", name);
  case Wait:
    return format("wait for '%s' of stream '%s'", name, other);
  case Collective:
    return format("'%s', collective %lld over '%s'", request.describe().c_str(),
                  static_cast<long long>(number), other);
  case Enqueued:
    return format("enqueued '%s', %scollective %lld over '%s'", name,
                  request.isTransfer() ? format("'%s', ", request.describe().c_str()).c_str() : "",
                  static_cast<long long>(number), other);
  case Mark:
    return number ? format("%s %lld", name, static_cast<long long>(number)) : name;
  }
  return "?";
}

void FlightTrack::label(const char *name) { storeText<16>(label_.data(), name); }

std::string FlightTrack::label() const {
  char text[16];
  loadText(label_.data(), text);
  return text;
}

std::uint64_t FlightTrack::begin(FlightAction::Kind kind, const char *name, const char *other,
                                 std::int64_t number, const CollectiveRequest *request) {
  const std::uint64_t serial = begun_.load(kRelaxed) + 1;
  Entry &entry = entries_[serial % kActions];
  entry.serial.store(0, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const double time = now();
  std::uint64_t bits;
  std::memcpy(&bits, &time, sizeof bits);
  entry.end.store(0, kRelaxed);
  entry.words[0].store(kind, kRelaxed);
  entry.words[1].store(static_cast<std::uint64_t>(number), kRelaxed);
  entry.words[2].store(bits, kRelaxed);
  storeText<sizeof(FlightAction::name)>(&entry.words[kName], name);
  storeText<sizeof(FlightAction::other)>(&entry.words[kOther], other);
  if (request) {
    std::uint64_t words[kWords - kRequest];
    std::memcpy(words, request, sizeof words);
    for (std::size_t i = 0; i < kWords - kRequest; ++i)
      entry.words[kRequest + i].store(words[i], kRelaxed);
  }
  entry.serial.store(serial, std::memory_order_release);
  begun_.store(serial, std::memory_order_release);
  return serial;
}

void FlightTrack::end(std::uint64_t action) {
  Entry &entry = entries_[action % kActions];
  if (entry.serial.load(kRelaxed) == action) // not gone under those that it contains
    entry.end.store(now(), kRelaxed);
}

std::vector<FlightAction> FlightTrack::actions() const {
  const std::uint64_t begun = begun_.load(std::memory_order_acquire);
  std::vector<FlightAction> found;
  for (std::uint64_t serial = begun > kActions ? begun - kActions + 1 : 1; serial <= begun;
       ++serial) {
    const Entry &entry = entries_[serial % kActions];
    if (entry.serial.load(std::memory_order_acquire) != serial)
      continue;
    FlightAction action;
    action.kind = static_cast<FlightAction::Kind>(entry.words[0].load(kRelaxed));
    action.number = static_cast<std::int64_t>(entry.words[1].load(kRelaxed));
    const std::uint64_t bits = entry.words[2].load(kRelaxed);
    std::memcpy(&action.begin, &bits, sizeof bits);
    loadText(&entry.words[kName], action.name);
    loadText(&entry.words[kOther], action.other);
    std::uint64_t words[kWords - kRequest];
    for (std::size_t i = 0; i < kWords - kRequest; ++i)
      words[i] = entry.words[kRequest + i].load(kRelaxed);
    if (action.kind == FlightAction::Collective)
      std::memcpy(&action.request, words, sizeof words);
    action.end = entry.end.load(kRelaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.serial.load(kRelaxed) == serial)
      found.push_back(action);
  }
  return found;
}

} // namespace fsdp::rt
