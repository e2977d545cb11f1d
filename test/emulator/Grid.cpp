//===- Grid.cpp - runs a kernel on the calling thread -----------------------------===//
//
// Blocks run one after another, with `shuffle` in a random order. A fiber takes the next thread of
// the block and runs it to its end, then the next; only a thread that must wait for others keeps
// its fiber, and another one goes on. So a block without meetings costs two switches.
//
//===----------------------------------------------------------------------===//

#include "Grid.h"

#include "AsyncCopies.h"
#include "AsyncProducts.h"
#include "Emulator.h"
#include "Failure.h"
#include "Fiber.h"
#include "Shadow.h"
#include "SharedMemory.h"
#include "Symbols.h"
#include "ThreadOfBlock.h"
#include "WarpOrder.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace emulator {

namespace {

std::atomic<std::uint64_t> blockCount{0}, threadCount{0}, switchCount{0};

struct KernelFailure {
  std::string text;
};

class BlockRunner {
public:
  void run(const Launch &launch);
  void meetBlock(Site site, bool predicate);
  void meetWarp(Site site, unsigned mask, void *mine, void (*body)(void *const *));
  int counted() const { return countOfLastMeeting; }
  unsigned lane() const { return current % 32; }
  void startCopy(const AsyncCopy &copy, const void *place);
  void commitCopies() { copies[current].commit(); }
  void waitForCopies(std::size_t pending);
  void startProduct(Site site, AsyncProduct product, const std::uint32_t *a);
  AsyncProducts &productsOfThread() { return products[current]; }
  void waitForProducts(std::size_t pending, const void *place);
  void noteAccess(const void *address, std::size_t bytes, unsigned flags, const void *place);
  void noteFence(bool device) { shadow->fence(current, device); }
  /// What the body of a function of the warp accesses is an access of this lane.
  void actFor(unsigned lane) { actor = current / 32 * 32 + lane; }
  void *dynamicShared() const { return dynamic.start; }
  bool active() const { return launch != nullptr; }
  const void *kernel() const { return launch ? launch->kernel : nullptr; }
  std::string describe(const std::string &what) const;
  bool beyondStack(const void *address) const {
    for (const auto &fiber : fibers)
      if (fiber->guards(address))
        return true;
    return false;
  }

private:
  std::vector<std::uint64_t> orderOfBlocks(std::uint64_t blocks);
  void runBlock();
  void shuffleThreads(std::vector<unsigned> &list);
  void work();
  void enter(unsigned thread);
  void park();
  void finish();
  Fiber *nextFiber();
  void switchFrom(Fiber &from, Fiber &to);
  [[noreturn]] void abandon(const std::string &what);
  bool releaseBlock();
  void completeWarp(unsigned first, unsigned mask, void (*body)(void *const *));
  void checkWarp(unsigned first);
  std::string whyStuck() const;
  std::string nameOf(unsigned thread) const;
  dim3 indexOf(unsigned thread) const;

