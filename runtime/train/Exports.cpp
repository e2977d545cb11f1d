#include "runtime/train/Exports.h"

#include "base/PrintableText.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/train/Weights.h"

#include <cstdio>

namespace fsdp::rt {

using namespace base;

void sayWrote(const Device &device, const OutputPath &path) {
  if (device.rank() != 0)
    return;
  std::printf("wrote '%s'\n", printable(path.name()).c_str());
  showOutput();
}

void writeExports(const RunOutputs &outputs, const Program &program, Device &device,
                  const BesideFiles &carried) {
  if (!outputs.exported.empty()) {
    exportWeights(outputs.exported, program, device, outputs.exportOnly);
    if (!outputs.exportFolder.empty() && device.rank() == 0)
      writeFiles(outputs.exportsAdapters ? BesideFiles(program.adapters.files)
                                         : filesBeside(program, carried),
                 outputs.exportFolder);
    sayWrote(device, outputs.exported);
  }
  if (!outputs.merged.empty()) {
    exportMerged(outputs.merged, program, device);
    if (!outputs.mergedFolder.empty() && device.rank() == 0)
      writeFiles(filesBeside(program, carried), outputs.mergedFolder);
    sayWrote(device, outputs.merged);
  }
}

} // namespace fsdp::rt
