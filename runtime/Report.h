//===- Report.h - the memory table ------------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_REPORT_H
#define FSDP_RUNTIME_REPORT_H

#include "runtime/Program.h"

namespace fsdp::rt {

/// Prints the compiler's memory report of the program as a table: bytes per
/// rank and, where the report has them, the replicated totals beside them.
void printReport(const Program &program);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_REPORT_H
