//===- RandomModule.cpp - random modules, meshes and placements -----------===//

#include "RandomModule.h"
#include "dialect/fsdp/UpdateRule.h"
#include "passes/global/PositionClass.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

struct Draw {
  std::mt19937_64 &random;
  int64_t between(int64_t low, int64_t high) { return low + random() % (high - low + 1); }
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
};

} // namespace

/// One to three axes, in any order, of at most `mostRanks`, sometimes in another device order. A
/// short program mostly has an axis that the batch does not take: a constraint chooses the values
/// that are split over it.
static MeshAttr makeMesh(MLIRContext &context, Draw draw, int64_t mostRanks, bool isShort) {
  std::vector<std::string> names{draw.chance(95) ? "fsdp" : "seq"};
  if (draw.chance(50))
    names.push_back("data");
  if (draw.chance(isShort ? 85 : 30))
    names.push_back("tensor");
  std::shuffle(names.begin(), names.end(), draw.random);
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> sizes, devices;
  int64_t ranks = 1;
  for (const std::string &name : names) {
    axes.push_back(StringAttr::get(&context, name));
    sizes.push_back(draw.between(isShort ? 2 : 1, names.size() == 1   ? 7
                                                  : names.size() == 2 ? 4
                                                                      : 3));
    // Of which there are parts.
    if (std::mt19937_64 own = draw.random; name == "tensor" && own() % 3 == 0)
      sizes.back() = own() % 2 ? 4 : 6;
    if (ranks * sizes.back() > mostRanks)
      sizes.back() = 1;
    ranks *= sizes.back();
  }
  if (ranks > 2 && draw.chance(30)) {
    for (int64_t i = 0; i < ranks; ++i)
      devices.push_back(i);
    std::shuffle(devices.begin(), devices.end(), draw.random);
    if (llvm::is_sorted(devices))
      devices.clear();
  }
  return MeshAttr::get(&context, axes, sizes, devices);
}

static OptimizerAttr makeOptimizer(MLIRContext &context, Draw draw) {
  // Rules under which noise in a gradient that is zero stays small.
  static constexpr StringLiteral continuous[] = {"sgd", "adam", "adamw"};
  const UpdateRule &rule = *UpdateRule::find(continuous[draw.between(0, 2)]);
  SmallVector<OptimizerAttr::Constant> constants = {{"lr", 0.05}};
  if (rule.reads("momentum") && draw.chance(50))
    constants.push_back({"momentum", 0.9});
  // A large epsilon keeps the rounding of tiny gradients from growing into differences.
  if (rule.reads("eps"))
    constants.push_back({"eps", 1e-3});
  if (draw.chance(50))
    constants.push_back({"weight_decay", 0.1});
  if (draw.chance(50))
    constants.push_back({"clip", draw.chance(50) ? 0.1 : 10});
  auto schedule = static_cast<ScheduleKind>(draw.between(0, 2));
  int64_t warmup = draw.between(0, 2);
  // Further draws would change those of the rest of the case.
  if (schedule == ScheduleKind::constant && warmup != 0)
    schedule = warmup == 1 ? ScheduleKind::inverse_sqrt : ScheduleKind::wsd;
  if (schedule == ScheduleKind::wsd)
    constants.push_back({"decay_share", 0.5});
  if (schedule != ScheduleKind::constant && warmup == 1)
    constants.push_back({"min_lr", 0.01});
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
  return OptimizerAttr::create(emitError, &context, rule.name, constants, schedule, warmup);
}

/// A strategy that the mesh of `module` can have.
static std::string chooseStrategy(ModuleOp module, Draw draw) {
  MeshAttr mesh = getMesh(module);
  bool sharded = mesh.getAxisIndex("fsdp") >= 0;
  if (sharded && mesh.getAxisIndex("data") >= 0 && draw.chance(25))
    return "hsdp";
  if (sharded && draw.chance(40))
    return draw.chance(50) ? "zero1" : "zero2";
  return draw.chance(85) ? "fsdp" : "ddp";
}

