//===- CheckpointFiles.h - additional files of checkpoints ------*- C++ -*-===//
//
//   module attributes {fsdp.checkpoint_files = {config.json = "{\"layers\": 12}\n"}} {}
// Files, by name, that a training program writes unchanged into every checkpoint, for programs that
// load its weights. No pass reads their contents. The verifier of the dialect checks the names: not
// a path, and not a name of the checkpoint format.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_CHECKPOINTFILES_H
#define DIALECT_FSDP_CHECKPOINTFILES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral checkpointFilesAttrName = "fsdp.checkpoint_files";

/// Whether `name` is allowed as an additional file of a checkpoint.
bool isCheckpointFileName(llvm::StringRef name);

namespace detail {
/// Verifies the attribute `fsdp.checkpoint_files` of `op`.
llvm::LogicalResult verifyCheckpointFiles(Operation *op, Attribute files);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_CHECKPOINTFILES_H
