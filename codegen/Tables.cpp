//===- Tables.cpp ---------------------------------------------------------===//

#include "codegen/Tables.h"
#include "codegen/OptimizerTable.h"
#include "codegen/RoleTables.h"
#include "codegen/TableFields.h"
#include "codegen/TraceTables.h"

#include "codegen/Elementwise.h"
#include "dialect/fsdp/Adapters.h"
#include "dialect/fsdp/CheckpointFiles.h"
#include "dialect/fsdp/Generation.h"
#include "dialect/fsdp/ModelConfig.h"
#include "dialect/fsdp/ModelDigest.h"
#include "dialect/fsdp/TokenSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::fsdp;

/// "{kAxisData, kAxisFsdp}"
static std::string axisList(const ScheduledProgram &program, ArrayAttr axes) {
  std::vector<std::string> names;
  for (StringAttr axis : getAxisNames(axes))
    names.push_back(program.names.axis(axis));
  return "{" + llvm::join(names, ", ") + "}";
}

/// The enumerator of a communicator over `axes`.
static std::string communicatorOver(const ScheduledProgram &program, ArrayAttr axes) {
  return program.names.communicator(
      (program.communicators.begin() + program.communicatorOver(axes))->first);
}

void mlir::fsdp::emitEnum(ArrayRef<std::string> names, StringRef what, Writer &writer) {
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
    communicators.push_back(names.communicator(key));
  for (StringAttr axis : program.mesh.getAxisNames())
    axes.push_back(names.axis(axis));
  for (StorageOp storage : program.storages)
    storages.push_back(names.storage(storage.getSymNameAttr()));
  for (const auto &[input, entry] : program.inputs)
    inputs.push_back(names.input(input));
  for (size_t event = 0; event < program.programEvents.size(); ++event)
    events.push_back(names.event(static_cast<int>(event)));
  if (!events.empty())
    events.push_back(names.getFirstOwnEvent());
  emitEnum(streams, "Streams", writer);
  emitEnum(communicators, "Communicators: each over some axes of the mesh, and for one stream",
           writer);
  emitEnum(axes, "Axes of the mesh", writer);
  emitEnum(storages, "Storages: state that a rank keeps from step to step", writer);
  emitEnum(inputs, "Inputs: tensors that a step reads from the data set", writer);
  emitEnum(events, "Events: completions that later segments wait for; then those of each segment",
           writer);
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

/// The table of how `param` is split and padded in compute, called after `member`; "" where it is
/// neither.
static std::string emitSplits(const ScheduledProgram &program, ParamOp param,
                              const std::string &member, Writer &writer) {
  ShardingAttr compute =
      param.getPlacementAttr() ? param.getPlacementAttr().getCompute() : ShardingAttr();
  RankedTensorType part = param.getComputeType();
  std::vector<Fields> rows;
  for (int64_t dim = 0; dim < part.getRank(); ++dim) {
    SmallVector<int64_t> axes; // by number, equal in all plans that share the table
    if (compute)
      for (StringAttr axis : compute.getAxes(dim))
        axes.push_back(program.mesh.getAxisIndex(axis));
    if (!axes.empty() || part.getDimSize(dim) != param.getTensorType().getDimSize(dim))
      rows.emplace_back()
          .add("dim", dim)
          .addUnless(axes.empty(), "axes", braced(axes))
          .add("part", part.getDimSize(dim));
  }
  if (rows.empty())
    return "";
  std::string name = member + "_split";
  emitRows("Split", name, rows, writer);
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
  std::vector<Fields> rows;
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
    rows.emplace_back()
        .add("name", quoted(param.getSymName()))
        .add("shape", braced(shape))
        .add("fileShape", braced(fileShape))
        .add("offset", member.getOffset())
        .add("init", initializer(param.getInit()))
        .addUnless(param.getFileRank() < 2, "decay", "true")
        .add("position", positions.lookup(param))
        .addUnless(splits[index].empty(), "splits", splits[index])
        .addUnless(!param.getFrozen(), "frozen", "true");
  }
  emitRows("Parameter", name, rows, writer);
  return success();
}

