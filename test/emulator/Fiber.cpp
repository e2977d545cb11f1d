//===- Fiber.cpp - stacks that take turns on one thread --------------------------===//

#include "Fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

#ifdef FSDP_EMULATOR_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {

namespace {
#ifdef FSDP_EMULATOR_ASAN
constexpr std::size_t kStackBytes = 512 * 1024; // its frames are wide
#else
constexpr std::size_t kStackBytes = 128 * 1024;
#endif
constexpr std::size_t kPage = 4096;
constexpr unsigned kStaggers = 127; ///< places of the first frame of a stack, 64 bytes apart

thread_local Fiber *leaving = nullptr, *arriving = nullptr;
} // namespace

#ifndef FSDP_EMULATOR_USES_UCONTEXT
// Saves what a call must preserve on the stack that is left; ucontext would request the signal mask
// from the kernel each time, at a hundred times the cost.
extern "C" void fsdpEmulatorSwitch(void **from, void *to);
asm(R"(
  .text
  .globl fsdpEmulatorSwitch
  .type fsdpEmulatorSwitch, @function
fsdpEmulatorSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size fsdpEmulatorSwitch, .-fsdpEmulatorSwitch
)");
#endif

Fiber::Fiber(void (*entry)(void *), void *argument, unsigned number)
    : entry(entry), argument(argument) {
  mapped = kStackBytes + 2 * kPage;
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  mapping = static_cast<char *>(memory);
  mprotect(mapping, kPage, PROT_NONE);
  mprotect(mapping + kPage + kStackBytes, kPage, PROT_NONE);
  stackBottom = mapping + kPage;
  stackBytes = kStackBytes;
#ifdef FSDP_EMULATOR_USES_UCONTEXT
  getcontext(&context);
  context.uc_stack.ss_sp = mapping + kPage;
  context.uc_stack.ss_size = kStackBytes;
  makecontext(&context, &Fiber::start, 0);
#else
  // Not all at the same place in their pages: they would share few lines of the cache.
  const std::size_t stagger = number % kStaggers * 64;
  // Six registers, then the address to return to. A function starts with its stack 8 bytes off 16.
  void **top = reinterpret_cast<void **>(mapping + kPage + kStackBytes - stagger) - 8;
  for (int i = 0; i < 8; ++i)
    top[i] = nullptr;
  top[6] = reinterpret_cast<void *>(&Fiber::start);
  stackPointer = top;
#endif
}

Fiber::~Fiber() {
  if (mapping)
    munmap(mapping, mapped);
}

bool Fiber::guards(const void *address) const {
  const char *at = static_cast<const char *>(address);
  return mapping && at >= mapping && at < mapping + mapped &&
         (at < mapping + kPage || at >= mapping + mapped - kPage);
}

void Fiber::start() {
  arriving->arrived();
  Fiber *self = arriving;
  self->entry(self->argument);
  std::abort();
}

void Fiber::arrived() {
#ifdef FSDP_EMULATOR_ASAN
  const void *bottom;
  std::size_t bytes;
  __sanitizer_finish_switch_fiber(sanitizer, &bottom, &bytes);
  leaving->stackBottom = bottom;
  leaving->stackBytes = bytes;
#endif
}

void Fiber::switchTo(Fiber &to) {
  leaving = this;
  arriving = &to;
#ifdef FSDP_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&sanitizer, to.stackBottom, to.stackBytes);
#endif
#ifdef FSDP_EMULATOR_USES_UCONTEXT
  swapcontext(&context, &to.context);
#else
  fsdpEmulatorSwitch(&stackPointer, to.stackPointer);
#endif
  arrived();
}

} // namespace emulator
