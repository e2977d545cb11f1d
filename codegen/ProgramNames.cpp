//===- ProgramNames.cpp ---------------------------------------------------===//

#include "codegen/ProgramNames.h"

#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"

using namespace mlir;
using namespace mlir::fsdp;

void ProgramNames::create(const ScheduledProgram &program) {
  // One scope for all of it: an input "a b" and a stream "input a b" are `kInputAB` and another.
  Names names;
  auto enumerator = [&](StringRef kind, StringRef text) {
    return names.unique(enumeratorFor((kind + " " + text).str()));
  };
  for (const Timeline &timeline : program.timelines)
    segments[timeline.segment] = names.unique(timeline.segment.getSymName());
  for (const auto &[stream, index] : program.streams)
    streams[stream] = enumerator("", stream);
  for (const auto &[key, index] : program.communicators)
    communicators[key] = enumerator("over", program.communicatorName(key.first, key.second));
  for (StringAttr axis : program.mesh.getAxisNames())
    axes[axis] = enumerator("axis", axis);
  for (StorageOp storage : program.storages)
    storages[storage.getSymNameAttr()] = enumerator("storage", storage.getSymName());
  for (const auto &[input, entry] : program.inputs)
    inputs[input] = enumerator("input", input);
  for (EventOp event : program.programEvents)
    events.push_back(enumerator("event", event.getName()));
  for (const ProgramWalk &walk : program.walks) {
    std::string name = identifierFor(walk.name.getValue());
    runTables[walk.name] = names.unique(name + "_runs");
    outputTables[walk.name] = names.unique(name + "_outputs");
  }
  for (StorageOp storage : program.storages) {
    std::string name = identifierFor(storage.getSymName());
    memberTables[storage.getSymNameAttr()] = names.unique(name + "_members");
    stateTables[storage.getSymNameAttr()] = names.unique(name + "_states");
  }
  for (const Timeline &timeline : program.timelines) {
    Names inside = names; // what a segment declares hides no name that it uses
    for (StringAttr output : timeline.outputs)
      outputs[{timeline.segment, output}] =
          inside.unique(enumeratorFor("output " + output.getValue().str()));
  }
}
