#include "cli/Numbers.h"
