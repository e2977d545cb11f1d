//===- HostEmitter.cpp ----------------------------------------------------===//

#include "codegen/HostEmitter.h"

#include "codegen/RoleTables.h"
#include "codegen/TableFields.h"
#include "codegen/TraceTables.h"
#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The most actions of a function: compilers are slow on long ones.
static constexpr size_t kMostActions = 120;
/// About the text of an action: its calls, its row of a table, and its places.
static constexpr size_t kBytesOfAction = 512;

/// The heading of a part of a file.
static void emitBanner(Writer &writer, StringRef title) {
  std::string line = "//===--- " + title.str() + " ";
  line.append(line.size() < 74 ? 74 - line.size() : 0, '-');
  writer.line();
  writer.line(line + "===//");
  writer.line();
}

bool EqualForms::areAlike(LaunchOp one, LaunchOp other) {
  return one->getBlock() == other->getBlock() && one.getStreamAttr() == other.getStreamAttr() &&
         haveAlikeBuffers(one, other) && haveEqualBodies(one, other);
}

size_t EqualForms::hash(LaunchOp launch) {
  llvm::hash_code code = hashBody(launch);
  for (Value buffer : launch.getBuffers())
    code = llvm::hash_combine(code, buffer.getType());
  return code;
}

unsigned LaunchForm::numberOf(Value buffer) const {
  const auto buffers = first.getBuffers();
  return static_cast<unsigned>(llvm::find(buffers, buffer) - buffers.begin());
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
  auto makeForm = [&](LaunchOp launch) -> FailureOr<LaunchForm> {
    FailureOr<Call> call = callFor(program, launch);
    if (failed(call) || failed(target->check(launch)))
      return failure();
    return LaunchForm{launch, std::move(*call)};
  };
  size_t count = 0;
  for (const Timeline &timeline : program.timelines)
    count += timeline.actions.size();
  formOf.reserve(count);
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions) {
      const LaunchForm *form = forms.find(action.launch, makeForm);
      if (!form)
        return failure();
      formOf[action.launch] = form;
      if (form->call.hasKernel() && failed(kernels.insert(action.launch, write)))
        return failure();
    }
  return success();
}

//===----------------------------------------------------------------------===//
// A segment split into functions
//===----------------------------------------------------------------------===//

namespace {
/// The streams of a timeline that carry collectives, and those that carry gathers.
struct Communication {
  llvm::StringSet<> streams, gathers;

  explicit Communication(const Timeline &timeline) {
    for (const Action &action : timeline.actions) {
      LaunchOp launch = action.launch;
      for (CollectiveOpInterface collective : getCollectives(launch)) {
        streams.insert(launch.getStream());
        if (isa<AllGatherOp>(collective))
          gathers.insert(launch.getStream());
      }
    }
  }
};
} // namespace

/// The function of `launch`, which runs `op` alone if that is not null, without its actions; one
/// without a part if the launch is grouped with its neighbours: communication with adjacent casts,
/// input and output, arithmetic outside units.
static FunctionRange functionOf(LaunchOp launch, Operation *op,
                                const Communication &communication) {
  if (isa_and_nonnull<InputOp, OutputOp, OutputSumOp>(op) ||
      communication.streams.contains(launch.getStream()))
    return {};
  Structure structure = getStructure(launch);
  if (structure.direction == Direction::update)
    return {nullptr, "update"};
  if (!structure.unit)
    return {};
  return {structure.unit, stringifyDirection(structure.direction).str()};
}