/// Placements by name: this one replicated, that one along a dimension, the rest flat; some over
/// all axes.
static PipelineOptions makeOptions(ModuleOp module, Draw draw) {
  PipelineOptions options;
  options.strategy = chooseStrategy(module, draw);
  MeshAttr mesh = getMesh(module);
  // Axes that no constraint uses split the batch.
  while (StringAttr axis = findUnusedAxis(module, options.batchAxes))
    options.batchAxes.push_back(axis.str());
  options.minShardSize = draw.chance(70) ? 0 : draw.between(1, 20);
  options.reshard = draw.chance(75) ? "always" : "never";
  options.buckets = draw.chance(75) ? "unit" : draw.chance(50) ? "parameter" : "units:2";
  options.prefetch = draw.between(0, 3);
  bool sharded = mesh.getAxisIndex("fsdp") >= 0;
  for (ParamOp param : module.getOps<ParamOp>()) {
    int64_t rank = param.getTensorType().getRank();
    std::string name = param.getSymName().str();
    if (draw.chance(15))
      options.shardPatterns.push_back(name + ":replicated");
    else if (sharded && draw.chance(25) && rank > 0)
      options.shardPatterns.push_back(name + ":" + std::to_string(draw.between(0, rank - 1)));
    else if (sharded && draw.chance(10))
      options.shardPatterns.push_back(name + ":flat");
  }
  // All parameters over all axes that split the batch, in any order; part of a storage is kept
  // then.
  SmallVector<std::string> axes;
  for (StringAttr axis : mesh.getAxisNames())
    if (axis == "data" || axis == "fsdp" || llvm::is_contained(options.batchAxes, axis.getValue()))
      axes.push_back(axis.str());
  if (axes.size() > 1 && draw.chance(30)) {
    std::shuffle(axes.begin(), axes.end(), draw.random);
    const std::string over = "(" + llvm::join(axes, "+") + ")";
    options.shardPatterns.clear();
    for (ParamOp param : module.getOps<ParamOp>()) {
      const int64_t rank = param.getTensorType().getRank();
      const std::string kind = rank > 0 && draw.chance(25)
                                   ? std::to_string(draw.between(0, rank - 1))
                                   : std::string("flat");
      options.shardPatterns.push_back(param.getSymName().str() + ":" + kind + over);
    }
    options.minShardSize = 0;
    if (draw.chance(75)) {
      axes.resize(draw.between(1, static_cast<int64_t>(axes.size()) - 1));
      options.reshard = "axes:" + llvm::join(axes, "+");
    }
  }
  options.precision = draw.chance(40) ? "bf16" : "f32";
  options.reducePrecision = draw.chance(30) ? "bf16" : "f32";
  // Vocabularies are small here: any multiple, and often as much padding as it takes.
  options.vocabularyMultiple = int64_t(1) << draw.between(1, 4);
  options.mostVocabularyPadding = draw.chance(60) ? 2000 : 5;
  return options;
}

/// Puts some ops of `step` that follow one another into a checkpoint, as an author may.
static void addCheckpoint(StepOp step, Draw draw) {
  auto canStandInside = [](Operation *op) {
    return op && !isa<InputOp, LossOp, MetricOp, CheckpointOp>(op);
  };
  Block &body = step.getBody().front();
  SmallVector<Operation *> ops;
  Operation *next = &*std::next(
      body.begin(), draw.between(0, static_cast<int64_t>(body.getOperations().size()) - 1));
  for (int64_t most = draw.between(1, 30); canStandInside(next) && most > 0; --most) {
    ops.push_back(next);
    next = next->getNextNode();
  }
  if (ops.empty())
    return;
  SmallVector<Value> results;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !llvm::is_contained(ops, user); }))
        results.push_back(result);
  OpBuilder builder(ops.front());
  auto checkpoint =
      CheckpointOp::create(builder, step.getLoc(), ValueRange(results).getTypes(),
                           draw.chance(50) ? CheckpointPolicy::full : CheckpointPolicy::selective);
  Block &inside = checkpoint.getBody().emplaceBlock();
  for (Operation *op : ops)
    op->moveBefore(&inside, inside.end());
  builder.setInsertionPointToEnd(&inside);
  YieldOp::create(builder, step.getLoc(), results);
  for (auto [value, result] : llvm::zip_equal(results, checkpoint.getResults()))
    value.replaceUsesWithIf(
        result, [&](OpOperand &use) { return !checkpoint->isProperAncestor(use.getOwner()); });
}

