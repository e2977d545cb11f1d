//===- PooledNew.h - small allocations without the heap ---------*- C++ -*-===//
//
// A step allocates nothing after the first. oneDNN builds a short-lived map of
// arguments in every call, through operator new; inside the scope of a
// PooledNew those few small blocks come from a fixed pool of the thread.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_POOLEDNEW_H
#define FSDP_RUNTIME_POOLEDNEW_H

namespace fsdp::rt {

/// While one lives, operator new on this thread serves blocks of up to 256
/// bytes from the pool, 64 at a time, and the heap serves the rest.
class PooledNew {
public:
  PooledNew();
  ~PooledNew();
  PooledNew(const PooledNew &) = delete;
  PooledNew &operator=(const PooledNew &) = delete;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_POOLEDNEW_H
