//===- EmitCpp.cpp --------------------------------------------------------===//

#include "codegen/EmitCpp.h"

#include "codegen/Arena.h"
#include "codegen/Calls.h"
#include "codegen/Elementwise.h"
#include "codegen/Functions.h"
#include "codegen/KernelPrinter.h"
#include "codegen/SharedFunctions.h"
#include "codegen/Tables.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class Emitter {
public:
  Emitter(const ScheduledProgram &program, const EmitOptions &options)
      : program(program), options(options), arena(program) {}
  LogicalResult emit(EmittedProgram &out);

private:
  LogicalResult collectKernels();
  void emitHead(Writer &writer) const;
  void emitKernels(Writer &writer, bool declarations) const;
  LogicalResult emitSegment(const Timeline &timeline, StringRef space, Writer &writer) const;
  LogicalResult emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                              Writer &writer) const;
  LogicalResult emitActions(const Timeline &timeline, const FunctionRange &range,
                            Spelling &spelling, Writer &writer) const;
  LogicalResult emitAction(const Action &action, Spelling &spelling, Writer &writer) const;
  void emitKernelLaunch(LaunchOp launch, std::vector<std::string> items, const Call &call,
                        Spelling &spelling, Writer &writer) const;
  std::string spell(Value buffer, Spelling &spelling) const {
    return spelling.slice(arena.spell(buffer), arena.typeOf(buffer));
  }

  const ScheduledProgram &program;
  const EmitOptions &options;
  Arena arena;
  KernelTable kernels;
};

} // namespace

static void banner(Writer &writer, StringRef title) {
  std::string line = "//===--- " + title.str() + " ";
  line.append(line.size() < 74 ? 74 - line.size() : 0, '-');
  writer.line();
  writer.line(line + "===//");
  writer.line();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult Emitter::collectKernels() {
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions) {
      FailureOr<Call> call = callFor(program, action.launch);
      if (failed(call) || (call->function.empty() && failed(kernels.insert(action.launch))))
        return failure();
    }
  kernels.assignNames();
  return success();
}