/// Prints, and checks, some values of `step`, each where it is computed.
static void addReports(StepOp step, Draw draw) {
  SmallVector<Value> values;
  step.walk([&](Operation *op) {
    if (!isa<CheckpointOp>(op) && !op->getParentOfType<ManualOp>())
      llvm::append_range(values, op->getResults());
  });
  for (int64_t number = 0, count = draw.between(1, 3); number < count && !values.empty();
       ++number) {
    Value value = values[draw.random() % values.size()];
    OpBuilder builder(step.getContext());
    builder.setInsertionPointAfterValue(value);
    const std::string name = "value" + std::to_string(number);
    if (draw.chance(30) && isa<FloatType>(getElementTypeOrSelf(value.getType())))
      CheckOp::create(builder, value.getLoc(), name, value);
    else
      PrintOp::create(builder, value.getLoc(), name, value);
  }
}

/// Separate rates and decay for some parameters of `step`, by their names or by parts of them.
static void addGroups(ModuleOp module, StepOp step, Draw draw) {
  base::ParameterGroups groups;
  constexpr double scales[] = {0, 0.25, 1, 2};
  for (ParamOp param : module.getOps<ParamOp>()) {
    if (param.getFrozen())
      continue;
    const std::string name = param.getSymName().str();
    const std::string pattern = draw.chance(30) ? "*" + name.substr(name.size() - 1) : name;
    if (draw.chance(40))
      groups.rateScales.push_back({pattern, scales[draw.between(0, 3)]});
    if (draw.chance(30))
      groups.noDecay.push_back(pattern);
  }
  OptimizerAttr optimizer = *step.getOptimizer();
  auto emitError = [&] { return step.emitOpError(); };
  step.setOptimizerAttr(OptimizerAttr::create(
      emitError, module.getContext(), optimizer.getRule(), optimizer.getNamedConstants(),
      optimizer.getSchedule(), optimizer.getWarmup(), groups));
}

/// --context-attention and --context-order.
using ContextOptions = std::pair<StringRef, StringRef>;
/// What cases whose sequences are split ask for. `auto` puts positions in zigzag order where it
/// can, which is rarer than that it is asked for.
static constexpr ContextOptions contextWishes[] = {
    {"all-to-all", "auto"}, {"all-to-all", "auto"},   {"gather", "auto"},    {"gather", "auto"},
    {"gather", "auto"},     {"gather", "contiguous"}, {"ring", "auto"},      {"ring", "auto"},
    {"ring", "auto"},       {"ring", "contiguous"},   {"ring", "contiguous"}};

/// Which kinds of attention `step` may have, in which orders of positions. `parts`, `heads`: over
/// how many ranks positions and heads are then split. `isWhole`: some attention is to its own
/// positions, those that are split.
static SmallVector<ContextOptions> attentionKinds(StepOp step, int64_t parts, int64_t heads,
                                                  bool &isWhole) {
  PositionClass positions(step);
  bool byHeads = true, byPositions = true, inRing = true, anyFits = true;
  isWhole = false;
  step.walk([&](nn::AttentionOp attention) {
    nn::AttentionLayout at = attention.getLayout();
    // Heads that ranks do not divide are refused.
    const bool divides =
        at.groups == at.heads
            ? heads <= at.heads
            : at.groups % heads == 0 || (heads % at.groups == 0 && at.heads % heads == 0);
    const int64_t dim = nn::attentionDim(attention.getOrder(), 't');
    const bool isWithin = at.queries == at.keys &&
                          llvm::all_of(attention.getTensors(),
                                       [&](Value input) { return positions.contains(input, dim); });
    // Keys that are padding are hidden by a causal mask, or left out.
    const bool isMasked = at.queries % parts == 0 || attention.getCausal();
    const bool fitsRing = isWithin && isMasked && !attention.getBias() && !attention.getDocuments();
    const bool fitsGather =
        isWithin && (!attention.getDocuments() ||
                     (isMasked && (at.queries % parts == 0 || !attention.getBias())));
    isWhole |= isWithin;
    byHeads &= divides;
    byPositions &= fitsGather;
    inRing &= fitsRing;
    anyFits &= divides || fitsRing || fitsGather;
  });
  SmallVector<ContextOptions> kinds;
  // Positions of a batch are samples.
  for (InputOp input : step.getBody().getOps<InputOp>())
    if (positions.contains(input, input.getSampleDim()))
      return kinds;
  if (anyFits)
    kinds.push_back({"auto", "auto"});
  for (const ContextOptions &wish : contextWishes)
    if (wish.first == "ring" ? inRing : wish.first == "gather" ? byPositions : byHeads)
      kinds.push_back(wish);
  return kinds;
}

