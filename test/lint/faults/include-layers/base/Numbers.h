#include "runtime/Arena.h"
#include <charconv>
