//===- Tables.cpp ---------------------------------------------------------===//

#include "codegen/Tables.h"
#include "codegen/TraceTables.h"

#include "codegen/Elementwise.h"
#include "dialect/fsdp/CheckpointFiles.h"
#include "dialect/fsdp/Deferred.h"
#include "dialect/fsdp/ModelConfig.h"
#include "dialect/fsdp/ModelDigest.h"
#include "dialect/fsdp/TokenSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::fsdp;

static std::string braced(ArrayRef<int64_t> values) {
  std::string text = "{";
  for (auto [i, value] : llvm::enumerate(values))
    text += (i ? ", " : "") + std::to_string(value);
  return text + "}";
}

static std::string quoted(StringRef text) { return "\"" + escaped(text) + "\""; }

static std::string axisList(const ScheduledProgram &program, ArrayAttr axes) {
  SmallVector<int64_t> indices;
  for (StringAttr axis : getAxisNames(axes))
    indices.push_back(program.mesh.getAxisIndex(axis));
  return braced(indices);
}

static void emitEnum(ArrayRef<std::string> names, StringRef what, Writer &writer) {
  if (names.empty())
    return;
  std::vector<std::string> items(names.begin(), names.end());
  writer.line(("// " + what).str());
  writer.list("enum : int { ", items, " };");
}

void mlir::fsdp::emitEnumerators(const ScheduledProgram &program, Writer &writer) {
  std::vector<std::string> streams, communicators, axes, storages, inputs, events;
  const ProgramNames &names = program.names;
  for (const auto &[stream, index] : program.streams)
    streams.push_back(names.stream(stream));
  for (const auto &[key, index] : program.communicators)
    communicators.push_back(names.communicator(key.first, key.second));
  for (StringAttr axis : program.mesh.getAxisNames())
    axes.push_back(names.axis(axis));
  for (StorageOp storage : program.storages)
    storages.push_back(names.storage(storage.getSymNameAttr()));
  for (const auto &[input, entry] : program.inputs)
    inputs.push_back(names.input(input));
  for (size_t event = 0; event < program.programEvents.size(); ++event)
    events.push_back(names.event(static_cast<int>(event)));
  emitEnum(streams, "Streams", writer);
  emitEnum(communicators, "Communicators: each over some axes of the mesh, and for one stream",
           writer);
  emitEnum(axes, "Axes of the mesh", writer);
  emitEnum(storages, "Storages: state that a rank keeps from step to step", writer);
  emitEnum(inputs, "Inputs: tensors that a step reads from the data set", writer);
  emitEnum(events, "Events: completions that later segments wait for", writer);
}

//===----------------------------------------------------------------------===//
// Storages
//===----------------------------------------------------------------------===//

static std::string initializer(InitAttr init) {
  Type f64 = Builder(init.getContext()).getF64Type();
  double value = init.getValue().getValueAsDouble();
  switch (init.getKind()) {
  case InitKind::constant:
    return "Initializer::constant(" + literal(value, f64) + ")";
  case InitKind::normal:
    return "Initializer::normal(0.0, " + literal(value, f64) + ")";
  case InitKind::uniform:
    return "Initializer::uniform(" + literal(-value, f64) + ", " + literal(value, f64) + ")";
  }
  llvm_unreachable("unknown initializer");
}

/// The table of how `param` is split and padded in compute, called after `member`; "{}" where it is
/// neither.
static std::string emitSplits(const ScheduledProgram &program, ParamOp param,
                              const std::string &member, Writer &writer) {
  ShardingAttr compute =
      param.getPlacementAttr() ? param.getPlacementAttr().getCompute() : ShardingAttr();
  RankedTensorType part = param.getComputeType();
  MLIRContext *context = param.getContext();
  std::vector<std::string> items;
  for (int64_t dim = 0; dim < part.getRank(); ++dim) {
    SmallVector<StringAttr> axes;
    if (compute)
      axes = compute.getAxes(dim);
    if (!axes.empty() || part.getDimSize(dim) != param.getTensorType().getDimSize(dim))
      items.push_back("{/*dim=*/" + std::to_string(dim) + ", /*axes=*/" +
                      axisList(program, getAxisArray(context, axes)) + ", /*part=*/" +
                      std::to_string(part.getDimSize(dim)) + "}");
  }
  if (items.empty())
    return "{}";
  std::string name = member + "_split";
  writer.list("constexpr Split " + name + "[] = {", items, "};");
  return name;
}

