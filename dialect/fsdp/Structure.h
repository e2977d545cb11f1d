//===- Structure.h - which part of a step an op belongs to ------*- C++ -*-===//
//
// The structure of a step (see `#fsdp.structure`) is carried by its ops from the model to the
// emitted text. Passes do not set it op by op: a StructureScope gives it to whatever a builder
// makes.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_STRUCTURE_H
#define DIALECT_FSDP_STRUCTURE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// The unit, direction and stage of an op, and whether it computes again what forward has computed.
/// The default is that of an op which says nothing: of the module itself, forward.
struct Structure {
  StringAttr unit; ///< null: of the module itself
  Direction direction = Direction::forward;
  int64_t stage = 0;
  bool recomputed = false; ///< only in backward

  static Structure get(StructureAttr attribute);
  Structure in(StringAttr unit) const { return {unit, direction, stage, recomputed}; }
  Structure in(Direction direction) const { return {unit, direction, stage}; }
  /// That of a copy in backward of an op of forward which has this one.
  Structure again() const { return {unit, Direction::backward, stage, /*recomputed=*/true}; }
  bool operator==(const Structure &other) const {
    return unit == other.unit && direction == other.direction && stage == other.stage &&
           recomputed == other.recomputed;
  }
  /// Null for the default.
  StructureAttr getAttr(MLIRContext *context) const;
};

/// That of an op of a step or a segment, a launch among them.
Structure getStructure(Operation *op);
/// Sets that of an op of a step or a segment which is no launch.
void setStructure(Operation *op, Structure structure);

/// Removes what is said of `op`, which becomes part of a kernel or launch that says it.
void removeStructure(Operation *op);

/// While it lives, the ops that `builder` makes have `structure`, but for those that have one
/// already (clones) and constants. The innermost scope of a builder counts.
class StructureScope : OpBuilder::Listener {
public:
  StructureScope(OpBuilder &builder, Structure structure)
      : builder(builder), outer(builder.getListener()), structure(structure) {
    builder.setListener(this);
  }
  ~StructureScope() override { builder.setListener(outer); }
  StructureScope(const StructureScope &) = delete;
  StructureScope &operator=(const StructureScope &) = delete;

  /// Ops have the attribute `name` as well, which is not for constants either.
  void add(StringRef name, Attribute value) { also.emplace_back(name, value); }

private:
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override;

  OpBuilder &builder;
  OpBuilder::Listener *outer;
  Structure structure;
  StructureAttr attribute; ///< of `structure`, once it is needed
  SmallVector<std::pair<StringRef, Attribute>, 1> also;
};

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_STRUCTURE_H
