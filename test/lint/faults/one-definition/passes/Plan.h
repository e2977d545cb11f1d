#ifndef PASSES_PLAN_H
#define PASSES_PLAN_H
namespace mlir::fsdp {
struct Place {
  int buffer;
  struct Inner {};
};
/// struct Comment {
class Waits;
namespace streams {
enum class Kind { compute };
}
} // namespace mlir::fsdp
#endif
