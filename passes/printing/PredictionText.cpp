//===- PredictionText.cpp - the prediction in the report ------------------===//

#include "passes/printing/PredictionText.h"
#include "passes/printing/MemoryReportText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::addTo(llvm::json::Object &report, const Prediction &prediction) {
  llvm::json::Array ofStreams, calls;
  for (const cost::StreamTime &stream : prediction.streams)
    ofStreams.push_back(llvm::json::Object{{"stream", stream.name},
                                           {"busy_ms", stream.busy * 1e3},
                                           {"exposed_ms", stream.exposed * 1e3}});
  for (const PredictedCollective &call : prediction.collectives)
    calls.push_back(llvm::json::Object{{"kind", call.kind},
                                       {"axes", llvm::json::Array(call.axes)},
                                       {"bytes", call.bytes},
                                       {"count", call.count},
                                       {"ms", call.time.seconds * 1e3},
                                       {"algorithm", call.time.algorithm},
                                       {"bus_bytes", call.time.busBytes},
                                       {"link_bytes_per_s", call.time.linkBandwidth}});
  report["predicted_machine"] = prediction.machine;
  report["predicted_kernels"] = prediction.kernels;
  report["predicted_step_ms"] = prediction.step * 1e3;
  report[prediction.itemsAreTokens ? "predicted_tokens_per_s" : "predicted_samples_per_s"] =
      prediction.itemsPerSecond();
  report["predicted_model_flops"] = prediction.modelFlops;
  report["predicted_mfu"] = prediction.mfu;
  report["predicted_computing_ms"] = prediction.computing * 1e3;
  report["predicted_communicating_ms"] = prediction.communicating * 1e3;
  report["predicted_exposed_ms"] = prediction.exposed * 1e3;
  report["predicted_efficiency"] = prediction.efficiency;
  report["predicted_alive_bytes"] = prediction.alive;
  if (!prediction.role.empty())
    report["predicted_role"] = prediction.role;
  if (!prediction.pipelineIdle.empty())
    report["predicted_pipeline_idle"] = llvm::json::Array(prediction.pipelineIdle);
  report["predicted_streams"] = std::move(ofStreams);
  report["predicted_collectives"] = std::move(calls);
}

/// Four digits: "12.34", "0.01234"; from 1000 on all before the point: "12,345".
static std::string digits(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(value < 1000 ? "%.4g" : "%.0f", value);
  for (int at = value < 1000 ? 0 : static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

void mlir::fsdp::print(const Prediction &prediction, llvm::raw_ostream &os) {
  os << "predicted step (a model, not a measurement), in ms: machine " << prediction.machine << ", "
     << prediction.kernels << " kernels\n";
  os << llvm::formatv("  {0,-14} {1,15}  {2} {3}/s on all ranks, MFU {4}\n", "step",
                      digits(prediction.step * 1e3), digits(prediction.itemsPerSecond()),
                      prediction.itemsAreTokens ? "tokens" : "samples",
                      formatPercent(prediction.mfu));
  if (!prediction.pipelineIdle.empty()) {
    os << "  idle of each rank of the pipeline, from the first forward to the last backward:";
    llvm::interleave(
        prediction.pipelineIdle, os, [&](double idle) { os << " " << formatPercent(idle); }, ",");
    os << "\n";
  }
  if (!prediction.role.empty())
    os << "  streams and collectives of " << prediction.role << ", which computes for longest\n";
  for (const cost::StreamTime &stream : prediction.streams) {
    os << llvm::formatv("  {0,-14} {1,15}  busy", stream.name, digits(stream.busy * 1e3));
    if (stream.exposed > 0)
      os << ", " << digits(stream.exposed * 1e3) << " exposed";
    os << "\n";
  }
  if (prediction.communicating > 0)
    os << llvm::formatv("  {0,-14} {1,15}  of {2} of communication; efficiency {3}\n", "exposed",
                        digits(prediction.exposed * 1e3), digits(prediction.communicating * 1e3),
                        formatPercent(prediction.efficiency));
  for (const PredictedCollective &call : prediction.collectives) {
    os << llvm::formatv("  {0,4} x {1,9} ms  {2} over {3}, ", call.count,
                        digits(call.time.seconds * 1e3), call.kind, llvm::join(call.axes, ", "));
    if (call.time.algorithm.empty()) // among one rank
      os << "a copy\n";
    else
      os << llvm::formatv("{0} ({1} of {2} GB/s)\n", call.time.algorithm,
                          digits(call.time.busBytes / call.time.seconds * 1e-9),
                          digits(call.time.linkBandwidth * 1e-9));
  }
}
