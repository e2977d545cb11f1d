//===- HostEmitter.h - the host file of a program ---------------*- C++ -*-===//

#ifndef CODEGEN_HOSTEMITTER_H
#define CODEGEN_HOSTEMITTER_H

#include "codegen/Arena.h"
#include "codegen/SharedFunctions.h"
#include "codegen/Tables.h"
#include "codegen/Target.h"

namespace mlir::fsdp {

/// The actions [begin, end) of a timeline, to be one function.
struct FunctionRange {
  StringAttr unit;  ///< null if of no unit
  std::string part; ///< "forward"; empty until a launch determines it
  size_t begin = 0, end = 0;

  /// "fc1.forward"
  std::string name() const { return unit ? unit.str() + "." + part : part; }
};

/// Launches of one segment with equal bodies on one stream, whose buffers have equal types and of
/// which the same ones are equal: the microbatches of a step and the layers of a model repeat
/// launches that differ in their buffers alone. `call` follows from the other properties and is
/// found once for each form.
struct LaunchForm {
  mutable LaunchOp first; ///< its accessors are not const
  Call call;              ///< of `first`

  /// The place of `buffer`, which `first` has, among its buffers: the others of this form have
  /// theirs in the same place.
  unsigned numberOf(Value buffer) const;
};

/// Launches of one form are alike.
struct EqualForms {
  static size_t hash(LaunchOp launch);
  static bool areAlike(LaunchOp one, LaunchOp other);
};

/// The file that a host program goes into.
struct HostFile {
  std::string name;
  std::vector<std::string> headers; ///< of the program, to include
  std::string elsewhere;            ///< source in other files that belongs to the program
  std::string programs = {};        ///< the table of the programs of all roles; "": there is one
};

/// Writes functions and tables of one scheduled module. Its kernels, and tables shared with other
/// plans, may be in other files.
class HostEmitter {
public:
  HostEmitter(const ScheduledProgram &program, const EmitOptions &options);

  /// Adds the kernels of the program to `kernels`. Fails with a diagnostic for an op that the
  /// target does not support.
  LogicalResult prepare(KernelTable &kernels);
  /// After prepare: the tables of the model. References to tables in other files use the namespace
  /// of the file.
  ModelTables &getModelTables() { return modelTables; }
  const Target &getTarget() const { return *target; }
  /// The C++ name of the program: `program`, in an anonymous namespace, which ends here. The names
  /// of `kernels` must be assigned.
  void emit(const KernelTable &kernels, const HostFile &file, Writer &writer);

private:
  /// The call of launches that have one form and one kernel.
  struct PrintedCall {
    int text = 0;                  ///< equal ones are equal except for values
    SmallVector<unsigned> buffers; ///< as numbers of the form, in the order of the text
  };

  void emitSegment(const Timeline &timeline, Writer &writer);
  void emitFunctions(const Timeline &timeline, std::vector<std::string> &calls, Writer &writer);
  /// Reads the values of the function of `range`. Functions with equal results differ in values
  /// alone.
  std::string readFunction(const Timeline &timeline, const FunctionRange &range, FunctionRow &row);
  /// Writes the lines of the actions of `range`, with `spell` for values.
  void emitActions(const Timeline &timeline, const FunctionRange &range,
                   llvm::function_ref<std::string(const FunctionValue &)> spell,
                   Writer &writer) const;
  void emitCall(LaunchOp launch, std::string name, llvm::function_ref<std::string(unsigned)> spell,
                Writer &writer) const;
  const PrintedCall &printedCallOf(LaunchOp launch);
  /// The expression of a value in the code of its segment.
  std::string spell(const Timeline &timeline, const FunctionValue &value) const;

  const ScheduledProgram &program;
  const EmitOptions &options;
  Arena arena;
  std::unique_ptr<Target> target;
  ModelTables modelTables;
  const KernelTable *kernels = nullptr;
  PerLaunchClass<LaunchForm, EqualForms> forms;
  llvm::DenseMap<Operation *, const LaunchForm *> formOf; ///< of every launch
  /// By form and number of the kernel.
  llvm::DenseMap<std::pair<const LaunchForm *, size_t>, std::unique_ptr<PrintedCall>> printedCalls;
  llvm::StringMap<int> texts; ///< of printed calls, without values
};

} // namespace mlir::fsdp

#endif // CODEGEN_HOSTEMITTER_H
