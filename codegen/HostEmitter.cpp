//===- HostEmitter.cpp ----------------------------------------------------===//

#include "codegen/HostEmitter.h"

#include "codegen/Functions.h"
#include "codegen/RoleTables.h"
#include "codegen/SharedFunctions.h"
#include "codegen/TraceTables.h"

using namespace mlir;
using namespace mlir::fsdp;

/// About the text of an action: its calls, its row of a table, and its places.
static constexpr size_t kBytesOfAction = 1024;

void mlir::fsdp::emitBanner(Writer &writer, StringRef title) {
  std::string line = "//===--- " + title.str() + " ";
  line.append(line.size() < 74 ? 74 - line.size() : 0, '-');
  writer.line();
  writer.line(line + "===//");
  writer.line();
}

HostEmitter::HostEmitter(const ScheduledProgram &program, const EmitOptions &options)
    : program(program), options(options), arena(program),
      target(options.target == TargetKind::Cuda ? createCudaTarget(program)
                                                : createCpuTarget(program)) {}

LogicalResult HostEmitter::prepare(KernelTable &kernels) {
  if (failed(arena.create()) || failed(emitModelTables(program, modelTables)))
    return failure();
  const KernelWriter write = [&](LaunchOp launch, bool anonymous) {
    return target->kernel(launch, anonymous);
  };
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions) {
      if (failed(target->check(action.launch)))
        return failure();
      FailureOr<Call> call = callFor(program, action.launch);
      if (failed(call) ||
          (call->hasKernel() && failed(kernels.insert(program, action.launch, write))))
        return failure();
      calls[action.launch] = std::make_unique<const Call>(std::move(*call));
    }
  return success();
}

static ArrayRef<Action> actionsOf(const Timeline &timeline, const FunctionRange &range) {
  return ArrayRef(timeline.actions).slice(range.begin, range.end - range.begin);
}

LogicalResult HostEmitter::emitActions(const Timeline &timeline, const FunctionRange &range,
                                       NameTable &table, Writer &writer) const {
  const ModelNames &names = program.modelNames;
  auto slice = [&](Value buffer) {
    return table.spell(arena.typeOf(buffer), arena.spell(buffer), names.of(buffer));
  };
  const int ofProgram = program.programEvents.size();
  auto spellEvent = [&](int event) {
    const ModelName &after = event < ofProgram ? names.of(program.programEvents[event])
                                               : names.of(timeline.recorders[event - ofProgram]);
    return table.spell("int", program.names.event(timeline.segment, event), after, "after_");
  };
  for (const Action &action : actionsOf(timeline, range)) {
    LaunchOp launch = action.launch;
    PrintedLaunch spelled{launch, *calls.find(launch)->second,
                          program.names.stream(launch.getStreamAttr()),
                          table.spell("const char *", "\"" + escaped(launch.getName()) + "\"",
                                      names.of(launch), "", "_name"),
                          slice};
    for (int event : action.waits)
      target->wait(spelled, spellEvent(event), writer);
    target->launch(spelled, *kernels, writer);
    for (int event : action.records)
      target->record(spelled, spellEvent(event), writer);
  }
  return success();
}

