//===- FlightTrack.h - the latest actions of one thread of a rank ----------===//
//
// What a rank does is kept in memory that it shares with the processes around it, so that they can
// say what it did when it hangs or has been killed (runtime/job/FlightRecord.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_DEVICE_FLIGHTTRACK_H
#define FSDP_RUNTIME_DEVICE_FLIGHTTRACK_H

#include "runtime/program/CollectiveRequest.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// What a rank did or does.
struct FlightAction {
  enum Kind : std::uint64_t {
    Launch,     ///< `name` on a stream
    Wait,       ///< of a stream for the launch `name` of the stream `other`
    Collective, ///< `request`, number `number` of the communicator `other`
    Enqueued,   ///< `name`, a device's collective number `number` of the communicator `other`; of a
                ///< transfer `request`
    Mark,       ///< what the host calls its work: `name` and `number`, as "step 12"
  };
  Kind kind = Launch;
  std::int64_t number = 0;
  double begin = 0; ///< seconds of now()
  double end = 0;   ///< 0 while it is under way
  char name[64] = {};
  char other[32] = {};
  CollectiveRequest request = {};

  /// "launch 'h.0.attn.c_attn'", "'barrier', collective 7 over 'all ranks'", "step 12".
  std::string describe() const;
};

/// A ring of the latest actions of one thread, which alone adds to it; anybody may read. Plain data
/// that is valid when zero and holds no pointer: it may lie in memory that processes share. An
/// action that is overwritten while somebody reads is left out of what is read.
class FlightTrack {
public:
  static constexpr std::size_t kActions = 64;

  /// What the thread is called; at most 15 characters are kept.
  void label(const char *name);
  std::string label() const;

  /// An action begins; returns what `end` takes. `name` and `other` are cut to what a FlightAction
  /// holds.
  std::uint64_t begin(FlightAction::Kind kind, const char *name, const char *other = "",
                      std::int64_t number = 0, const CollectiveRequest *request = nullptr);
  void end(std::uint64_t action);

  /// Those that are kept, in the order in which they began.
  std::vector<FlightAction> actions() const;

private:
  // Written and read word by word, so that reading while another process writes is no race.
  template <std::size_t Words> using AtomicWords = std::array<std::atomic<std::uint64_t>, Words>;
  struct Entry {
    std::atomic<std::uint64_t> serial; ///< from 1; 0 while it is written
    std::atomic<double> end;
    AtomicWords<sizeof(FlightAction) / 8> action; ///< `end` is in the field above
  };

  AtomicWords<2> label_;
  std::atomic<std::uint64_t> begun_;
  std::array<Entry, kActions> entries_;
};

/// Tracks of a rank: its host thread, then its streams.
constexpr int kFlightTracks = 17;

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_FLIGHTTRACK_H
