#include "runtime/Arena.h"
