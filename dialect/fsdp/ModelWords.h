//===- ModelWords.h - diagnostics with the names of the model ---*- C++ -*-===//
//
// A model that is described in C++ becomes ops whose names and types its author never sees.
// Verifiers and passes name these ops; messages for the author use the name of the op in the model,
// from its location: `fc1.relu`.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_MODELWORDS_H
#define DIALECT_FSDP_MODELWORDS_H

#include "mlir/IR/Location.h"
#include <string>

namespace mlir::fsdp {

/// `message`, which is about an op at `location`: an op's name at its beginning is dropped if
/// another subject follows, and otherwise replaced by the name in the location; other names of ops
/// become those of functions; types become `8x6xf32`.
std::string inWordsOfModel(StringRef message, Location location);

/// The same for a message that begins with the model's name of the operation.
std::string inWordsOfModel(StringRef message, MLIRContext *context);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_MODELWORDS_H