/// Splits the actions where the unit or direction of compute changes, and after at most
/// kMostActions actions: compilers are slow on long functions. Order is kept.
static std::vector<FunctionRange> cutIntoFunctions(const Timeline &timeline) {
  std::vector<FunctionRange> ranges;
  const Communication communication(timeline);
  size_t count = timeline.actions.size();
  // Loads and gathers are grouped with the following launches, all others with the preceding ones.
  size_t cut = 0; ///< where the next function would begin
  for (size_t i = 0; i < count; ++i) {
    LaunchOp launch = timeline.actions[i].launch;
    Operation *op = onlyOp(launch);
    FunctionRange own = functionOf(launch, op, communication);
    bool isAhead =
        isa_and_nonnull<InputOp>(op) || communication.gathers.contains(launch.getStream());
    if (own.part.empty() && !isAhead) {
      cut = i + 1;
      continue;
    }
    if (own.part.empty())
      continue;
    if (ranges.empty()) {
      ranges.push_back(own);
    } else if (ranges.back().unit != own.unit || ranges.back().part != own.part) {
      ranges.back().end = cut;
      own.begin = cut;
      ranges.push_back(own);
    }
    cut = i + 1;
  }
  if (ranges.empty() && count > 0)
    ranges.push_back({nullptr, "actions"});
  if (!ranges.empty())
    ranges.back().end = count;

  std::vector<FunctionRange> pieces;
  for (const FunctionRange &range : ranges)
    for (size_t begin = range.begin; begin < range.end; begin += kMostActions)
      pieces.push_back({range.unit, range.part, begin, std::min(begin + kMostActions, range.end)});
  return pieces;
}

static ArrayRef<Action> actionsOf(const Timeline &timeline, const FunctionRange &range) {
  return ArrayRef(timeline.actions).slice(range.begin, range.end - range.begin);
}

std::string HostEmitter::spell(const Timeline &timeline, const FunctionValue &value) const {
  if (value.buffer)
    return arena.spell(value.buffer);
  if (value.launch)
    return "\"" + escaped(value.launch.getFullName()) + "\"";
  return program.names.event(timeline.segment, value.event);
}

void HostEmitter::emitCall(LaunchOp launch, std::string name,
                           llvm::function_ref<std::string(unsigned)> spell, Writer &writer) const {
  const LaunchForm &form = *formOf.find(launch)->second;
  target->launch({launch, form.call, program.names.stream(launch.getStreamAttr()), std::move(name),
                  [&](Value buffer) { return spell(form.numberOf(buffer)); }},
                 *kernels, writer);
}

const HostEmitter::PrintedCall &HostEmitter::printedCallOf(LaunchOp launch) {
  auto [entry, isNew] =
      printedCalls.try_emplace({formOf.find(launch)->second, kernels->numberOf(launch)});
  if (!isNew)
    return *entry->second;
  entry->second = std::make_unique<PrintedCall>();
  PrintedCall &call = *entry->second;
  Writer writer;
  emitCall(
      launch, "name",
      [&](unsigned number) {
        call.buffers.push_back(number);
        return std::string("buffer");
      },
      writer);
  call.text = texts.try_emplace(writer.text(), static_cast<int>(texts.size())).first->second;
  return call;
}

std::string HostEmitter::readFunction(const Timeline &timeline, const FunctionRange &range,
                                      FunctionRow &row) {
  const ModelNames &names = program.modelNames;
  std::string text;
  auto note = [&](auto number) {
    const auto word = static_cast<uint64_t>(number);
    text.append(reinterpret_cast<const char *>(&word), sizeof word);
  };
  auto add = [&](const FunctionValue &value, StringRef type, const ModelName &name) {
    std::optional<unsigned> number = row.find(value);
    if (!number) {
      number = row.add({value, type, &name});
      note(reinterpret_cast<uintptr_t>(type.data()));
    }
    note(*number);
  };
  const int ofProgram = program.programEvents.size();
  auto addEvents = [&](ArrayRef<int> events) {
    note(events.size());
    for (int event : events)
      add(FunctionValue::ofEvent(event), "int",
          event < ofProgram ? names.of(program.programEvents[event])
                            : names.of(timeline.recorders[event - ofProgram]));
  };
  for (const Action &action : actionsOf(timeline, range)) {
    const PrintedCall &call = printedCallOf(action.launch);
    note(call.text);
    add(FunctionValue::ofName(action.launch), "const char *", names.of(action.launch));
    addEvents(action.waits);
    const auto buffers = action.launch.getBuffers();
    for (unsigned number : call.buffers)
      add(FunctionValue::ofPlace(buffers[number]), arena.typeOf(buffers[number]),
          names.of(buffers[number]));
    addEvents(action.records);
  }
  return text;
}

