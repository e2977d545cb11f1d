//===- Fiber.h - stacks that take turns on one thread ----------------------------===//
#ifndef FSDP_EMULATOR_FIBER_H
#define FSDP_EMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || defined(FSDP_EMULATOR_UCONTEXT)
#define FSDP_EMULATOR_USES_UCONTEXT 1
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FSDP_EMULATOR_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FSDP_EMULATOR_ASAN 1
#endif

namespace emulator {

/// A stack with a function that runs on it, or the stack of the thread itself. A fiber belongs to
/// one OS thread.
class Fiber {
public:
  /// The stack that runs now.
  Fiber() = default;
  /// Will run `entry(argument)` when it is first switched to; entry never returns. Fibers with
  /// different numbers begin at different places of their stacks.
  Fiber(void (*entry)(void *), void *argument, unsigned number);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Suspends this fiber, which is running, and resumes `to`.
  void switchTo(Fiber &to);
  /// The first address behind its stack; 0 for that of the thread itself.
  std::uintptr_t end() const {
    return mapping ? reinterpret_cast<std::uintptr_t>(stackBottom) + stackBytes : 0;
  }
  /// Whether an address lies in the pages that guard this stack.
  bool guards(const void *address) const;

private:
  static void start();
  void arrived();

  void (*entry)(void *) = nullptr;
  void *argument = nullptr;
  char *mapping = nullptr;
  std::size_t mapped = 0;
  const void *stackBottom = nullptr;
  std::size_t stackBytes = 0;
#ifdef FSDP_EMULATOR_ASAN
  void *sanitizer = nullptr;
#endif
#ifdef FSDP_EMULATOR_USES_UCONTEXT
  ucontext_t context{};
#else
  void *stackPointer = nullptr;
#endif
};

} // namespace emulator

#endif // FSDP_EMULATOR_FIBER_H
