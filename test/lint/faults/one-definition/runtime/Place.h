#ifndef RUNTIME_PLACE_H
#define RUNTIME_PLACE_H
namespace fsdp::rt {
struct Place {};
} // namespace fsdp::rt
#endif
