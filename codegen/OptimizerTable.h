//===- OptimizerTable.h - the optimizer of an emitted program ---*- C++ -*-===//

#ifndef CODEGEN_OPTIMIZERTABLE_H
#define CODEGEN_OPTIMIZERTABLE_H

#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"
#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp {

/// The optimizer's part of a program's table: the defaults of the options of its run.
class OptimizerTable {
public:
  /// The optimizer whose rate `program` computes; nothing is emitted if it computes none.
  explicit OptimizerTable(const ScheduledProgram &program);

  /// The constants of the rule, in the order of its row.
  void emitConstants(Writer &writer) const;
  /// The literal of Program::defaultLearningRate.
  std::string getLearningRate() const;
  /// The fields of Program that follow `communicator`, in their order, and their values.
  std::vector<std::pair<std::string, std::string>> getFields() const;

private:
  OptimizerAttr optimizer;
  Type f32;
};

} // namespace mlir::fsdp

#endif // CODEGEN_OPTIMIZERTABLE_H
