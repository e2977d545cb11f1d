#include <string>
#include "interpreter/First.h"
