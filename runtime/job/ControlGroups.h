//===- ControlGroups.h - the control groups of this process -----*- C++ -*-===//

#ifndef FSDP_RUNTIME_JOB_CONTROLGROUPS_H
#define FSDP_RUNTIME_JOB_CONTROLGROUPS_H

#include <functional>
#include <string>

namespace fsdp::rt {

/// Calls `visit(folder, unified)` for the folder of each control group of this process whose limits
/// for `kind` ("memory", "cpu") apply to it: its group and the parent groups. `unified`: of version
/// 2. Reads /proc and /sys below `root`.
void forEachControlGroup(const std::string &root, const std::string &kind,
                         const std::function<void(const std::string &, bool)> &visit);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_CONTROLGROUPS_H
