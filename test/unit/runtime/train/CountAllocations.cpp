//===- CountAllocations.cpp - what a step takes from the system -----------===//
//
// Preloaded into a training program: counts the calls of malloc and its kin and
// of mmap between two lines of the log, and appends a line to the file that
// FSDP_TEST_ALLOCATIONS names:
//
//   OURS THEIRS BYTES
//
// OURS are the program's own calls. THEIRS are those that a library made (oneDNN
// builds a map of arguments in every call), BYTES the largest of them. A call is
// that of the first function on the stack outside of the C and C++ libraries.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <initializer_list>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static std::atomic<long> ours{0}, theirs{0}, largest{0};
/// Set while a call is looked at, which may itself allocate.
static thread_local bool looking = false;

/// True where the allocating function on the stack is of a library.
static bool isOfLibrary() {
  void *frames[24];
  const int count = backtrace(frames, 24);
  for (int i = 0; i < count; ++i) {
    Dl_info found;
    link_map *object = nullptr;
    if (!dladdr1(frames[i], &found, reinterpret_cast<void **>(&object), RTLD_DL_LINKMAP) || !object)
      continue;
    if (!*object->l_name) // the program itself
      return false;
    const char *slash = std::strrchr(object->l_name, '/');
    const char *name = slash ? slash + 1 : object->l_name;
    bool skipped = false;
    for (const char *low : {"libcount_allocations", "libc.so", "libstdc++", "libgcc_s", "ld-linux"})
      skipped |= std::strncmp(name, low, std::strlen(low)) == 0;
    if (!skipped)
      return true;
  }
  return false;
}

static void note(size_t bytes) {
  if (looking)
    return;
  looking = true;
  if (isOfLibrary()) {
    ++theirs;
    long before = largest;
    while (before < static_cast<long>(bytes) && !largest.compare_exchange_weak(before, bytes))
      ;
  } else {
    ++ours;
  }
  looking = false;
}

void *malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
  note(bytes);
  return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
  note(bytes);
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : 12;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  note(bytes);
  return reinterpret_cast<void *>(
      syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset));
}

ssize_t write(int descriptor, const void *data, size_t bytes) {
  constexpr char step[] = "{\"step\": ";
  if (bytes > sizeof(step) && std::memcmp(data, step, sizeof(step) - 1) == 0)
    if (const char *path = std::getenv("FSDP_TEST_ALLOCATIONS")) {
      looking = true;
      char line[96];
      const int length = std::snprintf(line, sizeof(line), "%ld %ld %ld\n", ours.exchange(0),
                                       theirs.exchange(0), largest.exchange(0));
      const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
      syscall(SYS_write, file, line, length);
      close(file);
      looking = false;
    }
  return syscall(SYS_write, descriptor, data, bytes);
}
}
