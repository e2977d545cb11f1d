#include "runtime/kernels/cuda/CudnnGraph.h"

#include "base/Error.h"
#include "runtime/program/Limits.h"

#include <array>
#include <utility>

namespace fsdp::rt::cudnn {

using namespace base;

namespace {

using Extents = std::array<std::int64_t, 4>;

/// Where elements lie: extents and strides of (batch, heads, positions, width), or of two of them
/// exchanged.
struct Layout {
  Extents extents, strides;
};

Layout dense(const Extents &e) { return {e, {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}}; }

Layout exchanged(Layout x) {
  std::swap(x.extents[2], x.extents[3]);
  std::swap(x.strides[2], x.strides[3]);
  return x;
}

Layout layoutOf(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t width,
                const HeadStrides &strides) {
  return {{batch, heads, rows, width},
          {static_cast<std::int64_t>(strides.batch), static_cast<std::int64_t>(strides.head),
           static_cast<std::int64_t>(strides.row), 1}};
}

std::size_t bytesOf(const Layout &x, std::size_t element) {
  std::size_t count = element;
  for (std::int64_t extent : x.extents)
    count *= static_cast<std::size_t>(extent);
  return count;
}

std::size_t upTo256(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Adds operations to a graph. A tensor is used by its descriptor, which the builder owns.
class Builder {
public:
  using Tensor = const Descriptor *;

  explicit Builder(const Library &library) : library_(library) {}

  /// A tensor in memory.
  Tensor operand(Operand id, const Layout &layout, Data type = Data::BF16) {
    return add(static_cast<std::int64_t>(id), layout, type, /*isVirtual=*/false,
               /*isByValue=*/false);
  }
  /// A number of f32, given with each call.
  Tensor number(Operand id) {
    return add(static_cast<std::int64_t>(id), dense({1, 1, 1, 1}), Data::F32, /*isVirtual=*/false,
               /*isByValue=*/true);
  }
  /// A tensor between operations.
  Tensor between(const Layout &layout, Data type = Data::F32) {
    return add(nextVirtual_++, layout, type, /*isVirtual=*/true, /*isByValue=*/false);
  }

  Tensor multiply(Tensor a, Tensor b, Tensor c) {
    Descriptor function(library_, Kind::Matmul);
    function.set(Attribute::MatmulPrecision, Data::F32);
    function.finalize();
    Descriptor operation(library_, Kind::MatmulOperation);
    operation.set(Attribute::MatmulA, *a);
    operation.set(Attribute::MatmulB, *b);
    operation.set(Attribute::MatmulC, *c);
    operation.set(Attribute::MatmulFunction, function);
    keep(std::move(function), std::move(operation));
    return c;
  }
  Tensor loop(Pointwise mode, Tensor x, Tensor y) { return loop(mode, x, nullptr, nullptr, y); }
  Tensor loop(Pointwise mode, Tensor x, Tensor b, Tensor y) { return loop(mode, x, b, nullptr, y); }
  /// `b`, `t`: operands that the mode may lack.
  Tensor loop(Pointwise mode, Tensor x, Tensor b, Tensor t, Tensor y, Data precision = Data::F32) {
    Descriptor function(library_, Kind::Pointwise);
    function.set(Attribute::PointwiseMode, Type::PointwiseMode, 1, &mode);
    function.set(Attribute::PointwisePrecision, precision);
    return loop(std::move(function), x, b, t, y);
  }
  /// The index along `axis`.
  Tensor index(std::int64_t axis, Tensor x, Tensor y) {
    const Pointwise mode = Pointwise::Index;
    Descriptor function(library_, Kind::Pointwise);
    function.set(Attribute::PointwiseMode, Type::PointwiseMode, 1, &mode);
    function.set(Attribute::PointwisePrecision, Data::F32);
    function.set(Attribute::PointwiseAxis, axis);
    return loop(std::move(function), x, nullptr, nullptr, y);
  }
  /// Over the dimensions in which `y` has fewer elements than `x`.
  Tensor reduce(Reduction mode, Tensor x, Tensor y) {
    Descriptor function(library_, Kind::Reduction);
    function.set(Attribute::ReductionOperator, Type::ReductionOperator, 1, &mode);
    function.set(Attribute::ReductionPrecision, Data::F32);
    function.finalize();
    Descriptor operation(library_, Kind::ReductionOperation);
    operation.set(Attribute::ReductionX, *x);
    operation.set(Attribute::ReductionY, *y);
    operation.set(Attribute::ReductionFunction, function);
    keep(std::move(function), std::move(operation));
    return y;
  }
  /// The same elements, described by another layout.
  Tensor reshape(Tensor x, Tensor y) {
    Descriptor operation(library_, Kind::ReshapeOperation);
    operation.set(Attribute::ReshapeX, *x);
    operation.set(Attribute::ReshapeY, *y);
    operation.finalize();
    operations_.push_back(std::move(operation));
    return y;
  }

  AttentionPlan::Graph finish() {
    AttentionPlan::Graph graph;
    graph.whole = Descriptor(library_, Kind::Graph);
    graph.whole.set(Attribute::GraphOperations, operations_);
    graph.whole.finalize();
    graph.parts = std::move(parts_);
    for (Descriptor &operation : operations_)
      graph.parts.push_back(std::move(operation));
    return graph;
  }

private:
  Tensor add(std::int64_t id, const Layout &layout, Data type, bool isVirtual, bool isByValue) {
    // Rows of heads begin at multiples of 16 bytes (whyNot).
    const std::int64_t alignment = type == Data::BF16 ? 16 : 4;
    Descriptor &tensor = parts_.emplace_back(library_, Kind::Tensor);
    tensor.set(Attribute::TensorData, type);
    tensor.set(Attribute::TensorExtents, std::vector(layout.extents.begin(), layout.extents.end()));
    tensor.set(Attribute::TensorStrides, std::vector(layout.strides.begin(), layout.strides.end()));
    tensor.set(Attribute::TensorId, id);
    tensor.set(Attribute::TensorAlignment, alignment);
    tensor.set(Attribute::TensorIsVirtual, isVirtual);
    tensor.set(Attribute::TensorIsByValue, isByValue);
    tensor.finalize();
    return &tensor;
  }
  Tensor loop(Descriptor function, Tensor x, Tensor b, Tensor t, Tensor y) {
    function.finalize();
    Descriptor operation(library_, Kind::PointwiseOperation);
    operation.set(Attribute::PointwiseFunction, function);
    operation.set(Attribute::PointwiseX, *x);
    if (b)
      operation.set(Attribute::PointwiseB, *b);
    if (t)
      operation.set(Attribute::PointwiseT, *t);
    operation.set(Attribute::PointwiseY, *y);
    keep(std::move(function), std::move(operation));
    return y;
  }
  void keep(Descriptor function, Descriptor operation) {
    operation.finalize();
    parts_.push_back(std::move(function));
    operations_.push_back(std::move(operation));
  }

  const Library &library_;
  std::int64_t nextVirtual_ = 1000;
  std::deque<Descriptor> parts_; ///< tensors, whose addresses stay, and functions
  std::vector<Descriptor> operations_;
};

/// The builder, layouts and causal mask of both graphs.
class Attention {
public:
  Attention(const Library &library, const AttentionShape &s)
      : build(library), shape(s), batch(s.batch), heads(s.heads), groups(s.groups),
        queries(s.queries), keys(s.keys), width(s.width),
        q(layoutOf(batch, heads, queries, width, s.q)),
        k(layoutOf(batch, groups, keys, width, s.k)),
        out(layoutOf(batch, heads, queries, width, s.out)),
        scores(dense({batch, heads, queries, keys})), rows(dense({batch, heads, queries, 1})) {}

  Builder::Tensor virtualScores(Data type = Data::F32) { return build.between(scores, type); }
  Builder::Tensor virtualRows() { return build.between(rows); }

  /// -infinity, but for the least number, where a query does not see a key.
  Builder::Tensor masked(Builder::Tensor x) {
    if (!shape.causal)
      return x;
    const Builder::Tensor row = build.index(2, x, virtualScores(Data::I32)),
                          column = build.index(3, x, virtualScores(Data::I32)),
                          sees = build.loop(Pointwise::IsAtLeast, row, column, nullptr,
                                            virtualScores(Data::Bool), Data::Bool);
    return build.loop(Pointwise::Select, x, build.number(Operand::Hidden), sees, virtualScores());
  }

  Builder build;
  const AttentionShape &shape;
  std::int64_t batch, heads, groups, queries, keys, width;
  Layout q, k, out, scores, rows;
};

AttentionPlan::Graph makeForward(const Library &library, const AttentionShape &s) {
  Attention a(library, s);
  Builder &build = a.build;
  Builder::Tensor x = build.multiply(build.operand(Operand::Q, a.q),
                                     build.operand(Operand::K, exchanged(a.k)), a.virtualScores());
  x = build.loop(Pointwise::Multiply, x, build.number(Operand::Scale), a.virtualScores());
  x = a.masked(x);
  const Builder::Tensor largest = build.reduce(Reduction::Largest, x, a.virtualRows());
  x = build.loop(Pointwise::Subtract, x, largest, a.virtualScores());
  x = build.loop(Pointwise::Exp, x, a.virtualScores());
  const Builder::Tensor sum = build.reduce(Reduction::Sum, x, a.virtualRows());
  const Builder::Tensor log = build.loop(Pointwise::Log, sum, a.virtualRows());
  build.loop(Pointwise::Add, largest, log, build.operand(Operand::LogSumExp, a.rows, Data::F32));
  x = build.loop(Pointwise::Divide, x, sum, a.virtualScores(Data::BF16));
  build.multiply(x, build.operand(Operand::V, a.k), build.operand(Operand::Out, a.out));
  return build.finish();
}

/// `isOrdered`: gradients of queries are added up in a separate buffer.
AttentionPlan::Graph makeGradient(const Library &library, const AttentionShape &s, bool isOrdered) {
  Attention a(library, s);
  Builder &build = a.build;
  const Builder::Tensor q = build.operand(Operand::Q, a.q),
                        k = build.operand(Operand::K, exchanged(a.k)),
                        dOut = build.operand(Operand::DOut, a.out),
                        scale = build.number(Operand::Scale);
  // The products of rows.
  Builder::Tensor x = build.loop(Pointwise::Multiply, dOut, build.operand(Operand::Out, a.out),
                                 build.between(dense(a.out.extents)));
  x = build.reduce(Reduction::Sum, x, a.virtualRows());
  const Builder::Tensor along = build.loop(Pointwise::Multiply, x, build.number(Operand::One),
                                           build.operand(Operand::Along, a.rows, Data::F32));
  // The probabilities, and the gradient of the values.
  x = build.multiply(q, k, a.virtualScores());
  x = build.loop(Pointwise::Multiply, x, scale, a.virtualScores());
  x = build.loop(Pointwise::Subtract, x, build.operand(Operand::LogSumExp, a.rows, Data::F32),
                 a.virtualScores());
  x = a.masked(x);
  const Builder::Tensor p = build.loop(Pointwise::Exp, x, a.virtualScores());
  const auto turned = [&](Builder::Tensor scores) {
    return build.reshape(scores, build.between(exchanged(a.scores), Data::BF16));
  };
  const auto sumOverQueries = [&](Builder::Tensor scores, Builder::Tensor of, Operand id) {
    const Builder::Tensor gradient = build.operand(id, a.k);
    if (a.heads == a.groups) {
      build.multiply(turned(scores), of, gradient);
      return;
    }
    const Builder::Tensor ofHeads = build.multiply(
        turned(scores), of, build.between(dense({a.batch, a.heads, a.keys, a.width}), Data::BF16));
    build.reduce(Reduction::Sum, ofHeads, gradient);
  };
  sumOverQueries(p, dOut, Operand::DV);
  // The gradients of the scores, and of the keys.
  x = build.multiply(dOut, build.operand(Operand::V, exchanged(a.k)), a.virtualScores());
  x = build.loop(Pointwise::Subtract, x, along, a.virtualScores());
  x = build.loop(Pointwise::Multiply, x, p, a.virtualScores());
  const Builder::Tensor dScores = build.loop(Pointwise::Multiply, x, scale, a.virtualScores());
  sumOverQueries(dScores, q, Operand::DK);
  // The gradient of the queries.
  const Builder::Tensor rowsOfKeys = build.reshape(k, build.between(a.k, Data::BF16)),
                        dQ = build.operand(Operand::DQ, a.q);
  if (isOrdered)
    build.loop(Pointwise::Identity,
               build.multiply(dScores, rowsOfKeys,
                              build.operand(Operand::QuerySums, dense(a.q.extents), Data::F32)),
               dQ);
  else
    build.multiply(dScores, rowsOfKeys, dQ);
  return build.finish();
}

/// The configuration of an engine; its parts are added to those of the graph. None where the engine
/// does not take the graph.
Descriptor configOf(const Library &library, const Device &device, AttentionPlan::Graph &graph,
                    std::int64_t engine, const std::vector<std::pair<Knob, std::int64_t>> &knobs) {
  Descriptor &chosen = graph.parts.emplace_back(library, Kind::Engine);
  chosen.set(Attribute::EngineGraph, graph.whole);
  chosen.set(Attribute::EngineIndex, engine);
  chosen.set(Attribute::EngineDevice, device.properties);
  const auto isTaken = [&](Descriptor &descriptor) {
    const Status status = descriptor.tryFinalize();
    if (!isNotSupported(status))
      library.check(status, "asking for a kernel of attention");
    return status == kSuccess;
  };
  if (!isTaken(chosen))
    return {};
  std::vector<Descriptor> choices;
  for (const auto &[knob, value] : knobs) {
    Descriptor &choice = choices.emplace_back(library, Kind::KnobChoice);
    choice.set(Attribute::KnobType, Type::Knob, 1, &knob);
    choice.set(Attribute::KnobValue, value);
    choice.finalize();
  }
  Descriptor config(library, Kind::EngineConfig);
  config.set(Attribute::ConfigEngine, chosen);
  config.set(Attribute::ConfigKnobs, choices);
  if (!isTaken(config))
    return {};
  for (Descriptor &choice : choices)
    graph.parts.push_back(std::move(choice));
  return config;
}

/// The engine of Hopper that adds up in order, and its parameters, as cudnn_frontend sets them:
/// tiles of 64 by 64, and the number of stages that selects the order.
constexpr std::int64_t kOrderedEngine = 6;
const std::vector<std::pair<Knob, std::int64_t>> kOrderedKnobs = {
    {Knob::TileM, 2},   {Knob::TileN, 1},    {Knob::KernelConfig, 2},
    {Knob::StreamK, 0}, {Knob::ClusterM, 0}, {Knob::Stages, 4}};

} // namespace

std::string whyNot(const AttentionShape &s) {
  if (s.window > 0)
    return "it has a window";
  if (s.softcap != 0)
    return "its scores are capped";
  if (s.width % 8 != 0 || s.width > limits::kMaxHeadWidth)
    return format("heads are %u wide, expected a multiple of 8 up to %u", s.width,
                  unsigned(limits::kMaxHeadWidth));
  if (s.groups == 0 || s.heads % s.groups != 0)
    return format("got %u heads in %u groups, expected groups of equal size", s.heads, s.groups);
  if (s.causal && (s.queries != s.keys || s.offset != 0))
    return format("it is causal with %u queries at the positions from %lld on of %u keys, expected "
                  "as many queries as keys, at the same positions",
                  s.queries, static_cast<long long>(s.positionOf(0)), s.keys);
  for (const HeadStrides *strides : {&s.q, &s.k, &s.out})
    for (std::size_t stride : {strides->batch, strides->head, strides->row, s.part})
      if (stride % 8 != 0)
        return format("its rows are %zu numbers apart, expected a multiple of 8", stride);
  return "";
}

std::string describe(const AttentionShape &s) {
  return format("%u x %u heads of %u (%u groups), %u queries, %u keys%s", s.batch, s.heads, s.width,
                s.groups, s.queries, s.keys, s.causal ? ", causal" : "");
}

AttentionPlan::AttentionPlan(const Library &library, const Device &device,
                             const AttentionShape &shape, bool isGradient)
    : scale_(shape.scale) {
  const bool isOrdered = isGradient && library.version() >= kOrderedGradient;
  graph_ = isGradient ? makeGradient(library, shape, isOrdered) : makeForward(library, shape);
  const std::string what =
      (isGradient ? "the gradient of attention, " : "attention, ") + describe(shape);
  if (isOrdered) {
    if (!tryEngine(library, device,
                   configOf(library, device, graph_, kOrderedEngine, kOrderedKnobs)))
      throw Error("cuDNN " + versionText(library.version()) +
                  " has no kernel that adds up in one order for " + what +
                  ": unset FSDP_ATTENTION to use this program's own kernels");
  } else {
    choose(library, device, what);
  }
  if (!isGradient)
    return;
  const Layout rows = dense({shape.batch, shape.heads, shape.queries, 1});
  scratch_.push_back({Operand::Along, workspace_});
  workspace_ += upTo256(bytesOf(rows, sizeof(float)));
  if (isOrdered) {
    scratch_.push_back({Operand::QuerySums, workspace_});
    workspace_ += upTo256(bytesOf(rows, shape.width * sizeof(float)));
  }
}

/// Takes the first of the configurations that cuDNN proposes which has a kernel.
void AttentionPlan::choose(const Library &library, const Device &device, const std::string &what) {
  for (const Heuristics mode : {Heuristics::A, Heuristics::Fallback}) {
    Descriptor heuristics(library, Kind::Heuristics);
    heuristics.set(Attribute::HeuristicsGraph, graph_.whole);
    heuristics.set(Attribute::HeuristicsMode, Type::HeuristicsMode, 1, &mode);
    heuristics.set(Attribute::HeuristicsDevice, device.properties);
    if (const Status status = heuristics.tryFinalize(); isNotSupported(status))
      continue;
    else
      library.check(status, "asking for kernels of " + what);
    std::int64_t count = heuristics.get(Attribute::HeuristicsResults, Type::Descriptor, 0, nullptr);
    std::vector<Descriptor> configs;
    std::vector<RawDescriptor> raw;
    for (std::int64_t i = 0; i < count; ++i)
      raw.push_back(configs.emplace_back(library, Kind::EngineConfig).raw());
    count = heuristics.get(Attribute::HeuristicsResults, Type::Descriptor, count, raw.data());
    for (std::int64_t i = 0; i < count; ++i)
      if (tryEngine(library, device, std::move(configs[static_cast<std::size_t>(i)])))
        return;
  }
  throw Error("cuDNN " + versionText(library.version()) + " has no kernel for " + what +
              ": unset FSDP_ATTENTION to use this program's own kernels");
}

bool AttentionPlan::tryEngine(const Library &library, const Device &device, Descriptor config) {
  if (!config)
    return false;
  std::int64_t bytes = 0;
  if (device.isThere) {
    Descriptor plan(library, Kind::Plan);
    plan.set(Attribute::PlanConfig, config);
    plan.set(Attribute::PlanDevice, device.properties);
    if (const Status status = plan.tryFinalize(); isNotSupported(status))
      return false;
    else
      library.check(status, "preparing a kernel of attention");
    plan.get(Attribute::PlanWorkspace, Type::Int64, 1, &bytes);
    plan_ = std::move(plan);
  } else {
    config.get(Attribute::ConfigWorkspace, Type::Int64, 1, &bytes);
  }
  workspace_ = upTo256(static_cast<std::size_t>(bytes));
  Descriptor engine(library, Kind::Engine);
  RawDescriptor raw = engine.raw();
  config.get(Attribute::ConfigEngine, Type::Descriptor, 1, &raw);
  engine.get(Attribute::EngineIndex, Type::Int64, 1, &engine_);
  graph_.parts.push_back(std::move(config));
  graph_.parts.push_back(std::move(engine));
  return true;
}

Device deviceOf(const Library &library, std::int32_t device) {
  Descriptor properties(library, Kind::DeviceProperties);
  properties.set(Attribute::DeviceId, Type::Int32, 1, &device);
  properties.finalize();
  return {std::move(properties), /*isThere=*/true};
}

Device deviceOf(const Library &library, const std::string &text) {
  Descriptor properties(library, Kind::DeviceProperties);
  properties.set(Attribute::DeviceText, Type::Char, static_cast<std::int64_t>(text.size()),
                 text.data());
  properties.finalize();
  return {std::move(properties), /*isThere=*/false};
}

} // namespace fsdp::rt::cudnn
