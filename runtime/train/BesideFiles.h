//===- BesideFiles.h - files beside weights, for programs that load them -===//

#ifndef FSDP_RUNTIME_TRAIN_BESIDEFILES_H
#define FSDP_RUNTIME_TRAIN_BESIDEFILES_H

#include "runtime/program/Program.h"

#include <string>
#include <vector>

namespace fsdp::rt {

struct BesideFile {
  std::string name, text;
  std::string path = ""; ///< where it was read; empty: it is the program's own
};

/// Files that checkpoints and exported folders contain unchanged beside the tensors.
struct BesideFiles : std::vector<BesideFile> {
  BesideFiles() = default;
  /// Those of a program.
  BesideFiles(Table<ExtraFile> files);
};

/// The files of `folder` that training does not read and that belong to its weights: those of a
/// tokenizer and the settings of generation. Error: one cannot be read.
BesideFiles filesToCarry(const std::string &folder);

/// The files of a program, and `carried` files that it does not have.
BesideFiles filesBeside(const Program &program, const BesideFiles &carried);

/// Writes them to `folder`, each atomically.
void writeFiles(const BesideFiles &files, const std::string &folder);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_BESIDEFILES_H
