#include "runtime/Slice.h"
