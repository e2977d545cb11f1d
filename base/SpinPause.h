//===- SpinPause.h - a pause in a loop that waits ---------------*- C++ -*-===//

#ifndef BASE_SPINPAUSE_H
#define BASE_SPINPAUSE_H

namespace base {

/// Tells the processor that the calling thread only waits for another one to write.
inline void pauseInSpin() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace base

#endif // BASE_SPINPAUSE_H