/// Functions that differ in no more than places, names and events are written once, with a row for
/// each; `calls` are all calls in order.
LogicalResult HostEmitter::emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                                         Writer &writer) const {
  const std::vector<FunctionRange> ranges = cutIntoFunctions(program, timeline);
  std::vector<NameTable> rows;
  rows.reserve(ranges.size()); // groups refer to them
  llvm::StringMap<size_t> groupOfText;
  std::vector<SmallVector<size_t>> groups; ///< ranges, in order
  std::vector<std::string> callOf(ranges.size());
  for (auto [i, range] : llvm::enumerate(ranges)) {
    Writer body;
    rows.push_back(NameTable::ofNumbers());
    if (failed(emitActions(timeline, range, rows.back(), body)))
      return failure();
    for (const NameTable::Field &field : rows.back().getFields())
      body.line(field.type);
    auto [group, isNew] = groupOfText.try_emplace(body.text(), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[group->second].push_back(i);
  }
  Names names;
  for (StringRef own : {"run", "at", "trace", "traced"})
    names.unique(own);
  llvm::DenseSet<Value> declared;
  for (ArrayRef<size_t> group : groups) {
    const FunctionRange &first = ranges[group.front()];
    Writer constants;
    for (size_t i : group)
      arena.declare(actionsOf(timeline, ranges[i]), declared, constants);
    writer.line();
    if (!constants.text().empty()) {
      writer.line("namespace arena {");
      writer.append(constants);
      writer.line("} // namespace arena");
      writer.line();
    }
    if (group.size() == 1) {
      std::string name = names.unique(first.name());
      writer.open("void " + name + "(Context &c)");
      NameTable values = NameTable::ofValues();
      if (failed(emitActions(timeline, first, values, writer)))
        return failure();
      writer.close();
      callOf[group.front()] = name + "(c);";
      continue;
    }
    SmallVector<StringRef> namesOfUnits;
    SmallVector<StringAttr> units;
    std::vector<const NameTable *> ofGroup;
    for (size_t i : group) {
      units.push_back(ranges[i].unit);
      namesOfUnits.push_back(ranges[i].unit ? ranges[i].unit.getValue() : "");
      ofGroup.push_back(&rows[i]);
    }
    std::string function = names.unique(commonUnit(namesOfUnits) + "." + first.part);
    std::string type = names.unique(StringRef(enumeratorFor(function)).drop_front());
    std::string table = names.unique(function + "_rows");
    const std::vector<std::string> fields = chooseFieldNames(ofGroup, units, program.modelNames);
    writer.line("// What differs between the " + std::to_string(group.size()) + " calls of " +
                function + ".");
    declareRow(writer, type, ofGroup.front()->getFields(), fields);
    writer.line();
    writer.open("void " + function + "(Context &c, const " + type + " &at)");
    NameTable named = NameTable::ofFields(fields);
    if (failed(emitActions(timeline, first, named, writer)))
      return failure();
    writer.close();
    writer.line();
    writer.open("constexpr " + type + " " + table + "[] =");
    for (auto [number, i] : llvm::enumerate(group)) {
      writer.line("// " + commentFor(ranges[i].name()));
      writeRow(writer, rows[i].getFields(), fields);
      callOf[i] = function + "(c, " + table + "[" + std::to_string(number) + "]);";
    }
    writer.close(";");
    if (group.back() - group.front() + 1 == group.size()) { // one call after another
      for (size_t i : group)
        callOf[i].clear();
      callOf[group.front()] =
          "for (const " + type + " &at : " + table + ")\n  " + function + "(c, at);";
    }
  }
  for (const std::string &call : callOf)
    if (!call.empty())
      calls.push_back(call);
  return success();
}

LogicalResult HostEmitter::emitSegment(const Timeline &timeline, Writer &writer) const {
  const std::string &space = program.names.segment(timeline.segment);
  emitBanner(writer, "Segment " + space);
  writer.line("namespace " + space + " {");
  std::vector<std::string> slots;
  for (auto [i, name, slot] : llvm::enumerate(timeline.outputs, timeline.slots))
    slots.push_back(
        program.names.output(timeline.segment, name) +
        (slot == (i ? timeline.slots[i - 1] + 1 : 0) ? "" : " = " + std::to_string(slot)));
  std::vector<std::string> events = program.names.getOwnEvents(timeline.segment);
  if (!events.empty() && !program.names.getFirstOwnEvent().empty())
    events.front() += " = " + program.names.getFirstOwnEvent();
  writer.line();
  emitEnum(slots, "Outputs", writer);
  emitEnum(events, "Events: completions that other streams wait for in this segment", writer);
  if (!slots.empty() || !events.empty())
    writer.line();
  emitTraceTables(program, timeline, writer);
  std::vector<std::string> calls;
  if (failed(emitFunctions(timeline, calls, writer)))
    return failure();
  writer.line();
  writer.open("void run(Context &c)");
  for (const std::string &call : calls)
    writer.lines(call);
  if (calls.empty())
    writer.line("(void)c;");
  writer.close();
  writer.line();
  writer.line("} // namespace " + space);
  return success();
}

LogicalResult HostEmitter::emit(const KernelTable &allKernels, const HostFile &file,
                                Writer &writer) {
  kernels = &allKernels;
  // The text of a large program grows in one place: memory that is not written takes none.
  writer.reserve(kBytesOfAction * calls.size());
  const bool hasKernels = !kernels->all().empty();
  target->head(options, file.name, file.headers, writer);
  if (options.singleFile && hasKernels)
    target->includesOfKernels(writer);
  writer.line();
  writer.line("namespace {");
  writer.line();
  writer.line("using namespace fsdp::rt;");
  if (options.singleFile && hasKernels) {
    emitBanner(writer, "Kernels");
    target->kernelsInside(*kernels, writer);
  }
  emitBanner(writer, "Names and layout");
  emitEnumerators(program, writer);
  writer.line();
  writer.line("// Offset in bytes from the start of the arena, elements");
  writer.line("namespace persistent {");
  arena.declarePersistent(writer);
  writer.line("} // namespace persistent");
  writer.line();
  emitRoleTables(program, writer);
  emitStorages(program, arena, modelTables, writer);
  for (const Timeline &timeline : program.timelines)
    if (failed(emitSegment(timeline, writer)))
      return failure();
  emitBanner(writer, "Tables");
  emitProgramTable(program, arena, options, modelTables, file.elsewhere, file.programs, writer);
  writer.line();
  writer.line("} // namespace");
  return success();
}
