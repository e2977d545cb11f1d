//===- LaunchMutations.h - changes of schedules of several roles -*- C++ -*-===//

#ifndef TEST_MUTATION_LAUNCHMUTATIONS_H
#define TEST_MUTATION_LAUNCHMUTATIONS_H

#include "dialect/fsdp/FSDPDialect.h"

#include <random>
#include <string>

namespace fsdp::mutation {

/// One change of a schedule.
struct Mutation {
  std::string what;        ///< for statistics
  bool isHarmless = false; ///< by construction
};

/// Changes a right schedule of several roles, in which no launch loses its operands: the order of
/// launches, streams, waits, messages, groups, drains and places in the arena.
class LaunchMutator {
public:
  LaunchMutator(mlir::ModuleOp module, std::mt19937 &random);

  /// Makes one change of a random kind. The module is valid afterwards.
  Mutation mutate();
  /// What the checker cannot know, as it knows no other order than that of the schedule: launches
  /// that access the same bytes, at least one as a writer, and have changed their order. Names both
  /// launches; empty if there are none (passes/schedule/ProgramOrder.h).
  std::string findReordered() const;

private:
  struct Kind {
    const char *what;
    bool isHarmless;
    bool (LaunchMutator::*apply)();
  };
  static const Kind kinds[];

  // Draws.
  int draw(size_t below) { return static_cast<int>(random() % below); }
  template <typename Range> auto oneOf(Range &&range) { return range[draw(range.size())]; }
  /// A program and one of its segments, mostly the training step.
  void choose();
  mlir::SmallVector<mlir::fsdp::LaunchOp> launches();
  /// The launches that send, receive, or communicate with other roles.
  mlir::SmallVector<mlir::fsdp::LaunchOp> messages();

  // Waits.
  bool dropWait();
  bool redirectWait();
  bool dropAwait();
  bool dropRecord();
  bool addWait();
  // Messages.
  bool dropMessage();
  bool repeatMessage();
  bool exchangeMessages();
  bool exchangeContents();
  bool changePeer();
  bool moveMessageToStream();
  // Order.
  bool exchangeNeighbors();
  bool moveLaunch();
  bool moveToStream();
  bool exchangeIndependent();
  bool splitGroup();
  // Places.
  bool takePlace();
  bool shiftPlace();
  bool givePlace();
  // Drains.
  bool dropDrain();
  bool dropDrains();
  bool dropDrainedUpdate();

  bool changeStream(mlir::fsdp::LaunchOp launch);
  /// Drops waits for launches that are issued later.
  void repairWaits();
  void eraseLaunch(mlir::fsdp::LaunchOp launch);
  /// Exchanges two launches; each takes the waits and events of the other.
  void exchange(mlir::fsdp::LaunchOp first, mlir::fsdp::LaunchOp second);
  void eraseDrain(mlir::fsdp::ProgramOp from);

  mlir::ModuleOp module;
  std::mt19937 &random;
  mlir::fsdp::ProgramOp program;
  mlir::fsdp::SegmentOp segment;
  /// The place of each launch in the order of the compiler.
  mlir::DenseMap<mlir::Operation *, int> places;
};

} // namespace fsdp::mutation

#endif // TEST_MUTATION_LAUNCHMUTATIONS_H