/// Writes `table`, files that are stored next to weights. Each line of a text is a separate
/// literal.
static void emitExtraFiles(StringRef table, DictionaryAttr files, Writer &writer) {
  writer.open("constexpr ExtraFile " + table + "[] =");
  for (NamedAttribute file : files) {
    writer.line("{.name = " + quoted(file.getName()) + ", .text =");
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

/// Writes the entries with which weights are compared.
static void emitConfigEntries(ArrayAttr entries, Writer &writer) {
  std::vector<Fields> rows;
  for (auto entry : entries.getAsRange<DictionaryAttr>()) {
    Fields &row = rows.emplace_back();
    for (auto [name, key] :
         {std::pair("names", configNamesKey), std::pair("value", configValueKey),
          std::pair("implied", configImpliedKey), std::pair("same", configSameKey),
          std::pair("option", configOptionKey)})
      if (auto text = entry.getAs<StringAttr>(key))
        row.add(name, quoted(text));
  }
  emitRows("ConfigEntry", "config_entries", rows, writer);
}

/// Writes which parameters are added to which weights.
static void emitAdapters(ArrayAttr products, Writer &writer) {
  std::vector<Fields> rows;
  for (auto product : products.getAsRange<DictionaryAttr>())
    rows.emplace_back()
        .add("weight", quoted(product.getAs<StringAttr>(adapterWeightKey)))
        .add("down", quoted(product.getAs<StringAttr>(adapterDownKey)))
        .add("up", quoted(product.getAs<StringAttr>(adapterUpKey)))
        .add("scale", literal(product.getAs<FloatAttr>(adapterScaleKey).getValueAsDouble(),
                              Builder(products.getContext()).getF64Type()))
        .addUnless(!product.getAs<BoolAttr>(adapterTransposedKey).getValue(), "transposed", "true");
  emitRows("Adapter", "adapters", rows, writer);
}

static constexpr llvm::StringLiteral extraFiles = "extra_files", configEntries = "config_entries",
                                     adapterTable = "adapters", adapterFiles = "adapter_files";

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
    emitExtraFiles(extraFiles, files, writer);
    tables[extraFiles.str()].text = writer.text();
  }
  if (auto config = program.module->getAttrOfType<DictionaryAttr>(modelConfigAttrName))
    if (auto entries = config.getAs<ArrayAttr>(configEntriesKey); !entries.empty()) {
      Writer writer;
      emitConfigEntries(entries, writer);
      tables[configEntries.str()].text = writer.text();
    }
  if (auto adapters = program.module->getAttrOfType<DictionaryAttr>(adaptersAttrName)) {
    Writer writer;
    emitAdapters(adapters.getAs<ArrayAttr>(adapterProductsKey), writer);
    if (!writer.text().empty()) {
      tables[adapterTable.str()].text = writer.text();
      NamedAttrList file;
      file.append(adapters.getAs<StringAttr>(adapterFileKey), adapters.get(adapterTextKey));
      Writer other;
      emitExtraFiles(adapterFiles, file.getDictionary(adapters.getContext()), other);
      tables[adapterFiles.str()].text = other.text();
    }
  }
  return success();
}

