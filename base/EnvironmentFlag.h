//===- EnvironmentFlag.h - environment variables of 0 or 1 ------*- C++ -*-===//

#ifndef BASE_ENVIRONMENTFLAG_H
#define BASE_ENVIRONMENTFLAG_H

#include <cstdlib>
#include <optional>

namespace base {

/// The value of an environment variable, or null.
using Variables = const char *(*)(const char *name);

inline const char *environmentVariable(const char *name) { return std::getenv(name); }

/// The value of variable `name`; nothing where it is unset or empty. Error (bad command line, by
/// all): another value than 0 or 1. `effect` is that of 1, for the message; it may be empty.
std::optional<bool> environmentFlag(const char *name, const char *effect = "",
                                    Variables variables = environmentVariable);

} // namespace base

#endif // BASE_ENVIRONMENTFLAG_H
