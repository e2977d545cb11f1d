#include "passes/global/Shard.h"
