//===- Check.h - every call to CUDA, NCCL and cuBLASLt is checked -----------===//
#ifndef FSDP_RUNTIME_CUDA_CHECK_H
#define FSDP_RUNTIME_CUDA_CHECK_H

namespace fsdp::rt {

/// The statuses of two calls, made in the order in which they stand between the braces.
template <class First, class Second> struct InOrder {
  First first;
  Second second;
};
template <class First, class Second> InOrder(First, Second) -> InOrder<First, Second>;

} // namespace fsdp::rt

/// Performs a call as the action `name` (a literal) of the context: a status that is no success
/// throws an `Error` with this file and line, the name, the rank and the library's own words. In a
/// recording program it writes the action down. The name is set before the call's operands are
/// evaluated, so that they, a hang and an asynchronous failure are said to be this action's. An action of
/// two calls is `InOrder{one, other}`.
#define CHECK(context, name, ...) (context).at(name).check((__VA_ARGS__), __FILE__, __LINE__)

#endif // FSDP_RUNTIME_CUDA_CHECK_H
