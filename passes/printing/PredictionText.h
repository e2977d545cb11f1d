//===- PredictionText.h - the prediction in the report ----------*- C++ -*-===//

#ifndef PASSES_PRINTING_PREDICTIONTEXT_H
#define PASSES_PRINTING_PREDICTIONTEXT_H

#include "passes/prediction/Prediction.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// Adds the fields `predicted_...`.
void addTo(llvm::json::Object &report, const Prediction &prediction);

/// A table, at most 100 columns wide.
void print(const Prediction &prediction, llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // PASSES_PRINTING_PREDICTIONTEXT_H
