#include "runtime/Error.h"
#include <charconv>
