//===- Allocator.cpp - how jemalloc keeps memory --------------------------===//
//
// A compilation frees much and needs it again: the plain data of one pass, then those of the next
// one. By default jemalloc returns unused pages within ten seconds, and the kernel clears each
// page that it gives again. Here pages stay with the process, which thus has its largest need of
// memory from there on. One arena serves all threads: nearly all memory is that of one.
//
//===----------------------------------------------------------------------===//

extern "C" {
/// Read by jemalloc at its start, whose own definition is weak.
extern const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,narenas:1";
}
