//===- Workers.h - the threads that compute in a rank -----------*- C++ -*-===//
//
// A kernel is cut into pieces by its shape alone, and each number of its result belongs to one
// piece, which computes it in one order. Threads only take pieces: the bits of a result depend
// neither on the number of threads nor on which of them takes which piece.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_WORKERS_H
#define FSDP_RUNTIME_DEVICE_WORKERS_H

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fsdp::rt {

/// Threads that help the streams of a rank. A stream that has a kernel to perform takes its pieces
/// in order, and every helper that is free takes pieces, too; kernels of several streams are under
/// way at once. A helper without work sleeps.
class Workers {
public:
  /// Starts `threads` - 1 helpers, where `threads` >= 1 includes the calling thread. `spins`: every
  /// thread has its own core, so that a thread may look for work for some microseconds before it
  /// sleeps. Error: the system starts no more threads.
  explicit Workers(int threads, bool spins = false);
  /// Nothing may be under way.
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  std::size_t threads() const { return helpers_.size() + 1; }

  /// Those that help the calling thread; null: it performs its pieces alone.
  static Workers *ofThread();
  static void setOfThread(Workers *workers);
  /// Processor seconds that helpers have worked for the calling thread.
  static double helpedSeconds();

  using Piece = void (*)(const void *body, std::size_t piece, std::size_t slot);
  /// Performs the pieces [0, count), on the calling thread and on helpers; returns when all are
  /// complete. Concurrent threads have different slots below slotsOfPieces(count). Rethrows the
  /// exception of a piece, of several that of the first piece; later pieces may then be left out.
  void perform(std::size_t count, Piece piece, const void *body);

private:
  struct Task;

  void help();
  void stop();
  Task *wanting();
  void takePieces(Task &task, std::size_t slot);
  bool spinUntil(const std::atomic<std::uint32_t> &word, std::uint32_t from) const;

  const bool spins_;
  std::mutex mutex_;
  std::condition_variable posted_, left_;
  std::atomic<std::uint32_t> posts_{0}; ///< counts tasks, and the end
  Task *tasks_ = nullptr;               ///< those that may have pieces left
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

/// How many threads can be at the pieces of a kernel of the calling thread at once. Scratch memory
/// that a piece needs is reserved for each of them before.
std::size_t slotsOfPieces(std::size_t count);

/// Calls `body(piece, slot)` for each piece of [0, count): see Workers::perform. Pieces must not
/// call this themselves.
template <class Body> void forEachPiece(std::size_t count, const Body &body) {
#ifndef FSDP_RECORD // a recorded program performs no kernel, and links no runtime
  if (slotsOfPieces(count) > 1)
    return Workers::ofThread()->perform(
        count,
        [](const void *self, std::size_t piece, std::size_t slot) {
          (*static_cast<const Body *>(self))(piece, slot);
        },
        &body);
#endif
  for (std::size_t piece = 0; piece < count; ++piece)
    body(piece, std::size_t(0));
}

/// Equal parts of [0, count), as many as repay a thread: at most 64, each of at least 16,384
/// elements. An index stands for `elements` of them; parts begin at multiples of `multiple`.
struct Parts {
  std::size_t count, extent;

  Parts(std::size_t count, std::size_t elements, std::size_t multiple = 1) : count(count) {
    constexpr std::size_t most = 64, least = 16384;
    const std::size_t wanted =
        std::max((count + most - 1) / most, least / std::max<std::size_t>(elements, 1));
    extent = (std::max<std::size_t>(wanted, 1) + multiple - 1) / multiple * multiple;
  }
  std::size_t number() const { return (count + extent - 1) / extent; }
};

/// Calls `body(begin, end)` for parts of [0, count) as `Parts` cuts them, or, where no other thread
/// helps, for all of it: for work of which each index gives the same bits in any part.
template <class Index, class Body>
void forEachPart(Index count, std::size_t elements, std::size_t multiple, const Body &body) {
  const Parts parts(static_cast<std::size_t>(count), elements, multiple);
#ifndef FSDP_RECORD
  if (slotsOfPieces(parts.number()) == 1)
    return body(Index(0), count);
#endif
  forEachPiece(parts.number(), [&](std::size_t piece, std::size_t) {
    const std::size_t begin = piece * parts.extent;
    body(static_cast<Index>(begin),
         static_cast<Index>(std::min(begin + parts.extent, parts.count)));
  });
}
template <class Index, class Body>
void forEachPart(Index count, std::size_t elements, const Body &body) {
  forEachPart(count, elements, 1, body);
}

/// The same for columns of rows that are added up, each an element of `rows` rows. Up to four
/// threads leave them to one: it reads whole rows, one after the other, faster than several read
/// pieces of each. `body` gives the same bits for a column in any part.
template <class Index, class Body>
void forEachColumnPart(Index count, std::size_t rows, const Body &body) {
  constexpr std::size_t columns = 128; // of a part: not too short a piece of a row
#ifndef FSDP_RECORD
  constexpr std::size_t few = 4;
  if (slotsOfPieces(few + 1) <= few)
    return body(Index(0), count);
#endif
  forEachPart(count, rows, columns, body);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_WORKERS_H
