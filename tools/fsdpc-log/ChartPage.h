//===- ChartPage.h - charts of logs as a page -------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_LOG_CHARTPAGE_H
#define TOOLS_FSDPC_LOG_CHARTPAGE_H

#include "tools/fsdpc-log/Chart.h"

#include <string>

namespace fsdpc_log {

/// A page with the chart that shows the values under the pointer. It loads nothing.
std::string chartPage(const Chart &chart);

} // namespace fsdpc_log

#endif // TOOLS_FSDPC_LOG_CHARTPAGE_H
