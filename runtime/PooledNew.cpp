//===- PooledNew.cpp ------------------------------------------------------===//

#include "runtime/PooledNew.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kBlockBytes = 256;
constexpr int kBlocks = 64;

/// Plain data, so that it needs no constructor when a thread starts and serves blocks that are
/// freed after the scope has ended.
struct Pool {
  alignas(16) unsigned char blocks[kBlocks][kBlockBytes];
  std::uint64_t used;
  int depth;
};

thread_local Pool pool;

void *fromPool(std::size_t bytes) {
  if (pool.depth == 0 || bytes > kBlockBytes || ~pool.used == 0)
    return nullptr;
  const int block = __builtin_ctzll(~pool.used);
  pool.used |= std::uint64_t(1) << block;
  return pool.blocks[block];
}

bool toPool(void *pointer) {
  const std::size_t distance =
      reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(pool.blocks);
  if (distance >= sizeof(pool.blocks))
    return false;
  pool.used &= ~(std::uint64_t(1) << (distance / kBlockBytes));
  return true;
}

} // namespace

fsdp::rt::PooledNew::PooledNew() { ++pool.depth; }
fsdp::rt::PooledNew::~PooledNew() { --pool.depth; }

// The program's own operator new and delete, which libraries use as well.

void *operator new(std::size_t bytes) {
  if (void *block = fromPool(bytes))
    return block;
  while (true) {
    if (void *block = std::malloc(bytes ? bytes : 1))
      return block;
    if (std::new_handler handler = std::get_new_handler())
      handler();
    else
      throw std::bad_alloc();
  }
}

void operator delete(void *pointer) noexcept {
  if (pointer && !toPool(pointer))
    std::free(pointer);
}

void operator delete(void *pointer, std::size_t) noexcept { operator delete(pointer); }