  const Launch *launch = nullptr;
  unsigned size = 0, current = 0, nextNew = 0, done = 0, atBlock = 0;
  int countOfLastMeeting = 0;
  std::vector<Thread> threads;
  std::vector<unsigned> order, ready;
  std::vector<unsigned> sorted;   ///< scratch of groupByWarps
  unsigned waitingLanes[32] = {}; ///< of each warp, in its functions
  bool ahead = false; ///< in this block a warp runs as far as it can before another continues
  std::size_t nextReady = 0;
  Fiber scheduler;
  Fiber *runningFiber = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle;
  std::unique_ptr<std::string> failed;
  DynamicShared dynamicStorage;
  MemoryRange dynamic, fixed;          ///< shared memory
  std::vector<AsyncCopies> copies;     ///< of each thread
  std::vector<AsyncProducts> products; ///< of each thread
  std::unique_ptr<Shadow> shadow;      ///< null without `races`
  static constexpr unsigned kNobody = ~0u;
  unsigned actor =
      kNobody; ///< the thread whose accesses these are, where it is not the current one
  std::mt19937_64 random;
};

thread_local BlockRunner runner;

dim3 BlockRunner::indexOf(unsigned thread) const {
  const dim3 &block = launch->block;
  if (thread < block.x) // most blocks have one dimension, and divisions take longer than the rest
    return dim3(thread, 0, 0);
  return dim3(thread % block.x, thread / block.x % block.y, thread / block.x / block.y);
}

std::string BlockRunner::nameOf(unsigned thread) const {
  const dim3 index = indexOf(thread);
  return formatted("thread (%u, %u, %u)", index.x, index.y, index.z);
}

std::string BlockRunner::describe(const std::string &what) const {
  return formatted("kernel %s, block (%u, %u, %u): ", kernelName(launch->kernel).c_str(),
                   blockIdx.x, blockIdx.y, blockIdx.z) +
         what;
}

void BlockRunner::run(const Launch &toRun) {
  static thread_local StaticShared variables;
  if (settings().races && !accessesAreVisible)
    throw KernelFailure{"FSDP_EMULATOR has `races`, but the kernels of this program do not tell "
                        "their accesses: compile them with clang and target_race_instrumentation"};
  launch = &toRun;
  struct Leave {
    BlockRunner &runner;
    ~Leave() {
      runner.launch = nullptr;
      shadowIsActive = false;
    }
  } leave{*this};
  size = toRun.block.x * toRun.block.y * toRun.block.z;
  random.seed(settings().seed * 0x9E3779B97F4A7C15u + toRun.number);
  dynamic = dynamicStorage.reserve(toRun.sharedBytes);
  fixed = variables.range();
  gridDim = toRun.grid;
  blockDim = toRun.block;
  order.resize(size);
  for (unsigned i = 0; i < size; ++i)
    order[i] = i;
  copies.resize(std::max<std::size_t>(copies.size(), size));
  products.resize(copies.size());
  if (!settings().races)
    shadow.reset();
  else if (!shadow)
    shadow = std::make_unique<Shadow>();
  if (shadow)
    shadow->beginLaunch(toRun.block, &variables, dynamic, dynamicStorage.mapping());
  shadowIsActive = shadow != nullptr;
  const std::uint64_t blocks = std::uint64_t(toRun.grid.x) * toRun.grid.y * toRun.grid.z;
  for (std::uint64_t number : orderOfBlocks(blocks)) {
    blockIdx = {static_cast<unsigned>(number % toRun.grid.x),
                static_cast<unsigned>(number / toRun.grid.x % toRun.grid.y),
                static_cast<unsigned>(number / toRun.grid.x / toRun.grid.y)};
    variables.poison();
    if (dynamic.bytes)
      std::memset(dynamic.start, 0xff, dynamic.bytes);
    if (shadow)
      shadow->beginBlock(blockIdx);
    runBlock();
  }
  if (std::string where; variables.isGapWritten(where))
    throw KernelFailure{"kernel " + kernelName(toRun.kernel) + ": wrote " + where};
  if (dynamicStorage.isEndWritten())
    throw KernelFailure{
        "kernel " + kernelName(toRun.kernel) +
        formatted(": wrote behind its %zu bytes of dynamic shared memory", dynamic.bytes)};
  blockCount += blocks;
  threadCount += blocks * size;
}

/// From 0 on, or with `shuffle` at random.
std::vector<std::uint64_t> BlockRunner::orderOfBlocks(std::uint64_t blocks) {
  std::vector<std::uint64_t> numbers(blocks);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t(0));
  if (settings().shuffle)
    std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

void BlockRunner::runBlock() {
  threads.assign(size, Thread());
  std::fill_n(waitingLanes, 32, 0u);
  ready.clear();
  nextReady = nextNew = done = atBlock = 0;
  actor = kNobody;
  for (unsigned i = 0; i < size; ++i)
    copies[i].clear(), products[i].clear();
  ahead = settings().shuffle && random() % 2;
  shuffleThreads(order);
  // Last block's fibers may have been left in the middle of a kernel that failed.
  while (!failed && done < size) {
    if (Fiber *fiber = nextFiber())
      switchFrom(scheduler, *fiber);
    else if (!releaseBlock())
      failed = std::make_unique<std::string>(describe(whyStuck()));
  }
  if (failed) {
    KernelFailure failure{*failed};
    failed.reset();
    // Threads that wait hold frames that are never left: their stacks are given up.
    idle.clear();
    fibers.clear();
    throw failure;
  }
}

/// A random order; warp by warp where warps run ahead of one another.
void BlockRunner::shuffleThreads(std::vector<unsigned> &list) {
  if (!settings().shuffle)
    return;
  std::shuffle(list.begin(), list.end(), random);
  if (!ahead)
    return;
  groupByWarps(list, random, sorted);
}

/// The fiber of the next ready thread, or a fiber for the next new thread; null if no thread is
/// ready or new, and the scheduler must continue.
Fiber *BlockRunner::nextFiber() {
  if (nextReady < ready.size())
    return threads[ready[nextReady]].fiber;
  if (nextNew == size)
    return nullptr;
  if (idle.empty()) {
    fibers.push_back(
        std::make_unique<Fiber>([](void *self) { static_cast<BlockRunner *>(self)->work(); }, this,
                                static_cast<unsigned>(fibers.size())));
    return fibers.back().get();
  }
  Fiber *fiber = idle.back();
  idle.pop_back();
  return fiber;
}

/// Comes back when another one switches to `from`.
void BlockRunner::switchFrom(Fiber &from, Fiber &to) {
  runningFiber = &to;
  endOfLocalMemory = to.end();
  switchCount += &from != &scheduler;
  from.switchTo(to);
}

/// What every fiber runs: new threads, as long as there are any.
void BlockRunner::work() {
  for (;;) {
    try {
      while (!failed && nextReady == ready.size() && nextNew < size) {
        enter(order[nextNew++]);
        threads[current].state = State::Running;
        launch->runThread();
        finish();
      }
    } catch (KernelFailure &failure) {
      if (!failed)
        failed = std::make_unique<std::string>(std::move(failure.text));
    } catch (std::exception &error) {
      failed = std::make_unique<std::string>(
          describe(nameOf(current) + " threw an exception: " + error.what()));
    }
    Fiber *self = runningFiber;
    if (!failed)
      idle.push_back(self);
    switchFrom(*self, scheduler);
  }
}

void BlockRunner::enter(unsigned thread) {
  current = thread;
  threadIdx = indexOf(thread);
}

/// The current thread waits until it is ready, and then continues as the current one.
void BlockRunner::park() {
  const unsigned self = current;
  Fiber *fiber = runningFiber;
  threads[self].fiber = fiber;
  Fiber *next = failed ? nullptr : nextFiber();
  switchFrom(*fiber, next ? *next : scheduler);
  ++nextReady;
  threads[self].state = State::Running;
  enter(self);
}

void BlockRunner::finish() {
  if (const std::size_t pending = copies[current].pending())
    fail("returned while %zu of its copies in the background have not been waited for", pending);
  threads[current].state = State::Done;
  ++done;
  checkWarp(current / 32 * 32);
}

void BlockRunner::meetBlock(Site site, bool predicate) {
  Thread &self = threads[current];
  self.state = State::AtBlock;
  self.site = site;
  self.predicate = predicate;
  ++atBlock;
  park();
}

/// Resumes all threads if all wait at one barrier.
bool BlockRunner::releaseBlock() {
  if (atBlock < size)
    return false;
  countOfLastMeeting = 0;
  for (const Thread &thread : threads) {
    if (!same(thread.site, threads[0].site))
      return false;
    countOfLastMeeting += thread.predicate;
  }
  if (!groupsAgree(products, size))
    failed.reset(new std::string(describe("warps of a group have started different products")));
  atBlock = 0;
  if (shadow)
    shadow->barrier();
  ready = order;
  shuffleThreads(ready);
  nextReady = 0;
  return true;
}

void BlockRunner::meetWarp(Site site, unsigned mask, void *mine, void (*body)(void *const *)) {
  const unsigned first = current / 32 * 32;
  if (!(mask >> (current % 32) & 1))
    fail("%s at %s:%d: the mask 0x%x lacks the calling lane %u", site.what, site.file, site.line,
         mask, current % 32);
  Thread &self = threads[current];
  self.state = State::AtWarp;
  self.site = site;
  self.mask = mask;
  self.brought = mine;
  const unsigned last = std::min(size, first + 32);
  const unsigned existing = last - first == 32 ? ~0u : (1u << (last - first)) - 1;
  unsigned &waiting = waitingLanes[first / 32];
  waiting |= 1u << (current - first);
  if ((waiting & mask & existing) != (mask & existing))
    return park();
  for (unsigned i = first; i < last; ++i)
    if (mask >> (i - first) & 1) {
      const Thread &other = threads[i];
      if (other.state != State::AtWarp || other.mask != mask)
        return park();
      if (!same(other.site, site))
        fail("lanes of a warp meet at different places: %s at %s:%d, and %s at %s:%d, in %s",
             site.what, site.file, site.line, other.site.what, other.site.file, other.site.line,
             nameOf(i).c_str());
    }
  waiting &= ~mask;
  completeWarp(first, mask, body);
}

/// All lanes of the mask have arrived: the current thread is the last of them and continues, the
/// others become ready.
void BlockRunner::completeWarp(unsigned first, unsigned mask, void (*body)(void *const *)) {
  void *lanes[32] = {};
  const unsigned last = std::min(size, first + 32);
  if (nextReady == ready.size()) {
    ready.clear();
    nextReady = 0;
  }
  const std::size_t from = ready.size();
  for (unsigned i = first; i < last; ++i)
    if ((mask >> (i - first) & 1) && threads[i].state == State::AtWarp) {
      lanes[i - first] = threads[i].brought;
      threads[i].state = State::Running;
      if (i != current)
        ready.push_back(i);
    }
  if (settings().shuffle)
    std::shuffle(ready.begin() + static_cast<std::ptrdiff_t>(from), ready.end(), random);
  if (ahead) {
    // Before all others: the warp continues until it must wait for the block.
    const std::vector<unsigned> released(ready.begin() + static_cast<std::ptrdiff_t>(from),
                                         ready.end());
    ready.resize(from);
    const std::size_t room = std::min<std::size_t>(nextReady, released.size());
    nextReady -= room;
    std::copy_n(released.begin(), room, ready.begin() + static_cast<std::ptrdiff_t>(nextReady));
    ready.insert(ready.begin() + static_cast<std::ptrdiff_t>(nextReady + room),
                 released.begin() + static_cast<std::ptrdiff_t>(room), released.end());
  }
  if (body)
    body(lanes);
  else if (shadow)
    shadow->syncWarp(first, mask);
  actor = kNobody;
}

/// Ends the launch from where nothing may be thrown; this fiber is never entered again.
void BlockRunner::abandon(const std::string &what) {
  if (!failed)
    failed = std::make_unique<std::string>(describe(what));
  runningFiber->switchTo(scheduler);
  std::abort();
}

void BlockRunner::noteAccess(const void *address, std::size_t bytes, unsigned flags,
                             const void *place) {
  const unsigned thread = actor == kNobody ? current : actor;
  const std::string wrong = flags & Access::Atomic
                                ? shadow->atomic(thread, address, bytes, place)
                                : shadow->access(thread, address, bytes, flags, place);
  if (!wrong.empty())
    abandon(wrong);
}

void BlockRunner::startCopy(const AsyncCopy &copy, const void *place) {
  std::size_t offset;
  const auto target = reinterpret_cast<std::uintptr_t>(copy.to);
  const std::uintptr_t last = target + copy.bytes - 1;
  if (!(dynamic.holds(target, offset) && dynamic.holds(last, offset)) &&
      !(fixed.holds(target, offset) && fixed.holds(last, offset)))
    fail("a copy in the background to %p: expected an address in shared memory", copy.to);
  for (const auto address : {target, reinterpret_cast<std::uintptr_t>(copy.from)})
    if (address % copy.bytes)
      fail("misaligned copy in the background: address %#zx, expected a multiple of %zu",
           static_cast<std::size_t>(address), copy.bytes);
  if (shadow) {
    if (copy.sourceBytes)
      noteAccess(copy.from, copy.sourceBytes, 0, place);
    noteAccess(copy.to, copy.bytes, Access::Write | Access::InFlight, place);
  }
  copies[current].start(copy);
}

void BlockRunner::waitForCopies(std::size_t pending) {
  copies[current].wait(pending, [&](const AsyncCopy &copy) {
    products[current].unfenced = true;
    if (shadow)
      shadow->completeCopy(current, copy.to, copy.bytes);
  });
}

void BlockRunner::startProduct(Site site, AsyncProduct product, const std::uint32_t *a) {
  std::string wrong = products[current].begun ? "" : "wgmma.fence before it, after the last wait";
  if (const unsigned i = firstUnfenced(products, size); i < size)
    wrong = "fence.proxy.async by " + nameOf(i) + ", whose copies have arrived";
  if (!wrong.empty())
    fail("wgmma at %s:%d: expected %s", site.file, site.line, wrong.c_str());
  product.row = static_cast<int>(current % 128 / 32 * 16 + lane() / 4);
  HeldRows mine = {a, product.a};
  meetWarp(site, ~0u, &mine, &HeldRows::exchange);
  products[current].start(product, site.line);
}

void BlockRunner::waitForProducts(std::size_t pending, const void *place) {
  if (products[current].changed())
    fail("wgmma: registers of its operand changed before it was waited for");
  products[current].wait(pending, lane(), [&](const std::uint16_t *start) {
    if (shadow)
      noteAccess(start, 16, 0, place);
  });
}

/// After a thread has returned: no lane of its warp may wait for it. (CUDA lets lanes that have
/// returned be; which ones have depends on the order of lanes, so that it is refused here.)
void BlockRunner::checkWarp(unsigned first) {
  if (!waitingLanes[first / 32])
    return;
  const unsigned last = std::min(size, first + 32);
  for (unsigned i = first; i < last; ++i)
    if (threads[i].state == State::AtWarp && (threads[i].mask >> (current - first) & 1))
      failed = std::make_unique<std::string>(describe(formatted(
          "%s returned, but %s waits for it in %s at %s:%d", nameOf(current).c_str(),
          nameOf(i).c_str(), threads[i].site.what, threads[i].site.file, threads[i].site.line)));
}

std::string BlockRunner::whyStuck() const {
  std::string text = "the threads of the block do not meet:";
  int told = 0;
  for (unsigned i = 0; i < size && told < 3; ++i) {
    const Thread &thread = threads[i];
    // The first thread of each kind is enough.
    bool known = false;
    for (unsigned j = 0; j < i && !known; ++j)
      known = threads[j].state == thread.state &&
              (thread.state == State::Done ||
               (threads[j].site.line == thread.site.line && threads[j].mask == thread.mask));
    if (known)
      continue;
    ++told;
    text += (told > 1 ? "; " : " ") + nameOf(i);
    if (thread.state == State::Done)
      text += " has returned";
    else if (thread.state == State::AtBlock)
      text +=
          formatted(" waits in %s at %s:%d", thread.site.what, thread.site.file, thread.site.line);
    else
      text += formatted(" waits in %s at %s:%d for the lanes 0x%x", thread.site.what,
                        thread.site.file, thread.site.line, thread.mask);
  }
  return text;
}

} // namespace

