//===- Check.h - every call to CUDA, NCCL and cuBLASLt is checked -----------===//
#ifndef FSDP_RUNTIME_CUDA_CHECK_H
#define FSDP_RUNTIME_CUDA_CHECK_H

/// Performs `call` as the action `name` (a literal) of the context: a status that is no success
/// throws an `Error` with this file and line, the name, the rank and the library's own words. In a
/// recording program it writes the action down. The name is set before the call's operands are
/// evaluated, so that they, a hang and an asynchronous failure are said to be this action's.
#define CHECK(context, name, call) (context).at(name).check((call), __FILE__, __LINE__)

#endif // FSDP_RUNTIME_CUDA_CHECK_H
