//===- Structure.h - the part of a step that an op belongs to ---*- C++ -*-===//
//
// The structure of a step (see `#fsdp.structure`) is carried by its ops from the model to the
// emitted text. Passes do not set it op by op: a StructureScope sets it on every op that a builder
// creates.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_STRUCTURE_H
#define DIALECT_FSDP_STRUCTURE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// The unit, direction, stage and microbatch of an op, and whether it recomputes a value of
/// forward. The default is that of an op without the attribute: the module itself, forward.
struct Structure {
  StringAttr unit; ///< null: of the module itself
  Direction direction = Direction::forward;
  int64_t stage = 0;
  bool recomputed = false; ///< only in backward
  int64_t microbatch = -1; ///< -1: of any, or of all

  static Structure get(StructureAttr attribute);
  Structure in(StringAttr unit) const { return {unit, direction, stage, recomputed, microbatch}; }
  Structure in(Direction direction) const { return {unit, direction, stage, false, microbatch}; }
  Structure of(int64_t microbatch) const {
    return {unit, direction, stage, recomputed, microbatch};
  }
  /// The structure of a copy in backward of an op of forward with this structure.
  Structure again() const {
    return {unit, Direction::backward, stage, /*recomputed=*/true, microbatch};
  }
  bool operator==(const Structure &other) const {
    return unit == other.unit && direction == other.direction && stage == other.stage &&
           recomputed == other.recomputed && microbatch == other.microbatch;
  }
  /// Null for the default.
  StructureAttr getAttr(MLIRContext *context) const;
};

/// The structure of an op of a step or a segment, launches included.
Structure getStructure(Operation *op);
/// Sets the structure of an op of a step or a segment, except launches.
void setStructure(Operation *op, Structure structure);

/// Removes the structure of `op`, which becomes part of a kernel or launch that has it.
void removeStructure(Operation *op);

/// During its lifetime, the ops that `builder` creates have `structure`, except those that already
/// have one (clones) and constants. The innermost scope of a builder counts.
class StructureScope : OpBuilder::Listener {
public:
  StructureScope(OpBuilder &builder, Structure structure)
      : builder(builder), outer(builder.getListener()), structure(structure) {
    builder.setListener(this);
  }
  ~StructureScope() override { builder.setListener(outer); }
  StructureScope(const StructureScope &) = delete;
  StructureScope &operator=(const StructureScope &) = delete;

  /// Ops also have the attribute `name`, except constants.
  void add(StringRef name, Attribute value) { also.emplace_back(name, value); }

private:
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override;

  OpBuilder &builder;
  OpBuilder::Listener *outer;
  Structure structure;
  StructureAttr attribute; ///< of `structure`, created on first use
  SmallVector<std::pair<StringRef, Attribute>, 1> also;
};

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_STRUCTURE_H