void mlir::fsdp::emitStorages(const ScheduledProgram &program, const Arena &arena,
                              const ModelTables &tables, Writer &writer) {
  std::vector<Fields> rows;
  int64_t parameters = 0;
  for (StorageOp storage : program.storages) {
    StringAttr symbol = storage.getSymNameAttr();
    const std::string &members = program.names.members(symbol);
    const ModelTable &table = tables.find(members)->second;
    // The shards of a storage that this program does not own are on ranks of other roles.
    const bool isOwn = storage.isOwnedBy(program.program);
    auto placeOf = [&](StringRef what) {
      return isOwn ? arena.spell(program.shardOf(storage, what).getResult())
                   : spellElsewhere(storage.getKeptType(what));
    };
    std::vector<Fields> states;
    for (StringRef state : storage.getStates().getAsValueRange<StringAttr>())
      states.emplace_back().add("name", quoted(state)).add("shard", placeOf(state));
    emitRows("State", program.names.states(symbol), states, writer);
    if (table.place.empty())
      writer.lines(table.text);
    const bool split = storage.getKind() != StorageKind::replicated;
    Fields &row = rows.emplace_back();
    row.add("name", quoted(storage.getSymName()));
    row.add("layout", storage.getKind() == StorageKind::flat        ? "Layout::Flat"
                      : storage.getKind() == StorageKind::dimension ? "Layout::Dimension"
                                                                    : "Layout::Replicated");
    if (split)
      row.add("axes", axisList(program, storage.getAxes()))
          .add("communicator", communicatorOver(program, storage.getAxes()))
          .addUnless(storage.getKind() != StorageKind::dimension, "dim", storage.getDim());
    row.add("size", table.size).add("firstParameter", parameters);
    row.add("shard", storage.keepsShard()
                         ? placeOf(StorageOp::parameter)
                         : "Buffer::unplaced(" +
                               std::to_string(storage.getShardType().getNumElements()) + ")");
    row.addUnless(states.empty(), "states", program.names.states(symbol));
    row.add("members", table.place + members);
    if (storage.getCopy())
      row.add("copy", placeOf(StorageOp::copy));
    if (ArrayAttr axes = getAxisArray(storage.getContext(), storage.getSplitAxes()); !axes.empty())
      row.add("splitAxes", axisList(program, axes));
    const std::string roles = spellRoles(program, storage);
    row.addUnless(roles.empty(), "roles", roles);
    parameters += storage.getMembers().size();
  }
  emitRows("Storage", "storages", rows, writer);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static std::string sourceName(InputOp input) {
  return input->hasAttr(tokensAttrName)    ? "Source::Tokens"
         : input->hasAttr(targetsAttrName) ? "Source::Targets"
                                           : "Source::Tensor";
}

static void emitInputs(const ScheduledProgram &program, const Arena &arena, Writer &writer) {
  std::vector<Fields> inputs;
  for (const auto &[name, entry] : program.inputs) {
    InputOp op = entry.op;
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<int64_t> sample(type.getShape());
    int64_t rows = sample[op.getSampleDim()];
    sample.erase(sample.begin() + op.getSampleDim());
    auto microbatches = op->getAttrOfType<IntegerAttr>("microbatches");
    int64_t parts = microbatches ? microbatches.getInt() : 1;
    int64_t batch = op.getGlobalBatch() ? *op.getGlobalBatch() : rows * parts;
    Fields &row = inputs.emplace_back();
    row.add("name", quoted(name.getValue()))
        .add("sample", braced(sample))
        .addUnless(op.getSampleDim() == 0, "sampleDim", op.getSampleDim())
        .add("slice", entry.own ? arena.spellOutside(
                                      entry.own->getParentOfType<LaunchOp>().getOuts().front())
                                : spellElsewhere(type))
        .add("batch", batch)
        .add("rows", rows);
    if (op.getOver() && !op.getOver()->empty())
      row.add("axes", axisList(program, *op.getOver()));
    row.addUnless(entry.limit == 0, "limit", entry.limit)
        .add("source", sourceName(op))
        .addUnless(parts == 1, "parts", parts);
    const std::string roles = spellRoles(program, entry);
    row.addUnless(roles.empty(), "roles", roles);
  }
  emitRows("Input", "inputs", inputs, writer);
}

/// The number of inputs that are data; inputs that the program generates follow them.
static int64_t countData(const ScheduledProgram &program) {
  return llvm::count_if(program.inputs, [](const auto &input) {
    InputOp op = input.second.op;
    return !op->hasAttr(generatedAttrName);
  });
}

/// The number of different tokens; 0 where no input has tokens.
static int64_t vocabularyOf(const ScheduledProgram &program) {
  int64_t vocabulary = 0;
  for (const auto &[name, entry] : program.inputs) {
    InputOp op = entry.op;
    if (auto size = op->getAttrOfType<IntegerAttr>(tokensAttrName))
      vocabulary = size.getInt();
  }
  return vocabulary;
}

/// The initializer of Generation; empty without one. `prefill` may be empty.
static std::string spellGeneration(const ScheduledProgram &program, const Arena &arena,
                                   const std::string &prefill, const std::string &decode) {
  if (decode.empty())
    return "";
  Fields fields;
  fields.addUnless(prefill.empty(), "prefill", prefill).add("decode", decode);
  for (BufferOp buffer : program.program.getBody().front().getOps<BufferOp>())
    if (buffer.getName() == generatedLogitsName)
      fields.add("logits", arena.spellOutside(buffer));
  fields.add("vocabulary", vocabularyOf(program));
  int64_t index = 0, context = 0;
  for (const auto &[name, entry] : program.inputs) {
    InputOp op = entry.op;
    const int64_t tokens = cast<RankedTensorType>(op.getType()).getShape().back();
    if (op->hasAttr(tokensAttrName))
      context = tokens;
    const StringRef text = name.getValue();
    if (text == generatedInputName(stringifyStepKind(StepKind::prefill), generatedTokens))
      fields.add("prefillInput", index).add("prefillTokens", tokens);
    if (text == generatedInputName(stringifyStepKind(StepKind::decode), generatedTokens))
      fields.add("decodeInput", index);
    ++index;
  }
  fields.add("context", context).add("generate", "generateText");
  return fields.spell();
}

/// Writes the tables of `walk`; its plan in the table of the program.
static std::string emitWalk(const ScheduledProgram &program, const ProgramWalk &walk,
                            Writer &writer) {
  std::vector<Fields> runs;
  std::vector<std::string> outputs;
  for (auto [segment, times] : walk.runs)
    runs.emplace_back().add("segment", segment).add("times", times);
  for (StringAttr output : walk.outputs)
    outputs.push_back(quoted(output));
  const std::string &runTable = program.names.walkRuns(walk.name);
  const std::string &outputTable = program.names.walkOutputs(walk.name);
  emitRows("SegmentRuns", runTable, runs, writer);
  emitValues("const char *", outputTable, outputs, writer);
  std::vector<std::string> checks;
  for (int check : walk.checks)
    checks.push_back(std::to_string(check));
  const std::string checkTable = checks.empty() ? "" : program.names.walkChecks(walk.name);
  emitValues("int", checkTable, checks, writer);
  return Fields()
      .add("name", quoted(walk.name))
      .add("runs", runTable)
      .addUnless(outputs.empty(), "outputs", outputTable)
      .addUnless(!walk.countsSamples, "countsSamples", "true")
      .addUnless(checks.empty(), "checks", checkTable)
      .spell();
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

/// The kind of the first collective of each communicator in the program.
static std::map<CommunicatorKey, StringRef> firstUses(const ScheduledProgram &program) {
  std::map<CommunicatorKey, StringRef> uses;
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions)
      if (SmallVector<CollectiveOpInterface> ops = getCollectives(action.launch); !ops.empty())
        uses.try_emplace(CommunicatorKey::of(action.launch),
                         isa<AllGatherOp>(ops.front()) ? "FirstUse::Gather" : "FirstUse::Other");
  return uses;
}

void mlir::fsdp::emitProgramTable(const ScheduledProgram &program, const Arena &arena,
                                  const EmitOptions &options, const ModelTables &tables,
                                  StringRef elsewhere, StringRef programs, Writer &writer) {
  std::vector<Fields> axes, communicators, segments;
  std::vector<std::string> order, streams;
  for (auto [axis, size] :
       llvm::zip_equal(program.mesh.getAxisNames(), program.mesh.getAxisSizes()))
    axes.emplace_back().add("name", quoted(axis)).add("size", size);
  for (int64_t rank : program.mesh.getDevices())
    order.push_back(std::to_string(rank));
  for (const auto &[stream, index] : program.streams)
    streams.push_back(quoted(stream));
  std::map<CommunicatorKey, StringRef> uses;
  if (program.roles.areSeveral() && options.target == TargetKind::Cuda)
    uses = firstUses(program);
  for (const auto &[key, index] : program.communicators) {
    Fields &fields = communicators.emplace_back();
    fields.add("name", quoted(program.communicatorName(key)))
        .add("axes", axisList(program, key.over));
    if (key.offset)
      fields.add("offset", key.offset);
    if (key.inRing)
      fields.add("inRing", "true");
    if (key.sends)
      fields.add("sends", "true");
    if (auto use = uses.find(key); use != uses.end() && !key.offset)
      fields.add("firstUse", use->second);
  }
  emitRows("MeshAxis", "axes", axes, writer);
  emitValues("int", "device_order", order, writer);
  emitValues("const char *", "streams", streams, writer);
  emitRows("CommunicatorSpec", "communicators", communicators, writer);
  emitInputs(program, arena, writer);
  // The name of a table of the model, written here unless another file has it; empty if the model
  // has none.
  auto modelTable = [&](llvm::StringLiteral name) -> std::string {
    auto found = tables.find(name.str());
    if (found == tables.end())
      return "";
    if (found->second.place.empty())
      writer.lines(found->second.text);
    return found->second.place + name.str();
  };
  const std::string files = modelTable(extraFiles), entries = modelTable(configEntries),
                    products = modelTable(adapterTable), descriptions = modelTable(adapterFiles);
  for (const Timeline &timeline : program.timelines) {
    SegmentOp segment = timeline.segment;
    const std::string &space = program.names.segment(segment);
    segments.emplace_back()
        .add("name", quoted(segment.getSymName()))
        .add("run", space + "::run")
        .addUnless(!segment.getAsync(), "joined", "false")
        .add("trace", space + "::trace");
  }
  emitRows("Segment", "segments", segments, writer);
  std::string plans[getMaxEnumValForStepKind() + 1], drain;
  for (const ProgramWalk &walk : program.walks) {
    bool drains = program.timelines[walk.runs.front().first].segment.getDrain();
    (drains ? drain : plans[static_cast<size_t>(walk.kind)]) = emitWalk(program, walk, writer);
  }
  const auto planOf = [&](StepKind kind) -> const std::string & {
    return plans[static_cast<size_t>(kind)];
  };
  OptimizerTable optimizer(program);
  optimizer.emitConstants(writer);
  writer.line();
  writer.open("constexpr Program program =");
  auto field = [&](StringRef name, const llvm::Twine &value) {
    writer.line("." + name + " = " + value + ",");
  };
  auto table = [&](StringRef name, StringRef value, bool isEmpty) {
    if (!isEmpty)
      field(name, value);
  };
  field("name", quoted(options.name));
  table("axes", "axes", axes.empty());
  table("deviceOrder", "device_order", order.empty());
  field("arenaBytes", llvm::Twine(*program.program.getArena()));
  table("streams", "streams", streams.empty());
  field("events", llvm::Twine(program.events()));
  table("communicators", "communicators", communicators.empty());
  table("storages", "storages", program.storages.empty());
  const int64_t data = countData(program);
  table("inputs",
        data == static_cast<int64_t>(program.inputs.size())
            ? "inputs"
            : "{inputs, " + std::to_string(data) + "}",
        data == 0);
  table("segments", "segments", segments.empty());
  table("train", planOf(StepKind::train), planOf(StepKind::train).empty());
  table("evaluate", planOf(StepKind::evaluate), planOf(StepKind::evaluate).empty());
  field("stepState", "persistent::step_state");
  field("defaultLearningRate", optimizer.getLearningRate());
  field("tokensPerSample", llvm::Twine(tokensPerSample(program)));
  writer.line(".report =");
  StringRef report = StringRef(options.report).rtrim('\n');
  while (true) {
    auto [line, rest] = report.split('\n');
    writer.line("    \"" + escaped(line) + "\\n\"" + (rest.empty() ? "," : ""));
    if (rest.empty())
      break;
    report = rest;
  }
  field("communicator", quoted(options.communicator));
  for (const auto &[name, value] : optimizer.getFields())
    field(name, value);
  // Ranks of programs that differ, if only in a constant of the optimizer, refuse one another.
  uint64_t digest = llvm::xxh3_64bits(elsewhere) * 3 + llvm::xxh3_64bits(writer.text());
  field("digest", "0x" + llvm::utohexstr(digest, /*LowerCase=*/true));
  field("options", quoted(options.options));
  field("persistentBytes", llvm::Twine(persistentBytes(program)));
  table("drain", drain, drain.empty());
  table("extraFiles", files, files.empty());
  if (auto digestOfModel = program.module->getAttrOfType<StringAttr>(modelDigestAttrName))
    field("modelDigest", quoted(digestOfModel));
  if (auto config = program.module->getAttrOfType<DictionaryAttr>(modelConfigAttrName);
      config && !entries.empty())
    field("config", Fields()
                        .add("file", quoted(config.getAs<StringAttr>(configFileKey)))
                        .add("entries", entries)
                        .spell());
  table("compilation", quoted(options.compilation), options.compilation.empty());
  Type f64 = Builder(program.module.getContext()).getF64Type();
  if (options.modelFlops > 0)
    field("modelFlops", literal(options.modelFlops, f64));
  if (options.peakSeconds > 0)
    field("peakSeconds", literal(options.peakSeconds, f64));
  if (!products.empty())
    field("adapters", Fields().add("files", descriptions).add("products", products).spell());
  const std::string generation =
      spellGeneration(program, arena, planOf(StepKind::prefill), planOf(StepKind::decode));
  table("generation", generation, generation.empty());
  if (program.roles.areSeveral()) {
    field("roleAxes",
          axisList(program, getAxisArray(program.module.getContext(), program.roles.axes)));
    field("role", quoted(ProgramOp(program.program).getSymName()));
    field("roles", spellRoles(program));
    field("programs", programs);
  }
  writer.close(";");
}