void HostEmitter::emitActions(const Timeline &timeline, const FunctionRange &range,
                              llvm::function_ref<std::string(const FunctionValue &)> spell,
                              Writer &writer) const {
  for (const Action &action : actionsOf(timeline, range)) {
    const std::string &stream = program.names.stream(action.launch.getStreamAttr());
    for (int event : action.waits)
      target->wait(stream, spell(FunctionValue::ofEvent(event)), writer);
    const auto buffers = action.launch.getBuffers();
    emitCall(
        action.launch, spell(FunctionValue::ofName(action.launch)),
        [&](unsigned number) { return spell(FunctionValue::ofPlace(buffers[number])); }, writer);
    for (int event : action.records)
      target->record(stream, spell(FunctionValue::ofEvent(event)), writer);
  }
}

/// Functions that differ in no more than places, names and events are written once, with a row for
/// each; `calls` are all calls in order.
void HostEmitter::emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                                Writer &writer) {
  const std::vector<FunctionRange> ranges = cutIntoFunctions(timeline);
  std::vector<FunctionRow> rows(ranges.size());
  llvm::StringMap<size_t> groupOf;         ///< by the text that readFunction returns
  std::vector<SmallVector<size_t>> groups; ///< ranges, in order
  std::vector<std::string> callOf(ranges.size());
  for (auto [i, range] : llvm::enumerate(ranges)) {
    auto [group, isNew] =
        groupOf.try_emplace(readFunction(timeline, range, rows[i]), groups.size());
    if (isNew)
      groups.emplace_back();
    else
      rows[i].close();
    groups[group->second].push_back(i);
  }
  Names names, constantNames(/*qualified=*/true);
  for (StringRef own : {"run", "at", "trace", "traced"})
    names.unique(own);
  auto spellValue = [&](const FunctionValue &value) { return spell(timeline, value); };
  for (ArrayRef<size_t> group : groups) {
    const FunctionRange &first = ranges[group.front()];
    writer.line();
    if (group.size() == 1) {
      Writer constants;
      arena.declare(actionsOf(timeline, first), program.names.segment(timeline.segment),
                    constantNames, constants);
      if (!constants.text().empty()) {
        writer.line("namespace arena {");
        writer.append(constants);
        writer.line("} // namespace arena");
        writer.line();
      }
      std::string name = names.unique(first.name());
      writer.open("void " + name + "(Context &c)");
      emitActions(timeline, first, spellValue, writer);
      writer.close();
      callOf[group.front()] = name + "(c);";
      continue;
    }
    SmallVector<StringRef> namesOfUnits;
    SmallVector<StringAttr> units;
    std::vector<const FunctionRow *> ofGroup;
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
    emitActions(
        timeline, first,
        [&](const FunctionValue &value) { return "at." + fields[*ofGroup.front()->find(value)]; },
        writer);
    writer.close();
    writer.line();
    writer.open("constexpr " + type + " " + table + "[] =");
    for (auto [number, i] : llvm::enumerate(group)) {
      writer.line("// " + commentFor(ranges[i].name()));
      Fields values;
      for (auto [name, field] : llvm::zip_equal(fields, rows[i].getFields()))
        values.add(name, spellValue(field.value));
      writer.list("{", values.getItems(), "},");
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
}

void HostEmitter::emitSegment(const Timeline &timeline, Writer &writer) {
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
  emitFunctions(timeline, calls, writer);
  writer.line();
  writer.open("void run(Context &c)");
  for (const std::string &call : calls)
    writer.lines(call);
  if (calls.empty())
    writer.line("(void)c;");
  writer.close();
  writer.line();
  writer.line("} // namespace " + space);
}

void HostEmitter::emit(const KernelTable &allKernels, const HostFile &file, Writer &writer) {
  kernels = &allKernels;
  // The text of a large program grows in one place: memory that is not written takes none.
  writer.reserve(kBytesOfAction * formOf.size());
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
    emitSegment(timeline, writer);
  emitBanner(writer, "Tables");
  emitProgramTable(program, arena, options, modelTables, file.elsewhere, file.programs, writer);
  writer.line();
  writer.line("} // namespace");
}
