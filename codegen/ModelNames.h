//===- ModelNames.h - names of values and launches by unit ------*- C++ -*-===//
//
// The IR names a launch by its place in the model, its operation and its kind:
// "h.0.ln_2.layerNorm.grad layer_norm_grad", and the buffers of its results after the launch:
// "….0", "….1". Emitted code has each part once: `h_0_ln_2_grad`, `h_0_ln_2_grad_1`. The unit that
// a name belongs to comes from the structure of launches and from parameters, never from the text
// of the name.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_MODELNAMES_H
#define CODEGEN_MODELNAMES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <string>

namespace mlir::fsdp {

/// A name within its unit: "ln_2.grad" of "h.0".
struct ModelName {
  StringAttr unit; ///< null if of no unit
  std::string name;

  /// "h.0.ln_2.grad"
  std::string whole() const;
};

class ModelNames {
public:
  /// Reads the launches of `program` and the parameters of `module`, which has these `symbols`.
  void create(ModuleOp module, ProgramOp program, const SymbolTable &symbols);

  const ModelName &of(LaunchOp launch) const { return *launchesAndEvents.find(launch)->second; }
  /// Of a buffer, or of a part of one, that launches use.
  const ModelName &of(Value buffer) const { return *buffers.find(buffer)->second; }
  /// The name of an event of the program, which is named after the launch that records it.
  const ModelName &of(EventOp event) const { return *launchesAndEvents.find(event)->second; }

  /// The name as seen from `unit`: "ln_2.grad" in its own unit, "next.ln_2.grad" in the unit before
  /// its own, "next.2.ln_2.grad" in the one before that, "previous.ln_2.grad" in the unit after it;
  /// the whole name if one of them has no unit.
  std::string seenFrom(StringAttr unit, const ModelName &name) const;

private:
  llvm::DenseMap<StringAttr, int> positions; ///< of units, in the order of the parameters
  std::deque<ModelName> names;               ///< each once
  llvm::DenseMap<Value, const ModelName *> buffers;
  llvm::DenseMap<Operation *, const ModelName *> launchesAndEvents;
};

/// The name of a buffer or subview: that of the buffer, or of the value in the model that the
/// subview holds. Callers that query many names pass the `symbols` of the module, which are
/// indexed.
std::string bufferName(Value buffer, const SymbolTable *symbols = nullptr);

} // namespace mlir::fsdp

#endif // CODEGEN_MODELNAMES_H
