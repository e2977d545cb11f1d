//===- NamePattern.h - patterns of parameters' names ------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_NAMEPATTERN_H
#define FSDP_RUNTIME_TRAIN_NAMEPATTERN_H

#include "runtime/program/Program.h"

#include <optional>
#include <string_view>

namespace fsdp::rt {

/// Whether `name` is as `pattern` says, in which `*` stands for any characters, or none.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// What the one `*` of `pattern` stands for in `name`; `name` itself where the pattern has none.
/// Nothing if the name is not as the pattern says.
std::optional<std::string_view> partOfPattern(std::string_view pattern, std::string_view name);

/// Error (bad command line): `pattern`, of `option`, matches no parameter of the program. The
/// message ends with `remedy`.
void requireMatch(const Program &program, const char *option, std::string_view pattern,
                  std::string_view remedy = "");

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_NAMEPATTERN_H
