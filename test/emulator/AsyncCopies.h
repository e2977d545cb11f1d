//===- AsyncCopies.h - copies in the background, of one thread -------------------===//
//
// cp.async, cp.async.commit_group and cp.async.wait_group (PTX ISA, "Asynchronous copy"): a copy
// may be performed at any time until its thread has waited for its group, and is here performed
// then, as late as it may be; from its start the target holds poison. Copies that are in no group
// yet are waited for by nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_ASYNCCOPIES_H
#define FSDP_EMULATOR_ASYNCCOPIES_H

#include <cstddef>
#include <cstring>
#include <vector>

namespace emulator {

struct AsyncCopy {
  void *to;
  const void *from;
  std::size_t bytes;       ///< of the target
  std::size_t sourceBytes; ///< those of the target behind them become zero
};

class AsyncCopies {
public:
  void start(const AsyncCopy &copy) {
    std::memset(copy.to, 0xff, copy.bytes);
    copies.push_back(copy);
  }
  void commit() { groups.push_back(copies.size()); }
  /// Performs the copies of all groups but the last `pending`. Calls `done(copy)` for each.
  template <class Done> void wait(std::size_t pending, Done done) {
    if (groups.size() <= pending)
      return;
    const auto last = groups.end() - static_cast<std::ptrdiff_t>(pending) - 1;
    const std::size_t count = *last;
    for (std::size_t i = 0; i < count; ++i) {
      const AsyncCopy &copy = copies[i];
      std::memcpy(copy.to, copy.from, copy.sourceBytes);
      std::memset(static_cast<char *>(copy.to) + copy.sourceBytes, 0,
                  copy.bytes - copy.sourceBytes);
      done(copy);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
    groups.erase(groups.begin(), last + 1);
    for (std::size_t &end : groups)
      end -= count;
  }
  std::size_t pending() const { return copies.size(); }
  void clear() {
    copies.clear();
    groups.clear();
  }

private:
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> groups; ///< where each ends in `copies`
};

} // namespace emulator

#endif // FSDP_EMULATOR_ASYNCCOPIES_H