static LogicalResult emitMembers(const ScheduledProgram &program, StorageOp storage,
                                 const llvm::DenseMap<Operation *, int> &positions, StringRef name,
                                 int64_t &size, Writer &writer) {
  // A table of each member that is split, before the members.
  std::vector<std::string> splits;
  for (auto [index, member] : llvm::enumerate(storage.getMembers().getAsRange<MemberAttr>()))
    if (auto param = program.symbols.lookup<ParamOp>(member.getParam().getValue()))
      splits.push_back(emitSplits(program, param, (name + std::to_string(index)).str(), writer));
  writer.open("constexpr Parameter " + name + "[] =");
  for (auto [index, member] : llvm::enumerate(storage.getMembers().getAsRange<MemberAttr>())) {
    auto param = program.symbols.lookup<ParamOp>(member.getParam().getValue());
    if (!param)
      return storage.emitOpError() << "has the member '" << member.getParam().getValue()
                                   << "', which is not a parameter of the module";
    RankedTensorType type = param.getTensorType();
    ArrayRef<int64_t> shape = type.getShape();
    ArrayRef<int64_t> fileShape = param.getFileShape() ? *param.getFileShape() : shape;
    if (shape.size() > 8 || fileShape.size() > 8)
      return param.emitOpError() << "has rank " << std::max(shape.size(), fileShape.size())
                                 << ", expected at most 8 dimensions in weight files";
    size = std::max(size, member.getOffset() + param.getComputeType().getNumElements());
    std::vector<std::string> items = {"/*name=*/" + quoted(param.getSymName()),
                                      "/*alias=*/nullptr",
                                      "/*shape=*/" + braced(shape),
                                      "/*fileShape=*/" + braced(fileShape),
                                      "/*offset=*/" + std::to_string(member.getOffset()),
                                      initializer(param.getInit()),
                                      std::string("/*decay=*/") +
                                          (param.getFileRank() >= 2 ? "true" : "false"),
                                      "/*position=*/" + std::to_string(positions.lookup(param))};
    if (splits[index] != "{}")
      items.push_back("/*splits=*/" + splits[index]);
    writer.list("{", items, "},");
  }
  writer.close(";");
  return success();
}

/// Writes the files that stand beside the weights in a checkpoint. Each line of a text is a literal
/// of its own.
static void emitExtraFiles(DictionaryAttr files, Writer &writer) {
  writer.open("constexpr ExtraFile extra_files[] =");
  for (NamedAttribute file : files) {
    writer.line("{" + quoted(file.getName()) + ",");
    StringRef text = cast<StringAttr>(file.getValue());
    do {
      auto [line, rest] = text.split('\n');
      const bool ended = line.size() < text.size();
      writer.line("\"" + escaped(line) + (ended ? "\\n\"" : "\""));
      text = rest;
    } while (!text.empty());
    writer.line("},");
  }
  writer.close(";");
}

/// Writes what weights are compared with.
static void emitConfigEntries(ArrayAttr entries, Writer &writer) {
  writer.open("constexpr ConfigEntry config_entries[] =");
  for (auto entry : entries.getAsRange<DictionaryAttr>()) {
    auto field = [&](StringRef name, StringRef otherwise = "") {
      auto text = entry.getAs<StringAttr>(name);
      return quoted(text ? text.getValue() : otherwise);
    };
    writer.list("{",
                {"/*names=*/" + field(configNamesKey), "/*value=*/" + field(configValueKey),
                 "/*implied=*/" + field(configImpliedKey), "/*same=*/" + field(configSameKey, "[]"),
                 "/*option=*/" + field(configOptionKey)},
                "},");
  }
  writer.close(";");
}

static constexpr llvm::StringLiteral extraFiles = "extra_files", configEntries = "config_entries";

