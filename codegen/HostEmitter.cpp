//===- HostEmitter.cpp ----------------------------------------------------===//

#include "codegen/HostEmitter.h"

#include "codegen/Functions.h"
#include "codegen/SharedFunctions.h"
#include "codegen/TraceTables.h"

using namespace mlir;
using namespace mlir::fsdp;

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
      if (failed(call) || (call->hasKernel() && failed(kernels.insert(action.launch, write))))
        return failure();
      calls[action.launch] = std::make_unique<const Call>(std::move(*call));
    }
  return success();
}

LogicalResult HostEmitter::emitAction(const Action &action, NameTable &spelling,
                                      Writer &writer) const {
  LaunchOp launch = action.launch;
  const Call &call = *calls.find(launch)->second;
  auto slice = [&](Value buffer) {
    return spelling.slice(arena.spell(buffer), arena.typeOf(buffer));
  };
  SpelledLaunch spelled{launch, call, program.names.stream(launch.getStreamAttr()),
                        spelling.launchName("\"" + escaped(launch.getName()) + "\""), slice};
  auto spellEvent = [&](int event) {
    bool isOfProgram = event < static_cast<int>(program.programEvents.size());
    return spelling.event(isOfProgram ? program.names.event(event) : std::to_string(event));
  };
  for (int event : action.waits)
    target->wait(spelled, spellEvent(event), writer);
  target->launch(spelled, *kernels, writer);
  for (int event : action.records)
    target->record(spelled, spellEvent(event), writer);
  return success();
}

LogicalResult HostEmitter::emitActions(const Timeline &timeline, const FunctionRange &range,
                                       NameTable &spelling, Writer &writer) const {
  for (size_t i = range.begin; i < range.end; ++i)
    if (failed(emitAction(timeline.actions[i], spelling, writer)))
      return failure();
  return success();
}

/// Functions that differ in no more than places, names and events are written once, with a table
/// for each; `calls` are all calls in order.
LogicalResult HostEmitter::emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                                         Writer &writer) const {
  struct Group {
    size_t size = 0;
    std::string function, table; ///< empty until they are written
  };
  std::vector<FunctionRange> ranges = cutIntoFunctions(program, timeline);
  std::vector<NameTable> spellings;
  std::vector<std::string> bodies;
  llvm::StringMap<Group> groups;
  for (const FunctionRange &range : ranges) {
    Writer body;
    spellings.push_back(NameTable::numbered());
    if (failed(emitActions(timeline, range, spellings.back(), body)))
      return failure();
    for (const NameTable::Field &field : spellings.back().getFields())
      body.line(field.type);
    ++groups[body.text()].size;
    bodies.push_back(body.text());
  }
  Names names;
  names.unique("run");
  names.unique("at");
  names.unique("trace");
  names.unique("traced");
  for (auto [i, range] : llvm::enumerate(ranges)) {
    Group &group = groups[bodies[i]];
    std::string name = names.unique(range.name);
    writer.line();
    if (group.size == 1) {
      writer.open("void " + name + "(Context &c)");
      NameTable literal = NameTable::literal();
      if (failed(emitActions(timeline, range, literal, writer)))
        return failure();
      writer.close();
      calls.push_back(name + "(c);");
      continue;
    }
    if (group.function.empty()) {
      group.function = names.unique(sharedName(range.name));
      group.table = names.unique(StringRef(enumeratorFor(group.function)).drop_front());
      StringRef unit = StringRef(range.name).rsplit('.').first;
      NameTable named = spellings[i].named(unit);
      writer.line("// What differs between the " + std::to_string(group.size) + " calls of " +
                  group.function + ".");
      declareTable(writer, group.table, named.getFields());
      writer.line();
      writer.open("void " + group.function + "(Context &c, const " + group.table + " &at)");
      if (failed(emitActions(timeline, range, named, writer)))
        return failure();
      writer.close();
      writer.line();
    }
    defineTable(writer, group.table, name, spellings[i].getFields());
    calls.push_back(group.function + "(c, " + name + ");");
  }
  return success();
}

LogicalResult HostEmitter::emitSegment(const Timeline &timeline, Writer &writer) const {
  const std::string &space = program.names.segment(timeline.segment);
  emitBanner(writer, "Segment " + space);
  writer.line("namespace " + space + " {");
  writer.line();
  writer.line("namespace arena {");
  arena.declareSegment(writer, timeline);
  writer.line("} // namespace arena");
  std::vector<std::string> slots;
  for (auto [i, name, slot] : llvm::enumerate(timeline.outputs, timeline.slots))
    slots.push_back(
        program.names.output(timeline.segment, name) +
        (slot == (i ? timeline.slots[i - 1] + 1 : 0) ? "" : " = " + std::to_string(slot)));
  if (!slots.empty()) {
    writer.line();
    writer.list("enum : int { ", slots, " };");
  }
  writer.line();
  emitTraceTables(program, timeline, writer);
  std::vector<std::string> calls;
  if (failed(emitFunctions(timeline, calls, writer)))
    return failure();
  writer.line();
  writer.open("void run(Context &c)");
  for (const std::string &call : calls)
    writer.line(call);
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
  emitStorages(program, arena, modelTables, writer);
  for (const Timeline &timeline : program.timelines)
    if (failed(emitSegment(timeline, writer)))
      return failure();
  emitBanner(writer, "Tables");
  emitProgramTable(program, arena, options, modelTables, file.elsewhere, writer);
  writer.line();
  writer.line("} // namespace");
  return success();
}
