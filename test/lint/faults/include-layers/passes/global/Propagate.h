#include "passes/local/Partition.h"
