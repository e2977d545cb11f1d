//===- Safetensors.h - read and write tensors by name -----------*- C++ -*-===//
//
// A file is eight bytes of little-endian length N, N bytes of JSON that give type, shape and byte
// range of each tensor, and then the bytes, row-major and little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef INTERPRETER_SAFETENSORS_H
#define INTERPRETER_SAFETENSORS_H

#include "interpreter/Tensor.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace mlir::fsdp::interpreter {

using TensorFile = std::map<std::string, Tensor>;

/// Reads all tensors of a file: F64, F32, F16, BF16, I64, I32 and BOOL. A truncated or corrupt file
/// is an error that names the file, the fault, got and expected.
llvm::Expected<TensorFile> readSafetensors(StringRef path, MLIRContext *context);

/// The bytes of a file that holds `tensors` with their element types.
std::string encodeSafetensors(const TensorFile &tensors);

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_SAFETENSORS_H
