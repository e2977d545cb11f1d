#include "runtime/job/Bootstrap.h"
#include "runtime/numerics/Lanes.h"
