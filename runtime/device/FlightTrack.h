//===- FlightTrack.h - the latest actions of one thread of a rank ----------===//
//
// The actions of a rank are recorded in memory that it shares with other processes, so that they
// can report them when the rank hangs or has been killed (runtime/job/FlightRecord.h).
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

/// A finished or current action of a rank.
struct FlightAction {
  enum Kind : std::uint64_t {
    Launch,     ///< `name` on a stream
    Wait,       ///< of a stream for the launch `name` of the stream `other`
    Collective, ///< `request`, number `number` of the communicator `other`
    Enqueued,   ///< `name`, a device's collective number `number` of the communicator `other`; of a
                ///< transfer `request`
    Mark,       ///< a phase of the host: `name` and `number`, as "step 12"
  };
  Kind kind = Launch;
  std::int64_t number = 0;
  double begin = 0; ///< seconds of now()
  double end = 0;   ///< 0: not finished
  char name[64] = {};
  char other[32] = {};
  CollectiveRequest request = {};

  /// "launch 'h.0.attn.c_attn'", "'barrier', collective 7 over 'all ranks'", "step 12".
  std::string describe() const;
};

/// A ring of the latest actions of one thread. Only that thread adds actions; any process may read
/// them. Plain data that is valid when zero and contains no pointer, so it may be in memory that
/// processes share. A reader skips actions that are overwritten while it reads.
class FlightTrack {
public:
  static constexpr std::size_t kActions = 64;

  /// Sets the name of the thread, of which 15 characters are stored.
  void label(const char *name);
  std::string label() const;

  /// Records the begin of an action; returns its number for end(). `name` and `other` are cut to
  /// the sizes in FlightAction.
  std::uint64_t begin(FlightAction::Kind kind, const char *name, const char *other = "",
                      std::int64_t number = 0, const CollectiveRequest *request = nullptr);
  void end(std::uint64_t action);

  /// The recorded actions, in the order in which they began.
  std::vector<FlightAction> actions() const;

private:
  // Written and read word by word with atomic operations, so that concurrent access is not a data
  // race.
  template <std::size_t Words> using AtomicWords = std::array<std::atomic<std::uint64_t>, Words>;
  struct Entry {
    std::atomic<std::uint64_t> serial; ///< from 1; 0 while the entry is written
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