void meetBlock(Site site) { runner.meetBlock(site, false); }

int countInBlock(Site site, bool predicate) {
  runner.meetBlock(site, predicate);
  return runner.counted();
}

void meetWarp(Site site, unsigned mask, void *mine, void (*body)(void *const *)) {
  runner.meetWarp(site, mask, mine, body);
}

unsigned lane() { return runner.lane(); }
void actFor(unsigned lane) { runner.actFor(lane); }

void copyInBackground(void *to, const void *from, std::size_t bytes, std::size_t sourceBytes) {
  runner.startCopy({to, from, bytes, sourceBytes}, __builtin_return_address(0));
}
void multiplyInBackground(const char *file, int line, float *d, int columns, bool adds,
                          const std::uint32_t *a, const void *inShared, SharedMatrix b) {
  runner.startProduct({"wgmma", file, line}, {d, columns, adds, {}, inShared, a, 0, b, {}}, a);
}
void fenceSharedWrites() { runner.productsOfThread().unfenced = false; }
void beginProducts() { runner.productsOfThread().begun = true; }
void commitProducts() { runner.productsOfThread().commit(); }
void waitForProducts(unsigned n) { runner.waitForProducts(n, __builtin_return_address(0)); }
void commitCopies() { runner.commitCopies(); }
void waitForCopies(unsigned pendingGroups) { runner.waitForCopies(pendingGroups); }

