//===- UpdateConstants.h - names of the constants of rules ------*- C++ -*-===//

#ifndef BASE_UPDATECONSTANTS_H
#define BASE_UPDATECONSTANTS_H

namespace base {

/// The constants of all update rules (dialect/fsdp/UpdateRule.cpp). A program, which has one rule,
/// refuses those of other rules with the name of its rule.
inline constexpr const char *kUpdateConstants[] = {"momentum", "beta1", "beta2", "eps",
                                                   "weight_decay"};

} // namespace base

#endif // BASE_UPDATECONSTANTS_H
