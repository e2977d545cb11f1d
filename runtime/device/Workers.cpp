#include "runtime/device/Workers.h"

#include "base/SpinPause.h"
#include "base/Thread.h"
#include "base/WaitCounter.h"

#include <string>

namespace fsdp::rt {

using namespace base;

namespace {

/// Seconds of looking for work before a thread sleeps: about the time of a wake-up.
constexpr double kSpinSeconds = 30e-6;

thread_local Workers *workersOfThread = nullptr;
thread_local double helped = 0;
/// Set while a thread performs a piece, which is not cut further.
thread_local bool isAtPiece = false;

} // namespace

/// A kernel that is under way; on the stack of the thread that performs it.
struct Workers::Task {
  Piece piece;
  const void *body;
  std::size_t count, slots;
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint32_t> helping{0}; ///< changed with the mutex held
  // With the mutex held:
  std::size_t joined = 1;
  double seconds = 0; ///< of helpers
  std::size_t failed = ~std::size_t(0);
  std::exception_ptr error;
  Task *following = nullptr;
};

Workers *Workers::ofThread() { return workersOfThread; }
void Workers::setOfThread(Workers *workers) { workersOfThread = workers; }
double Workers::helpedSeconds() { return helped; }

std::size_t slotsOfPieces(std::size_t count) {
  const Workers *workers = Workers::ofThread();
  return workers && !isAtPiece ? std::max<std::size_t>(std::min(workers->threads(), count), 1) : 1;
}

Workers::Workers(int threads, bool spins) : spins_(spins) {
  try {
    for (int i = 1; i < threads; ++i)
      helpers_.push_back(startThread(format("--threads=%d", threads), [this] { help(); }));
  } catch (...) {
    stop();
    throw;
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    posts_.fetch_add(1);
  }
  posted_.notify_all();
  for (std::thread &helper : helpers_)
    helper.join();
}

/// Whether `word` has changed within some microseconds.
bool Workers::spinUntil(const std::atomic<std::uint32_t> &word, std::uint32_t from) const {
  if (!spins_)
    return false;
  for (const double end = now() + kSpinSeconds; now() < end;)
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != from)
        return true;
      pauseInSpin();
    }
  return false;
}

/// A task that more threads may join.
Workers::Task *Workers::wanting() {
  for (Task *task = tasks_; task; task = task->following)
    if (task->joined < task->slots && task->next.load(std::memory_order_relaxed) < task->count)
      return task;
  return nullptr;
}

void Workers::takePieces(Task &task, std::size_t slot) {
  isAtPiece = true;
  for (std::size_t piece; (piece = task.next.fetch_add(1, std::memory_order_relaxed)) < task.count;)
    try {
      task.piece(task.body, piece, slot);
    } catch (...) {
      // Pieces before this one have been taken and end: the first error is the same every time.
      task.next.store(task.count, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (piece < task.failed)
        task.failed = piece, task.error = std::current_exception();
    }
  isAtPiece = false;
}

void Workers::perform(std::size_t count, Piece piece, const void *body) {
  Task task;
  task.piece = piece;
  task.body = body;
  task.count = count;
  task.slots = slotsOfPieces(count);
  {
    const std::lock_guard lock(mutex_);
    task.following = tasks_;
    tasks_ = &task;
    posts_.fetch_add(1, std::memory_order_release);
  }
  for (std::size_t i = 1; i < task.slots; ++i)
    posted_.notify_one();
  takePieces(task, 0);

  std::unique_lock lock(mutex_);
  Task **at = &tasks_;
  while (*at != &task)
    at = &(*at)->following;
  *at = task.following; // no more helpers join
  while (const std::uint32_t helping = task.helping.load()) {
    lock.unlock();
    const bool changed = spinUntil(task.helping, helping);
    lock.lock();
    if (!changed && task.helping.load() != 0)
      left_.wait(lock);
  }
  helped += task.seconds;
  if (task.error)
    std::rethrow_exception(task.error);
}

void Workers::help() {
  std::unique_lock lock(mutex_);
  for (double ran = processorSeconds();;) {
    if (stopping_)
      return;
    Task *task = wanting();
    if (!task) {
      const std::uint32_t seen = posts_.load();
      lock.unlock();
      const bool changed = spinUntil(posts_, seen);
      lock.lock();
      if (!changed && posts_.load() == seen)
        posted_.wait(lock);
      ran = processorSeconds();
      continue;
    }
    const std::size_t slot = task->joined++;
    task->helping.fetch_add(1);
    lock.unlock();
    takePieces(*task, slot);
    const double after = processorSeconds();
    lock.lock();
    task->seconds += after - ran;
    ran = after;
    if (task->helping.fetch_sub(1) == 1)
      left_.notify_all();
  }
}

} // namespace fsdp::rt
