//===- RandomModule.h - random training steps on random meshes --*- C++ -*-===//

#ifndef TEST_UNIT_INTERPRETER_RANDOMMODULE_H
#define TEST_UNIT_INTERPRETER_RANDOMMODULE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/DataSet.h"
#include "passes/Pipelines.h"
#include <map>
#include <random>

namespace mlir::fsdp {

/// A module of the global phase (mesh, parameters, one training step), data for it, and options
/// that a user would choose. All of it is a function of the arguments of makeRandomCase.
struct RandomCase {
  OwningOpRef<ModuleOp> module;
  interpreter::DataSet data;
  PipelineOptions options;
  bool unevenBatch = false;
  /// Over an axis `context`.
  bool splitsSequence = false;
  /// In stages, over an axis `pipeline`.
  bool isPipeline = false;
};

/// Divides the one step of `module` into stages over a new axis `pipeline` and draws a schedule;
/// false where there are too few ops, or ranks.
bool addPipeline(ModuleOp module, std::mt19937_64 random, int64_t mostRanks,
                 PipelineOptions &options);

/// The share of cases that wish for attention to a sequence that ranks share, in percent, of those
/// for `property-tests` and for emitted programs: the kernels of attention round in bf16 what the
/// interpreter does not, so that programs with it need a looser tolerance.
constexpr uint64_t kPropertyWishes = 84, kEmittedWishes = 25;
/// The share of cases that wish for stages, which some cannot have.
constexpr uint64_t kPropertyStages = 30, kEmittedStages = 30;
RandomCase makeRandomCase(MLIRContext &context, uint64_t seed, int64_t mostRanks = 16,
                          uint64_t wishes = kPropertyWishes, uint64_t stages = kPropertyStages);

/// Builds the body of the step. Every value has named dimensions; 'b' is the batch. An evaluation
/// beside the step `training` has parameters of that step, and frozen ones.
class RandomStep {
public:
  RandomStep(OpBuilder &builder, ModuleOp module, StepOp step, std::mt19937_64 &random,
             interpreter::DataSet &data, const RandomStep *training = nullptr);
  void build();
  /// A short program, in which many values are constrained or partial sums.
  void buildShort();
  int64_t getBatch() const { return sizes.at('b'); }
  /// Attention of a sequence to itself is among the ops, whatever is drawn.
  bool attends = false;
  /// A manual region is among the ops, whatever is drawn.
  bool computesInRegion = false;
  /// That it is causal, with neither bias nor window, so that an order of positions balances it;
  /// and that it has neither bias nor documents, as a ring takes it.
  bool balances = false, inRing = false;

private:
  struct Var {
    Value value;
    std::string dims;
  };

  // Draws.
  int64_t between(int64_t low, int64_t high) { return low + random() % (high - low + 1); }
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  template <typename T> const T &oneOf(const std::vector<T> &list) {
    return list[random() % list.size()];
  }
  std::string shuffled(std::string dims);

  // Types and dimensions.
  char newDim(int64_t size);
  SmallVector<int64_t> shapeOf(StringRef dims) const;
  RankedTensorType typeOf(StringRef dims, Type element = {});
  bool hasBatch(StringRef dims) const;
  std::string notation(StringRef from, StringRef to) const;

  // Values.
  Var use();
  Value scattered(Value value, StringRef dims);
  void add(Value value, std::string dims) { pool.push_back({value, std::move(dims)}); }
  Value input(StringRef dims, Type element, int64_t classes);
  Value parameter(StringRef dims);
  ArrayAttr split(int64_t rank);
  SmallVector<StringAttr> partsOf(StringAttr axis);
  Value constant(StringRef dims, double value, Type element = {});
  Value repeat(Value value, StringRef from, StringRef to);
  Value total(Value value, StringRef dims);
  template <typename Op> Value make(Value a) { return Op::create(builder, location(), a); }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(builder, location(), a, b);
  }
  Location location();

  // Layers: each takes a value of the pool and adds others.
  void addLayer();
  void contract();
  void contractValues();
  void bias();
  void smooth();
  Value smoothOf(const Var &x, llvm::function_ref<Value()> positive,
                 llvm::function_ref<Value()> bounded);
  void kink();
  void combine();
  void move();
  void reduce();
  void normalizeOverBatch();
  void classify();
  void convert();
  void constrain();
  Value split(Value value, StringRef dims, char dim);
  void table();
  // RandomRows.cpp
  Value ordered(const Var &x, StringRef dims);
  char resize(char dim, int64_t size);
  void contractRows();
  Value splitRow(Value value, StringRef dims, char dim);
  void normalizeRows();
  void attend(bool toItself = false);
  void addBesides();
  Value splitHeads(Value queries);
  bool addBias(SmallVectorImpl<Value> &inputs, std::string dims);
  void turn();
  Value positionsFor(StringRef dims, int64_t over);
  Value sinceIn(Value tokens, StringRef dims);
  void continueText();
  void accumulate();
  void drop();
  void lookUp();
  void cutAndJoin();
  Value weights();
  void measure();
  // RandomManual.cpp
  void computeInRegion();

  OpBuilder &builder;
  ModuleOp module;
  StepOp step;
  std::mt19937_64 &random;
  interpreter::DataSet &data;
  std::map<char, int64_t> sizes;
  std::string batchDims = "b";
  std::vector<Var> pool;
  const RandomStep *training;
  int64_t samples;
  int inputs, layers = 0;
  bool isShort = false;
};

} // namespace mlir::fsdp

#endif // TEST_UNIT_INTERPRETER_RANDOMMODULE_H
