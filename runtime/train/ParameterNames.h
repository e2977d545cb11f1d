//===- ParameterNames.h - names of parameters, and patterns -*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_PARAMETERNAMES_H
#define FSDP_RUNTIME_TRAIN_PARAMETERNAMES_H

#include "base/ParameterGroups.h"
#include "runtime/program/Program.h"

#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// A parameter, and the storage that has it.
struct Member {
  const Storage *storage = nullptr;
  const Parameter *parameter = nullptr;
};
/// All parameters, as the model declares them, for any placement.
std::vector<Member> membersOf(const Program &program);

/// Error (bad command line): `pattern`, of `option`, matches no parameter of the program. The
/// message ends with `remedy`.
void requireMatch(const Program &program, const char *option, std::string_view pattern,
                  std::string_view remedy = "");

/// Those that the program was compiled with.
base::ParameterGroups compiledGroups(const Program &program);
/// For each parameter of the program, in the order of its tables; empty without patterns, as the
/// tables then apply to all.
std::vector<UpdateSetting> updateSettings(const Program &program,
                                          const base::ParameterGroups &groups);

/// The names of the parameters of adapters; empty if the program has none.
std::vector<std::string> adapterNames(const Program &program);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_PARAMETERNAMES_H
