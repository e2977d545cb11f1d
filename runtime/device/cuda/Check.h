//===- Check.h - every call to CUDA, NCCL and cuBLASLt is checked -----------===//
#ifndef FSDP_RUNTIME_DEVICE_CUDA_CHECK_H
#define FSDP_RUNTIME_DEVICE_CUDA_CHECK_H

namespace fsdp::rt {

/// Two calls, the second of which goes on with what the first one enqueued: its status, and a
/// function that makes the second call, once the first is known to have succeeded.
template <class First, class Second> struct InOrder {
  First first;
  Second second;
};
template <class First, class Second> InOrder(First, Second) -> InOrder<First, Second>;

} // namespace fsdp::rt

/// Performs a call as the action `name` (a literal) of the context: a status that is no success
/// throws an `Error` with this file and line, the name, the rank and the library's own words. In a
/// recording program it writes the action down. The name is set before the call's operands are
/// evaluated, so that they, a hang and an asynchronous failure are said to be this action's. An
/// action of two calls is `InOrder{one, [&] { return other; }}`: the other is not made where the
/// one failed.
#define CHECK(context, name, ...) (context).at(name).check((__VA_ARGS__), __FILE__, __LINE__)

#endif // FSDP_RUNTIME_DEVICE_CUDA_CHECK_H
