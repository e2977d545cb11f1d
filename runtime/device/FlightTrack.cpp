#include "runtime/device/FlightTrack.h"
#include "base/Error.h"
#include "base/WaitCounter.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

/// Copies plain data, whose size is a multiple of 8 bytes, to or from shared words.
template <class Words, class Data> void storeWords(Words &to, const Data &data) {
  static_assert(std::is_trivially_copyable_v<Data> && sizeof(Data) == sizeof(Words));
  std::uint64_t words[sizeof(Data) / 8];
  std::memcpy(words, &data, sizeof data);
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i].store(words[i], kRelaxed);
}
template <class Data, class Words> Data loadWords(const Words &from) {
  std::uint64_t words[sizeof(Data) / 8];
  for (std::size_t i = 0; i < from.size(); ++i)
    words[i] = from[i].load(kRelaxed);
  Data data;
  std::memcpy(&data, words, sizeof data);
  return data;
}

/// Copies `text`, cut to the array's size; the rest of the array is zero.
template <std::size_t Bytes> void copyText(char (&to)[Bytes], const char *text) {
  std::memset(to, 0, Bytes);
  std::memcpy(to, text, strnlen(text, Bytes - 1));
}

/// Copies the name of an action. A long one keeps its end, where launches of a pipeline have stage
/// and microbatch.
template <std::size_t Bytes> void copyName(char (&to)[Bytes], const char *name) {
  copyText(to, name);
  if (strnlen(name, Bytes) < Bytes)
    return;
  constexpr std::size_t end = 26; // " stage 127 microbatch 1023"
  std::memcpy(to + Bytes - 1 - end - 2, "..", 2);
  std::memcpy(to + Bytes - 1 - end, name + std::strlen(name) - end, end);
}

struct Label {
  char text[16] = {};
};

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

void FlightTrack::label(const char *name) {
  Label label;
  copyText(label.text, name);
  storeWords(label_, label);
}

std::string FlightTrack::label() const { return loadWords<Label>(label_).text; }

std::uint64_t FlightTrack::begin(FlightAction::Kind kind, const char *name, const char *other,
                                 std::int64_t number, const CollectiveRequest *request) {
  const std::uint64_t serial = begun_.load(kRelaxed) + 1;
  Entry &entry = entries_[serial % kActions];
  entry.serial.store(0, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  FlightAction action;
  action.kind = kind;
  action.number = number;
  action.begin = now();
  copyName(action.name, name);
  copyText(action.other, other);
  if (request)
    action.request = *request;
  entry.end.store(0, kRelaxed);
  storeWords(entry.action, action);
  entry.serial.store(serial, std::memory_order_release);
  begun_.store(serial, std::memory_order_release);
  return serial;
}

void FlightTrack::end(std::uint64_t action) {
  Entry &entry = entries_[action % kActions];
  if (entry.serial.load(kRelaxed) == action) // else the entry was overwritten by actions within it
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
    auto action = loadWords<FlightAction>(entry.action);
    action.end = entry.end.load(kRelaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.serial.load(kRelaxed) == serial)
      found.push_back(action);
  }
  return found;
}

} // namespace fsdp::rt
