#include "runtime/job/Job.h"