/// Splits positions over an axis `context` of its own, where a dimension of an input besides its
/// samples divides, or the positions of an attention. Draws from a copy of the engine: what a seed
/// draws besides stays.
static bool addContext(ModuleOp module, StepOp step, std::mt19937_64 random, int64_t mostRanks,
                       const ContextOptions *wish, PipelineOptions &options) {
  Draw draw{random};
  MeshOp mesh = getMeshOp(module);
  MeshAttr before = mesh.getMesh();
  const int64_t size = draw.chance(70) || (wish && before.getNumRanks() * 3 > mostRanks) ? 2 : 3;
  if (before.getNumRanks() * size > mostRanks || (draw.chance(20) && !wish))
    return false;
  // An order of devices stays one, of more.
  SmallVector<int64_t> devices;
  if (!before.getDevices().empty()) {
    devices = llvm::to_vector(llvm::seq<int64_t>(before.getNumRanks() * size));
    std::shuffle(devices.begin(), devices.end(), draw.random);
    if (llvm::is_sorted(devices))
      return false;
  }
  // Sizes that the ranks divide, and sometimes others. Not drawn from what the rest is drawn from.
  std::mt19937_64 own(random);
  own.discard(1000);
  const bool mayPad = own() % 100 < 25;
  auto fits = [&](int64_t count) { return count % size == 0 || (mayPad && count > 1); };
  using Place = SmallVector<std::pair<Value, int64_t>, 3>; // that have the same positions
  SmallVector<Place> places;
  for (InputOp input : step.getBody().getOps<InputOp>())
    for (auto [dim, count] : llvm::enumerate(cast<RankedTensorType>(input.getType()).getShape()))
      if (dim != input.getSampleDim() && fits(count))
        places.push_back({{input, static_cast<int64_t>(dim)}});
  step.walk([&](nn::AttentionOp attention) {
    const nn::AttentionLayout at = attention.getLayout();
    Place place;
    for (Value input : attention.getTensors())
      place.push_back({input, nn::attentionDim(attention.getOrder(), 't')});
    if (fits(at.queries) && at.queries == at.keys)
      places.push_back(place);
  });
  int64_t heads = size;
  for (auto [name, ranks] : llvm::zip_equal(before.getAxisNames(), before.getAxisSizes()))
    heads *= name.getValue() == "tensor" ? ranks : 1;
  if (places.empty())
    return false;
  SmallVector<StringAttr> names(before.getAxisNames());
  SmallVector<int64_t> sizes(before.getAxisSizes());
  const int64_t place = draw.between(0, static_cast<int64_t>(names.size()));
  auto context = StringAttr::get(module.getContext(), "context");
  names.insert(names.begin() + place, context);
  sizes.insert(sizes.begin() + place, size);
  mesh.setMeshAttr(MeshAttr::get(module.getContext(), names, sizes, devices));
  // Mostly where attention is, if there is any.
  const bool wantsAttention = draw.chance(80) || wish;
  std::shuffle(places.begin(), places.end(), draw.random);
  SmallVector<ContextOptions> kinds;
  for (bool any : {false, true})
    for (const Place &place : places) {
      SmallVector<ConstraintOp> marks;
      for (auto [value, dim] : place) {
        SmallVector<SmallVector<StringAttr>> dims(
            cast<RankedTensorType>(value.getType()).getRank());
        dims[dim].push_back(context);
        OpBuilder builder(module.getContext());
        builder.setInsertionPointAfterValue(value);
        marks.push_back(ConstraintOp::create(
            builder, value.getLoc(), value.getType(), value,
            ShardingAttr::getCanonical(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims),
            DenseI64ArrayAttr(), /*sequence_parallel=*/true, ArrayAttr()));
        value.replaceAllUsesExcept(marks.back(), marks.back());
      }
      bool isWhole = false;
      kinds = attentionKinds(step, size, heads, isWhole);
      if (!kinds.empty() && (any || (isWhole && wantsAttention))) {
        const ContextOptions &drawn =
            wish && llvm::is_contained(kinds, *wish) ? *wish : kinds[draw.random() % kinds.size()];
        options.contextAttention = drawn.first.str();
        options.contextOrder = drawn.second.str();
        return true;
      }
      for (ConstraintOp mark : llvm::reverse(marks)) {
        mark.getResult().replaceAllUsesWith(mark.getInput());
        mark.erase();
      }
    }
  mesh.setMeshAttr(before);
  return false;
}

