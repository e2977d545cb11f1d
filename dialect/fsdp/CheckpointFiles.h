//===- CheckpointFiles.h - what a model puts beside its weights -*- C++ -*-===//
//
//   module attributes {fsdp.checkpoint_files = {config.json = "{\"layers\": 12}\n"}} {}
//
// Files, by name, that a training program writes into every checkpoint as they are, for programs
// that load its weights. What stands in them is the model's own business: no pass reads it. The
// verifier of the dialect sees to the names: no path, and none that a checkpoint uses itself.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_CHECKPOINTFILES_H
#define DIALECT_FSDP_CHECKPOINTFILES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral checkpointFilesAttrName = "fsdp.checkpoint_files";

/// Whether a checkpoint may hold a file called `name` beside its own.
bool isCheckpointFileName(llvm::StringRef name);

namespace detail {
/// Verifies the attribute `fsdp.checkpoint_files` of `op`.
llvm::LogicalResult verifyCheckpointFiles(Operation *op, Attribute files);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_CHECKPOINTFILES_H
