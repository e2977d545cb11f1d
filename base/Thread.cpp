//===- Thread.cpp - why a thread cannot start -----------------------------===//

#include "base/Thread.h"

#include <cstddef>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace base {

static std::string inKiB(std::size_t bytes) { return std::to_string(bytes / 1024) + " KiB"; }

// The C library reports EAGAIN for every cause, also where the stack could not be mapped.
std::string explainThreadLimit() {
  std::size_t stack = 0;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
  }
  void *mapped =
      stack ? mmap(nullptr, stack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)
            : nullptr;
  if (mapped != MAP_FAILED) {
    if (mapped)
      munmap(mapped, stack);
    return "the user's limit of processes, 'ulimit -u', or pids.max of its cgroup, must leave room "
           "for more threads";
  }
  rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    return "the limit of address space, 'ulimit -v', got " + inKiB(space.rlim_cur) +
           ", must leave room for a stack of " + inKiB(stack) +
           "; raise it, or lower 'ulimit -s' or --threads";
  return "there is no memory for a stack of " + inKiB(stack) +
         "; free some, or lower 'ulimit -s' or --threads";
}

} // namespace base
