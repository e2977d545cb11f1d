//===- Work.h - what a launch does, for traces ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_WORK_H
#define FSDP_RUNTIME_WORK_H

namespace fsdp::rt {

/// The kind of a launch, a literal, and its multiplications and additions, 0 where nobody counted
/// them. A launch that says nothing is a loop that the compiler wrote.
struct Work {
  const char *kind = "fused";
  double flops = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_WORK_H