RandomCase mlir::fsdp::makeRandomCase(MLIRContext &context, uint64_t seed, int64_t mostRanks,
                                      uint64_t wishes, uint64_t stages) {
  std::mt19937_64 random(seed);
  Draw draw{random};
  RandomCase result;
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  result.module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(result.module->getBody());
  const bool isShort = draw.chance(40);
  // Most cases wish for sequences that are split: their meshes leave room for the axis.
  std::mt19937_64 own(~seed);
  const ContextOptions *wish = nullptr;
  const bool attends = own() % 100 < 25;
  if (own() % 100 < wishes)
    wish = &contextWishes[own() % std::size(contextWishes)];
  // Some leave room for stages too. Drawn apart, so that the other seeds draw what they always
  // drew.
  std::mt19937_64 ofStages(seed * 6364136223846793005u + 1);
  const bool wishesStages = ofStages() % 100 < stages;
  const int64_t allRanks = std::exchange(mostRanks, wishesStages ? mostRanks / 2 : mostRanks);
  MeshAttr mesh =
      makeMesh(context, draw, std::max<int64_t>(wish ? mostRanks / 2 : mostRanks, 1), isShort);
  MeshOp::create(builder, loc, "mesh", mesh);
  auto step = StepOp::create(builder, loc, "train", StepKind::train, makeOptimizer(context, draw));
  builder.setInsertionPointToStart(&step.getBody().emplaceBlock());
  RandomStep body(builder, *result.module, step, random, result.data);
  body.attends = attends || wish;
  body.balances = wish && wish->first != "all-to-all" && wish->second == "auto";
  body.inRing = wish && wish->first == "ring";
  body.computesInRegion = own() % 100 < 20;
  isShort ? body.buildShort() : body.build();
  // A separate evaluation instead of the derived one: other ops, metrics and batch.
  if (draw.chance(20)) {
    builder.setInsertionPointToEnd(result.module->getBody());
    auto evaluate = StepOp::create(builder, loc, "evaluate", StepKind::evaluate, OptimizerAttr());
    builder.setInsertionPointToStart(&evaluate.getBody().emplaceBlock());
    RandomStep(builder, *result.module, evaluate, random, result.data, &body).build();
  }
  result.options = makeOptions(*result.module, draw);
  // Last, so that other draws of a seed do not change.
  constexpr const char *policies[] = {"full", "selective", "every:2", "every:3"};
  result.options.remat = draw.chance(50) ? policies[draw.between(0, 3)] : "none";
  for (int64_t regions = draw.between(0, 2); regions > 0; --regions)
    addCheckpoint(step, draw);
  constexpr const char *reductions[] = {"auto", "each", "last"};
  result.options.accumulate = draw.chance(isShort ? 40 : 75) ? draw.between(2, 5) : 1;
  // Microbatches of a region need batches that ranks and microbatches divide.
  if (body.computesInRegion && own() % 100 < 50)
    result.options.accumulate = 1;
  result.options.accumulateReduce = reductions[draw.between(0, 2)];
  bool readsLogits = result.module->walk([](nn::CrossEntropyOp) { return WalkResult::interrupt(); })
                         .wasInterrupted();
  if (readsLogits && draw.chance(60))
    result.options.lossChunks = draw.chance(75) ? 2 : 3;
  result.options.deferUpdates = draw.chance(50) ? "on" : "off";
  int64_t shares = 1;
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames(), mesh.getAxisSizes()))
    if (name.getValue() != "tensor")
      shares *= size;
  result.unevenBatch = body.getBatch() % shares != 0;
  // Where samples are merged with other dimensions, microbatches must divide them.
  if (wish) {
    const bool accumulates = own() % 100 < 60;
    result.options.accumulate = 1;
    for (int64_t parts : {5, 4, 3, 2})
      if (accumulates && body.getBatch() % (shares * parts) == 0)
        result.options.accumulate = parts;
  }
  result.options.tiedGradients = draw.chance(50) ? "once" : "each";
  if (draw.chance(40))
    addReports(step, draw);
  if (draw.chance(40))
    addGroups(*result.module, step, draw);
  result.splitsSequence = addContext(*result.module, step, random, mostRanks, wish, result.options);
  if (wishesStages)
    result.isPipeline = addPipeline(*result.module, ofStages, allRanks, result.options);
  return result;
}
