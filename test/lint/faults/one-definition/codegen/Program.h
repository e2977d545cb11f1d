#ifndef CODEGEN_PROGRAM_H
#define CODEGEN_PROGRAM_H
namespace mlir {
namespace fsdp {
class Waits final : public Base {
  struct Inner {};
};
struct Place {
  long offset;
};
enum class Kind { gather };
} // namespace fsdp
} // namespace mlir
#endif