void noteAccess(const void *address, std::size_t bytes, bool write, const void *place) {
  runner.noteAccess(address, bytes, write ? unsigned(Access::Write) : 0u, place);
}
void noteAtomic(const void *address, std::size_t bytes) {
  if (shadowIsActive)
    runner.noteAccess(address, bytes, Access::Write | Access::Atomic, __builtin_return_address(0));
}
void noteFence(bool device) {
  if (shadowIsActive)
    runner.noteFence(device);
}
void *dynamicShared() { return runner.dynamicShared(); }

void fail(const char *format, ...) {
  if (!runner.active()) {
    fprintf(stderr, "cuda emulator: device code runs outside of a kernel\n");
    std::abort();
  }
  char text[1000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const std::string where =
      formatted("thread (%u, %u, %u): ", threadIdx.x, threadIdx.y, threadIdx.z);
  throw KernelFailure{runner.describe(where + text)};
}

std::string runGrid(const Launch &launch) {
  try {
    runner.run(launch);
  } catch (KernelFailure &failure) {
    return failure.text;
  } catch (std::exception &error) { // of the emulator's own memory
    return error.what();
  }
  return "";
}

void describePlace(char *buffer, std::size_t size) {
  buffer[0] = 0;
  if (runner.active())
    snprintf(buffer, size, "kernel at %p, block (%u, %u, %u), thread (%u, %u, %u)", runner.kernel(),
             blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}

bool beyondStack(const void *address) { return runner.beyondStack(address); }

void addGridStatistics(Statistics &statistics) {
  statistics.blocks = blockCount;
  statistics.threads = threadCount;
  statistics.switches = switchCount;
}

} // namespace emulator
