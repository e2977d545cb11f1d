//===- Check.h - error checks of CUDA, NCCL and cuBLASLt ------------------===//
#ifndef FSDP_RUNTIME_DEVICE_CUDA_CHECK_H
#define FSDP_RUNTIME_DEVICE_CUDA_CHECK_H

namespace fsdp::rt {

/// Two calls, the second of which uses the result of the first: the status of the first, and a
/// function that makes the second call after the first has succeeded.
template <class First, class Second> struct InOrder {
  First first;
  Second second;
};
template <class First, class Second> InOrder(First, Second) -> InOrder<First, Second>;

} // namespace fsdp::rt

/// Performs a call as the action `name` (a literal) of the context: a status other than success
/// throws an `Error` with this file and line, the name, the rank and the text of the library. In a
/// recording program it prints the action. The name is set before the operands of the call are
/// evaluated, so that their errors, a hang and an asynchronous failure are attributed to this
/// action. An action of two calls is `InOrder{one, [&] { return other; }}`: the second is not made
/// if the first fails.
#define CHECK(context, name, ...) (context).at(name).check((__VA_ARGS__), __FILE__, __LINE__)

#endif // FSDP_RUNTIME_DEVICE_CUDA_CHECK_H