LogicalResult mlir::fsdp::emitModelTables(const ScheduledProgram &program, ModelTables &tables) {
  llvm::DenseMap<Operation *, int> positions;
  for (ParamOp param : program.module.getOps<ParamOp>())
    positions.try_emplace(param, static_cast<int>(positions.size()));
  for (StorageOp storage : program.storages) {
    const std::string &name = program.names.members(storage.getSymNameAttr());
    ModelTable &table = tables[name];
    Writer writer;
    if (failed(emitMembers(program, storage, positions, name, table.size, writer)))
      return failure();
    table.text = writer.text();
  }
  if (auto files = program.module->getAttrOfType<DictionaryAttr>(checkpointFilesAttrName);
      files && !files.empty()) {
    Writer writer;
    emitExtraFiles(files, writer);
    tables[extraFiles.str()].text = writer.text();
  }
  if (auto config = program.module->getAttrOfType<DictionaryAttr>(modelConfigAttrName))
    if (auto entries = config.getAs<ArrayAttr>(configEntriesKey); !entries.empty()) {
      Writer writer;
      emitConfigEntries(entries, writer);
      tables[configEntries.str()].text = writer.text();
    }
  return success();
}

void mlir::fsdp::emitStorages(const ScheduledProgram &program, const Arena &arena,
                              const ModelTables &tables, Writer &writer) {
  std::vector<std::vector<std::string>> rows;
  int64_t parameters = 0;
  for (StorageOp storage : program.storages) {
    StringAttr symbol = storage.getSymNameAttr();
    const std::string &members = program.names.members(symbol);
    const ModelTable &table = tables.find(members)->second;
    std::string states = "{}";
    if (!storage.getStates().empty()) {
      states = program.names.states(symbol);
      std::vector<std::string> items;
      for (StringRef state : storage.getStates().getAsValueRange<StringAttr>())
        items.push_back("{" + quoted(state) + ", " +
                        arena.spell(program.shardOf(storage, state).getResult()) + "}");
      writer.list("constexpr State " + states + "[] = {", items, "};");
    }
    if (table.place.empty())
      writer.lines(table.text);
    std::string layout = storage.getKind() == StorageKind::flat        ? "Layout::Flat"
                         : storage.getKind() == StorageKind::dimension ? "Layout::Dimension"
                                                                       : "Layout::Replicated";
    bool split = storage.getKind() != StorageKind::replicated;
    int communicator = split ? program.communicatorOver(storage.getAxes()) : -1;
    std::string shard =
        storage.keepsShard()
            ? arena.spell(program.shardOf(storage, StorageOp::parameter).getResult())
            : "Buffer::unplaced(" + std::to_string(storage.getShardType().getNumElements()) + ")";
    rows.push_back({"/*name=*/" + quoted(storage.getSymName()), layout,
                    "/*axes=*/" + axisList(program, storage.getAxes()),
                    "/*communicator=*/" + std::to_string(communicator),
                    "/*dim=*/" + std::to_string(std::max<int64_t>(storage.getDim(), 0)),
                    "/*size=*/" + std::to_string(table.size),
                    "/*firstParameter=*/" + std::to_string(parameters), shard, states,
                    table.place + members});
    if (storage.getCopy())
      rows.back().push_back("/*copy=*/" +
                            arena.spell(program.shardOf(storage, StorageOp::copy).getResult()));
    if (ArrayAttr axes = getAxisArray(storage.getContext(), storage.getSplitAxes());
        !axes.empty()) {
      if (!storage.getCopy())
        rows.back().push_back("/*copy=*/{}");
      rows.back().push_back("/*splitAxes=*/" + axisList(program, axes));
      rows.back().push_back("/*splitCommunicator=*/" +
                            std::to_string(program.communicatorOver(axes)));
    }
    parameters += storage.getMembers().size();
  }
  if (rows.empty()) {
    writer.line("constexpr Table<Storage> storages;");
    return;
  }
  writer.open("constexpr Storage storages[] =");
  for (const std::vector<std::string> &row : rows)
    writer.list("{", row, "},");
  writer.close(";");
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// `constexpr TYPE NAME[] = {...};`, or an empty table.
static void emitTable(StringRef type, StringRef name, ArrayRef<std::string> items, Writer &writer) {
  if (items.empty())
    writer.line("constexpr Table<" + type + "> " + name + ";");
  else
    writer.list(("constexpr " + type + (type.ends_with("*") ? "" : " ") + name + "[] = {").str(),
                items, "};");
}

static std::string sourceName(InputOp input) {
  return input->hasAttr(tokensAttrName)    ? "Source::Tokens"
         : input->hasAttr(targetsAttrName) ? "Source::Targets"
                                           : "Source::Tensor";
}

static void emitInputs(const ScheduledProgram &program, const Arena &arena, Writer &writer) {
  if (program.inputs.empty()) {
    writer.line("constexpr Table<Input> inputs;");
    return;
  }
  writer.open("constexpr Input inputs[] =");
  for (const auto &[name, entry] : program.inputs) {
    InputOp op = entry.op;
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<int64_t> sample(type.getShape());
    int64_t rows = sample[op.getSampleDim()];
    sample.erase(sample.begin() + op.getSampleDim());
    auto microbatches = op->getAttrOfType<IntegerAttr>("microbatches");
    int64_t parts = microbatches ? microbatches.getInt() : 1;
    int64_t batch = op.getGlobalBatch() ? *op.getGlobalBatch() : rows * parts;
    std::string element = elementType(type.getElementType()).str();
    std::vector<std::string> items = {
        "/*name=*/" + quoted(name.getValue()),
        "/*sample=*/" + braced(sample),
        "/*sampleDim=*/" + std::to_string(op.getSampleDim()),
        arena.spellOutside(op->getParentOfType<LaunchOp>().getOuts().front()),
        "/*batch=*/" + std::to_string(batch),
        "/*rows=*/" + std::to_string(rows),
        "/*axes=*/" + (op.getOver() ? axisList(program, *op.getOver()) : "{}"),
        "/*limit=*/" + std::to_string(entry.limit),
        "/*source=*/" + sourceName(op)};
    if (parts > 1)
      items.push_back("/*parts=*/" + std::to_string(parts));
    writer.list("{", items, "},");
  }
  writer.close(";");
}

/// Writes the tables of `walk`; what the table of the program says of it.
static std::string emitWalk(const ScheduledProgram &program, const ProgramWalk &walk,
                            Writer &writer) {
  std::vector<std::string> runs, outputs;
  for (auto [segment, times] : walk.runs)
    runs.push_back("{" + std::to_string(segment) + ", " + std::to_string(times) + "}");
  for (StringAttr output : walk.outputs)
    outputs.push_back(quoted(output));
  const std::string &runTable = program.names.walkRuns(walk.name);
  const std::string &outputTable = program.names.walkOutputs(walk.name);
  emitTable("SegmentRuns", runTable, runs, writer);
  emitTable("const char *", outputTable, outputs, writer);
  return "{" + quoted(walk.name) + ", " + runTable + ", " + outputTable +
         (walk.countsSamples ? ", /*countsSamples=*/true}" : "}");
}

/// Samples of whole numbers are rows of tokens.
static int64_t tokensPerSample(const ScheduledProgram &program) {
  int64_t most = 1;
  for (const auto &[name, entry] : program.inputs) {
    InputOp op = entry.op;
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rows = type.getDimSize(op.getSampleDim());
    if (isa<IntegerType>(type.getElementType()) && rows > 0)
      most = std::max(most, type.getNumElements() / rows);
  }
  return most;
}

/// The optimizer whose rate the program computes; null where it computes none.
static OptimizerAttr optimizerOf(const ScheduledProgram &program) {
  OptimizerAttr optimizer;
  program.program.walk([&](LearningRateOp op) { optimizer = op.getOptimizer(); });
  return optimizer;
}

void mlir::fsdp::emitProgramTable(const ScheduledProgram &program, const Arena &arena,
                                  const EmitOptions &options, const ModelTables &tables,
                                  StringRef elsewhere, Writer &writer) {
  std::vector<std::string> axes, order, streams, communicators, segments;
  for (auto [axis, size] :
       llvm::zip_equal(program.mesh.getAxisNames(), program.mesh.getAxisSizes()))
    axes.push_back("{" + quoted(axis) + ", " + std::to_string(size) + "}");
  for (int64_t rank : program.mesh.getDevices())
    order.push_back(std::to_string(rank));
  for (const auto &[stream, index] : program.streams)
    streams.push_back(quoted(stream));
  for (const auto &[key, index] : program.communicators)
    communicators.push_back("{" + quoted(program.communicatorName(key.first, key.second)) + ", " +
                            axisList(program, key.second) + "}");
  emitTable("MeshAxis", "axes", axes, writer);
  emitTable("int", "device_order", order, writer);
  emitTable("const char *", "streams", streams, writer);
  emitTable("CommunicatorSpec", "communicators", communicators, writer);
  emitInputs(program, arena, writer);
  // The name of a table of the model, written here unless it stands elsewhere; empty where the
  // model has none.
  auto modelTable = [&](llvm::StringLiteral name) -> std::string {
    auto found = tables.find(name.str());
    if (found == tables.end())
      return "";
    if (found->second.place.empty())
      writer.lines(found->second.text);
    return found->second.place + name.str();
  };
  const std::string files = modelTable(extraFiles), entries = modelTable(configEntries);
  for (const Timeline &timeline : program.timelines) {
    SegmentOp segment = timeline.segment;
    const std::string &space = program.names.segment(segment);
    segments.push_back("{" + quoted(segment.getSymName()) + ", " + space + "::run, /*joined=*/" +
                       (segment.getAsync() ? "false, " : "true, ") + space + "::trace}");
  }
  emitTable("Segment", "segments", segments, writer);
  std::string train = "{}", evaluate = "{}", drain;
  for (const ProgramWalk &walk : program.walks) {
    bool drains = isDrain(program.timelines[walk.runs.front().first].segment);
    (drains                         ? drain
     : walk.kind == StepKind::train ? train
                                    : evaluate) = emitWalk(program, walk, writer);
  }
  writer.line();
  writer.open("constexpr Program program =");
  auto field = [&](StringRef label, const llvm::Twine &value) {
    writer.line("/*" + label + "=*/" + value + ",");
  };
  Type f32 = Builder(program.module.getContext()).getF32Type();
  OptimizerAttr optimizer = optimizerOf(program);
  field("name", quoted(options.name));
  field("axes", "axes");
  field("deviceOrder", "device_order");
  field("arenaBytes", llvm::Twine(*program.program.getArena()));
  field("streams", "streams");
  field("events", llvm::Twine(program.events()));
  field("communicators", "communicators");
  field("storages", "storages");
  field("inputs", "inputs");
  field("segments", "segments");
  field("train", train);
  field("evaluate", evaluate);
  field("stepState", "persistent::step_state");
  field("defaultLearningRate", literal(optimizer ? optimizer.getLr() : 0.0, f32));
  field("tokensPerSample", llvm::Twine(tokensPerSample(program)));
  writer.line("/*report=*/");
  for (StringRef line : llvm::split(StringRef(options.report).rtrim('\n'), '\n'))
    writer.line("\"" + escaped(line) + "\\n\"");
  writer.line(",");
  field("communicator", quoted(options.communicator));
  field("warmup", llvm::Twine(optimizer ? optimizer.getWarmup() : 0));
  // Ranks of programs that differ, if only in a constant of the optimizer, refuse one another.
  uint64_t digest = llvm::xxh3_64bits(elsewhere) * 3 + llvm::xxh3_64bits(writer.text());
  field("digest", "0x" + llvm::utohexstr(digest, /*LowerCase=*/true));
  field("options", quoted(options.options));
  field("persistentBytes", llvm::Twine(persistentBytes(program)));
  // Fields stand in the order of Program; those that have nothing are left out at the end.
  auto digestOfModel = program.module->getAttrOfType<StringAttr>(modelDigestAttrName);
  auto config = program.module->getAttrOfType<DictionaryAttr>(modelConfigAttrName);
  const std::string file = config ? quoted(config.getAs<StringAttr>(configFileKey)) : "";
  const std::pair<StringRef, std::string> last[] = {
      {"drain", drain},
      {"extraFiles", files},
      {"modelDigest", digestOfModel ? quoted(digestOfModel) : ""},
      {"config", entries.empty() ? "" : "{" + file + ", " + entries + "}"},
      {"compilation", options.compilation.empty() ? "" : quoted(options.compilation)}};
  ArrayRef<std::pair<StringRef, std::string>> given(last);
  while (!given.empty() && given.back().second.empty())
    given = given.drop_back();
  for (const auto &[label, value] : given)
    field(label, !value.empty() ? value : label == "modelDigest" ? "\"\"" : "{}");
  writer.close(";");
}
