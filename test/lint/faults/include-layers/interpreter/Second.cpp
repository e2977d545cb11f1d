#include "interpreter/Second.h"
#include "interpreter/Third.h"
