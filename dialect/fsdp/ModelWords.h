//===- ModelWords.h - diagnostics in the words of a model's author *- C++ -*-===//
//
// A model that is described in C++ becomes ops whose names and types its author has never seen.
// Verifiers and passes name them; what reaches the author names what the model calls the op, after
// its location: `fc1.relu`.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_MODELWORDS_H
#define DIALECT_FSDP_MODELWORDS_H

#include "mlir/IR/Location.h"
#include <string>

namespace mlir::fsdp {

/// `message`, which is about an op at `location`: an op's name at its beginning goes where another
/// subject follows, and is else what the location calls the op; other names of ops are those of
/// functions; types are `8x6xf32`.
std::string inWordsOfModel(StringRef message, Location location);

/// The same for an operation whose message begins with what the model calls it.
std::string inWordsOfModel(StringRef message, MLIRContext *context);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_MODELWORDS_H