void Emitter::emitKernels(Writer &writer, bool declarations) const {
  writer.line("namespace fused {");
  for (const KernelTable::Entry &entry : kernels.all()) {
    writer.line();
    std::string callers = "Launched as";
    for (auto [i, name] : llvm::enumerate(ArrayRef(entry.launches).take_front(3)))
      callers += (i ? ", '" : " '") + name + "'";
    if (entry.launches.size() > 3)
      callers += " and " + std::to_string(entry.launches.size() - 3) + " more";
    std::vector<std::string> parameters = entry.function.parameters;
    if (declarations) {
      writer.line("/// " + callers + ".");
      writer.list("void " + entry.name + "(", parameters, ");");
      continue;
    }
    writer.list("void " + entry.name + "(", parameters, ") {");
    StringRef body = entry.function.body;
    while (!body.empty()) {
      auto [line, rest] = body.split('\n');
      writer.line("  " + line);
      body = rest;
    }
    writer.line("}");
  }
  writer.line();
  writer.line("} // namespace fused");
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

void Emitter::emitKernelLaunch(LaunchOp launch, std::vector<std::string> items, const Call &call,
                               Spelling &spelling, Writer &writer) const {
  auto slices = [&](ArrayRef<Value> buffers) {
    std::string text;
    for (Value buffer : buffers)
      text += (text.empty() ? "" : ", ") + spell(buffer, spelling);
    return text;
  };
  items.push_back("reads(" + slices(call.reads) + ")");
  items.push_back("writes(" + slices(call.writes) + ")");
  const KernelTable::Entry &kernel = kernels[launch];
  ArrayRef<KernelMask> masks = kernels.masksOf(launch);
  if (masks.empty()) {
    items.push_back("fused::" + kernel.name);
    writer.list("launch(", items, ");");
    return;
  }
  // How many elements of a split dimension are real is a matter of the rank.
  std::string captures, parameters, arguments;
  for (auto [i, mask] : llvm::enumerate(masks)) {
    std::string name = "held" + (i ? "_" + std::to_string(i + 1) : std::string());
    captures += (i ? ", " : "") + name + " = Tile{1, " + std::to_string(mask.local) + ", 1, " +
                std::to_string(mask.size) + "}.held(" + rankIndex(program.mesh, mask.over) + ")";
    arguments += (i ? ", " : "") + ("std::int64_t(" + name + ")");
  }
  size_t number = 0;
  for (Value buffer : llvm::concat<const Value>(call.reads, call.writes)) {
    Type element = program.placeOf(buffer).type.getElementType();
    std::string name = "p" + std::to_string(number);
    parameters += (number ? ", " : "") + std::string(number < call.reads.size() ? "const " : "") +
                  elementType(element).str() + " *" + name;
    arguments += ", " + name;
    ++number;
  }
  items.push_back("[" + captures + "](" + parameters + ") { fused::" + kernel.name + "(" +
                  arguments + "); }");
  writer.list("launch(", items, ");");
}

LogicalResult Emitter::emitAction(const Action &action, Spelling &spelling,
                                  Writer &writer) const {
  LaunchOp launch = action.launch;
  FailureOr<Call> call = callFor(program, launch);
  if (failed(call))
    return failure();
  std::string stream = enumeratorFor(launch.getStream());
  for (int event : action.waits)
    writer.line("wait(c, " + stream + ", " + spelling.event(event) + ");");
  std::vector<std::string> items = {
      "c", stream, spelling.launchName("\"" + escaped(launch.getName()) + "\"")};
  if (call->function.empty()) {
    emitKernelLaunch(launch, items, *call, spelling, writer);
  } else {
    if (!call->collective.empty())
      items.push_back(
          enumeratorFor("over " + program.communicatorName(launch.getStreamAttr(), call->over)));
    for (const CallArgument &argument : call->arguments)
      items.push_back(argument.buffer ? spell(argument.buffer, spelling) : argument.text);
    writer.list((call->function + "(").str(), items, ");");
  }
  if (action.event >= 0)
    writer.line("record(c, " + stream + ", " + spelling.event(action.event) + ");");
  return success();
}

LogicalResult Emitter::emitActions(const Timeline &timeline, const FunctionRange &range,
                                   Spelling &spelling, Writer &writer) const {
  for (size_t i = range.begin; i < range.end; ++i)
    if (failed(emitAction(timeline.actions[i], spelling, writer)))
      return failure();
  return success();
}

/// Functions that differ in no more than places, names and events are written once, with a table
/// for each; `calls` are all calls in order.
LogicalResult Emitter::emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                                     Writer &writer) const {
  struct Group {
    size_t size = 0;
    std::string function, table; ///< empty until they are written
  };
  std::vector<FunctionRange> ranges = cutIntoFunctions(program, timeline);
  std::vector<Spelling> spellings;
  std::vector<std::string> bodies;
  llvm::StringMap<Group> groups;
  for (const FunctionRange &range : ranges) {
    Writer body;
    spellings.push_back(Spelling::numbered());
    if (failed(emitActions(timeline, range, spellings.back(), body)))
      return failure();
    for (const Spelling::Field &field : spellings.back().getFields())
      body.line(field.type);
    ++groups[body.text()].size;
    bodies.push_back(body.text());
  }
  Names names;
  names.unique("run");
  names.unique("at");
  for (auto [i, range] : llvm::enumerate(ranges)) {
    Group &group = groups[bodies[i]];
    std::string name = names.unique(range.name);
    writer.line();
    if (group.size == 1) {
      writer.open("void " + name + "(Context &c)");
      Spelling literal = Spelling::literal();
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
      Spelling named = spellings[i].named(unit);
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

LogicalResult Emitter::emitSegment(const Timeline &timeline, StringRef space,
                                   Writer &writer) const {
  banner(writer, "Segment " + space.str());
  writer.line("namespace " + space + " {");
  writer.line();
  writer.line("namespace arena {");
  arena.declareSegment(writer, timeline);
  writer.line("} // namespace arena");
  writer.line();
  std::vector<std::string> slots, titles;
  for (StringAttr name : timeline.outputs) {
    slots.push_back(enumeratorFor("output " + name.getValue().str()));
    titles.push_back("\"" + escaped(name) + "\"");
  }
  if (slots.empty()) {
    writer.line("constexpr Table<const char *> outputs;");
  } else {
    writer.list("enum : int { ", slots, " };");
    writer.list("constexpr const char *outputs[] = {", titles, "};");
  }
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

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string title(StringRef file, StringRef what) {
  return ("//===- " + file + " - " + what).str();
}

void Emitter::emitHead(Writer &writer) const {
  writer.line(title("train.cpp", options.name + ", written by fsdpc; changes will be lost"));
  writer.line("//");
  writer.line("// Bytes of the arena, streams, events and order are fixed here; what it all means "
              "stands in");
  writer.line("// runtime/Program.h and runtime/Launch.h. Compiled with -DFSDP_RECORD it writes "
              "its actions");
  writer.line("// down instead of performing them.");
  writer.line();
  if (!options.singleFile && !kernels.all().empty())
    writer.line("#include \"kernels.h\"");
  writer.line("#include \"runtime/Runtime.h\"");
  if (options.singleFile) {
    writer.line("#include \"runtime/VectorMath.h\"");
    writer.line();
    writer.line("#include <algorithm>");
    writer.line("#include <cmath>");
  }
}

LogicalResult Emitter::emit(EmittedProgram &out) {
  Names spaces;
  std::vector<std::string> segments;
  for (const Timeline &timeline : program.timelines)
    segments.push_back(spaces.unique(timeline.segment.getSymName()));
  if (failed(arena.create(segments)) || failed(collectKernels()))
    return failure();

  Writer writer;
  emitHead(writer);
  writer.line();
  writer.line("namespace {");
  writer.line();
  writer.line("using namespace fsdp::rt;");
  if (options.singleFile && !kernels.all().empty()) {
    banner(writer, "Kernels");
    emitKernels(writer, false);
  }
  banner(writer, "What the program has");
  emitEnumerators(program, writer);
  writer.line();
  writer.line("// Offset in bytes from the start of the arena, elements");
  writer.line("namespace persistent {");
  arena.declarePersistent(writer);
  writer.line("} // namespace persistent");
  writer.line();
  if (failed(emitStorages(program, arena, writer)))
    return failure();
  for (auto [timeline, space] : llvm::zip_equal(program.timelines, segments))
    if (failed(emitSegment(timeline, space, writer)))
      return failure();
  banner(writer, "Tables");
  emitProgramTable(program, arena, segments, options, writer);
  writer.line();
  writer.line("} // namespace");
  writer.line();
  writer.line("int main(int argc, char **argv) { return runTraining(program, argc, argv); }");
  out.files.push_back({"train.cpp", writer.text()});
  if (options.singleFile || kernels.all().empty())
    return success();

  Writer header, source;
  header.line(title("kernels.h", "fused loops of " + options.name + ", written by fsdpc"));
  for (StringRef line : {"", "#pragma once", "", "#include <cstdint>", ""})
    header.line(line);
  bool narrow = llvm::any_of(kernels.all(), [](const KernelTable::Entry &entry) {
    return llvm::any_of(entry.function.parameters,
                        [](StringRef text) { return text.contains("bf16 *"); });
  });
  if (narrow)
    for (StringRef line : {"#include \"runtime/BFloat16.h\"", "", "using fsdp::rt::bf16;", ""})
      header.line(line);
  emitKernels(header, true);
  source.line(title("kernels.cpp", "fused loops of " + options.name + ", written by fsdpc"));
  for (StringRef line :
       {"//",
        "// One function a kernel; loops run in the order of the indices, so sums always add in "
        "the",
        "// same order. Compile with runtime/Numerics.cmake's flags.", "", "#include \"kernels.h\"",
        "", "#include \"runtime/VectorMath.h\"", "", "#include <algorithm>", "#include <cmath>", "",
        "using namespace fsdp::rt;", ""})
    source.line(line);
  emitKernels(source, false);
  out.files.push_back({"kernels.h", header.text()});
  out.files.push_back({"kernels.cpp", source.text()});
  return success();
}

LogicalResult mlir::fsdp::emitCpp(ModuleOp module, const EmitOptions &options,
                                  EmittedProgram &out) {
  FailureOr<ScheduledProgram> program = ScheduledProgram::create(module);
  if (failed(program))
    return failure();
  return Emitter(*program, options).emit(out);
}
